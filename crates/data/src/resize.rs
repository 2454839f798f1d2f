//! Any RGB picture to a square of one size, resized with antialiasing: its centre, the shorter side
//! whole, or [otherwise](Squaring).
//!
//! The filter is bilinear and as wide as the step between two output pixels (Pillow's `BILINEAR`):
//! along each axis an output pixel is the weighted mean of the input pixels under a triangle around
//! its centre; or bicubic (`BICUBIC`). Weights are 16-bit integers with one binary point for an
//! axis, sums 32-bit, rounded half up after each axis, the vertical one first.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::{DataError, Interpolation, Pictures, Split, Squaring};

/// One side of a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Pixels.
    pub pixels: usize,
    /// So many of them show something: a part of the last may lie beyond the edge.
    pub seen: f64,
}

impl From<usize> for Extent {
    fn from(pixels: usize) -> Self {
        let seen = pixels as f64;
        Extent { pixels, seen }
    }
}

/// Fills `out` (`size`×`size`×3) from the `width`×`height` picture `rgb`. The error says what the
/// picture lacks.
pub(crate) fn to_square(
    rgb: &[u8],
    width: impl Into<Extent>,
    height: impl Into<Extent>,
    size: usize,
    out: &mut [u8],
) -> Result<(), String> {
    to_rectangle(rgb, width.into(), height.into(), [size, size], out)
}

/// Fills `out` (`to[0]` rows, `to[1]` columns) from the largest part around the picture's centre
/// that has this shape.
pub(crate) fn to_rectangle(
    rgb: &[u8],
    columns: Extent,
    rows: Extent,
    to: [usize; 2],
    out: &mut [u8],
) -> Result<(), String> {
    let (width, height) = (columns.pixels, rows.pixels);
    let [to_rows, to_columns] = to;
    let nothing = width.min(height).min(to_rows).min(to_columns) == 0;
    if nothing || rgb.len() != width * height * 3 || out.len() != to_rows * to_columns * 3 {
        return Err(format!("{} bytes do not make a picture of {width}×{height}×3", rgb.len()));
    }
    if [height, width] == to {
        out.copy_from_slice(rgb);
        return Ok(());
    }
    let ratio = to_columns as f64 / to_rows as f64;
    let wide = columns.seen.min(rows.seen * ratio);
    let steps = [
        Steps::of_middle(rows, wide / ratio, to_rows),
        Steps::of_middle(columns, wide, to_columns),
    ];
    resample(rgb, [rows, columns], steps, Interpolation::Bilinear, to, out);
    Ok(())
}

/// Fills `out` as [`Squaring`] says. `reversed` says of rows and of columns whether the last is the
/// first of the picture the right way up.
pub(crate) fn to_square_by(
    rgb: &[u8],
    [rows, columns]: [Extent; 2],
    by: Squaring,
    reversed: [bool; 2],
    out: &mut [u8],
) -> Result<(), String> {
    let size = by.size;
    if by.is_ours() {
        return to_rectangle(rgb, columns, rows, [size, size], out);
    }
    let (width, height) = (columns.pixels, rows.pixels);
    let whole = width.min(height).min(size) > 0 && rgb.len() == width * height * 3;
    if !whole || out.len() != size * size * 3 {
        let bytes = rgb.len();
        return Err(format!("{bytes} bytes do not make a picture of {width}×{height}×3"));
    }
    let side = rows.seen.min(columns.seen);
    let steps = match by.resized([rows.seen, columns.seen]) {
        None => [rows, columns].map(|axis| Steps::of_middle(axis, side, size)),
        Some(to) if to.iter().any(|to| *to < size) => {
            let [rows, columns] = to;
            return Err(format!("resized to {columns}×{rows} it is smaller than {size}×{size}"));
        }
        Some([down, across]) => [
            Steps::of_centre(rows, down, size, reversed[0]),
            Steps::of_centre(columns, across, size, reversed[1]),
        ],
    };
    resample(rgb, [rows, columns], steps, by.interpolation, [size, size], out);
    Ok(())
}

/// Where output pixels lie on an axis, in input pixels.
#[derive(Clone, Copy)]
struct Steps {
    /// Where the first begins.
    left: f64,
    /// From one to the next.
    scale: f64,
}

impl Steps {
    /// The middle `side` of an axis to `to` pixels.
    fn of_middle(from: Extent, side: f64, to: usize) -> Steps {
        Steps { left: (from.seen - side) / 2.0, scale: side / to as f64 }
    }

    /// The centre `size` of an axis that is resized to `to` pixels. torchvision rounds where it
    /// begins, to the even pixel.
    fn of_centre(from: Extent, to: usize, size: usize, reversed: bool) -> Steps {
        let before = ((to - size) as f64 / 2.0).round_ties_even();
        let before = match reversed {
            true => (to - size) as f64 - before,
            false => before,
        };
        let scale = from.seen / to as f64;
        Steps { left: before * scale, scale }
    }
}

/// Along columns and then along rows; where the filter overshoots along rows first, since what is
/// cut off at 0 and 255 in between is then what Pillow cuts off.
fn resample(
    rgb: &[u8],
    [rows, columns]: [Extent; 2],
    steps: [Steps; 2],
    by: Interpolation,
    to: [usize; 2],
    out: &mut [u8],
) {
    if by == Interpolation::Bilinear {
        return columns_first(rgb, [rows, columns], steps, by, to, out);
    }
    let [down, across] = steps;
    let turned = transposed(rgb, columns.pixels);
    let turned_to = [to[1], to[0]];
    columns_first(&turned, [columns, rows], [across, down], by, turned_to, out);
    let upright = transposed(out, to[0]);
    out.copy_from_slice(&upright);
}

fn columns_first(
    rgb: &[u8],
    [rows, columns]: [Extent; 2],
    steps: [Steps; 2],
    by: Interpolation,
    [to_rows, to_columns]: [usize; 2],
    out: &mut [u8],
) {
    let width = columns.pixels;
    let down = Axis::new(rows, steps[0], to_rows, by);
    let mut across = Axis::new(columns, steps[1], to_columns, by);
    // Only the columns that some output pixel sees.
    let (first, last) = (across.taps[0].start, across.taps[to_columns - 1].end());
    let mut seen = vec![0; to_rows * (last - first) * 3];
    down.apply(&rgb[first * 3..], width * 3, &mut seen);
    across.taps.iter_mut().for_each(|taps| taps.start -= first);
    across.apply(&transposed(&seen, last - first), to_rows * 3, out);
    let turned = transposed(out, to_rows);
    out.copy_from_slice(&turned);
}

/// Rows of `width` pixels become columns.
fn transposed(rgb: &[u8], width: usize) -> Vec<u8> {
    let (pixels, _) = rgb.as_chunks::<3>();
    let height = pixels.len() / width;
    let mut out = vec![[0; 3]; pixels.len()];
    for (y, row) in pixels.chunks_exact(width).enumerate() {
        for (x, pixel) in row.iter().enumerate() {
            out[x * height + y] = *pixel;
        }
    }
    out.into_flattened()
}

/// One axis: which input pixels each output pixel sees, and how much of each.
struct Axis {
    /// Weights are multiplied by 2 to this power.
    point: u32,
    taps: Vec<Taps>,
}

struct Taps {
    start: usize,
    weights: Vec<i16>,
}

impl Taps {
    fn end(&self) -> usize {
        self.start + self.weights.len()
    }
}

impl Axis {
    /// `to` pixels of `from` input pixels.
    fn new(from: Extent, steps: Steps, to: usize, by: Interpolation) -> Axis {
        let exact: Vec<(usize, Vec<f64>)> = (0..to).map(|i| taps(from, steps, by, i)).collect();
        let greatest = exact.iter().flat_map(|(_, w)| w).fold(0.0, |a: f64, b| a.max(*b));
        // The greatest power that keeps the greatest weight below 2¹⁵, and sums of bytes below 2³¹.
        let fits = |point: &u32| (greatest * f64::from(1 << (point + 1))).round() < 32768.0;
        let point = (0..21).take_while(fits).count() as u32;
        let scale = f64::from(1 << point);
        let taps = exact.into_iter().map(|(start, weights)| Taps {
            start,
            weights: weights.iter().map(|w| (w * scale).round() as i16).collect(),
        });
        Axis { point, taps: taps.collect() }
    }

    fn apply(&self, rows: &[u8], stride: usize, out: &mut [u8]) {
        let axis = self;
        Arch::new().dispatch(SumRows { axis, rows, stride, out });
    }
}

/// The first input pixel that output pixel `i` sees, and the weights from there on, which sum to 1.
fn taps(from: Extent, steps: Steps, by: Interpolation, i: usize) -> (usize, Vec<f64>) {
    let Steps { left, scale } = steps;
    let unit = scale.max(1.0);
    let (filter, radius): (fn(f64) -> f64, f64) = match by {
        Interpolation::Bilinear => (triangle, unit),
        Interpolation::Bicubic => (cubic, 2.0 * unit),
    };
    let inverse = 1.0 / unit;
    let centre = left + (i as f64 + 0.5) * scale;
    let start = (centre - radius).floor().max(0.0) as usize;
    let end = (centre + radius).ceil().min(from.pixels as f64) as usize;
    let weight = |x: usize| filter(((x as f64 - (centre - 0.5)) * inverse).abs());
    let mut weights: Vec<f64> = (start..end).map(weight).collect();
    let before = weights.iter().take_while(|w| **w == 0.0).count();
    weights.drain(..before);
    while weights.last() == Some(&0.0) {
        weights.pop();
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    (start + before, weights)
}

fn triangle(distance: f64) -> f64 {
    (1.0 - distance).max(0.0)
}

/// Keys 1981, with a = −0.5.
fn cubic(x: f64) -> f64 {
    match x {
        x if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        x if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        _ => 0.0,
    }
}

/// One axis applied to rows of bytes, compiled for each level of vector instructions: output row
/// `i` = Σ `weights[r]` · row `start + r`, where a row begins `stride` bytes after the one before.
struct SumRows<'a> {
    axis: &'a Axis,
    rows: &'a [u8],
    stride: usize,
    out: &'a mut [u8],
}

impl WithSimd for SumRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let wide = self.out.len() / self.axis.taps.len();
        let mut sums = vec![0; wide];
        for (taps, out) in self.axis.taps.iter().zip(self.out.chunks_exact_mut(wide)) {
            let rows = &self.rows[taps.start * self.stride..];
            sums.fill(1 << self.axis.point >> 1);
            add_rows(rows, self.stride, &taps.weights, &mut sums);
            for (out, sum) in out.iter_mut().zip(&sums) {
                *out = (*sum >> self.axis.point).clamp(0, 255) as u8;
            }
        }
    }
}

/// Sums lie in memory, so four rows are added at once.
#[inline(always)]
fn add_rows(rows: &[u8], stride: usize, weights: &[i16], sums: &mut [i32]) {
    let wide = sums.len();
    for (four, weights) in weights.chunks(4).enumerate() {
        let row = |r: usize| match r < weights.len() {
            true => (&rows[(four * 4 + r) * stride..][..wide], i32::from(weights[r])),
            false => (&rows[four * 4 * stride..][..wide], 0),
        };
        let [(a, wa), (b, wb), (c, wc), (d, wd)] = [row(0), row(1), row(2), row(3)];
        for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *sum += i32::from(*a) * wa + i32::from(*b) * wb;
            *sum += i32::from(*c) * wc + i32::from(*d) * wd;
        }
    }
}

/// All pictures of a split at another size.
pub(crate) fn split(split: Split, by: Squaring) -> Result<Split, DataError> {
    let (pictures, size) = (&split.pictures, by.size);
    if pictures.height() == size && pictures.width() == size {
        return Ok(split);
    }
    let (width, height) = (pictures.width(), pictures.height());
    let mut pixels = memory(pictures.len(), size)?;
    pixels
        .par_chunks_exact_mut(size * size * 3)
        .enumerate()
        .try_for_each_init(Vec::new, |scratch, (i, out)| {
            let picture = pictures.picture_in(i, scratch);
            let sides = [height.into(), width.into()];
            to_square_by(picture, sides, by, [false; 2], out)
        })
        .map_err(|why| DataError::BadOption { option: "size", why })?;
    Ok(Split { pictures: Pictures::new(size, size, pixels)?, ..split })
}

/// Room for `n` pictures, or an error where there is none.
pub(crate) fn memory(n: usize, size: usize) -> Result<Vec<u8>, DataError> {
    room(n, size.saturating_mul(size * 3), size)
}

/// Room for `one` byte of each of `n` pictures of that size.
pub(crate) fn room(n: usize, one: usize, size: usize) -> Result<Vec<u8>, DataError> {
    let mut pixels = Vec::new();
    match one.checked_mul(n) {
        Some(bytes) if pixels.try_reserve_exact(bytes).is_ok() => {
            pixels.extend(std::iter::repeat_n(0, bytes));
            Ok(pixels)
        }
        _ => Err(DataError::BadOption {
            option: "size",
            why: format!(
                "{n} pictures of {size}×{size} do not fit in memory; use a smaller size or a limit"
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_centre_of_a_long_picture() {
        // Left third red, middle third green, right third blue.
        let rgb: Vec<u8> = (0..12 * 36)
            .flat_map(|i| [[255, 0, 0], [0, 255, 0], [0, 0, 255]][i % 36 / 12])
            .collect();
        let mut out = vec![0; 4 * 4 * 3];
        to_square(&rgb, 36, 12, 4, &mut out).unwrap();
        assert!(out.chunks_exact(3).all(|p| p[1] > 200 && p[0] < 50), "{out:?}");
    }

    #[test]
    fn shrinking_averages() {
        let rgb: Vec<u8> =
            (0..64 * 64).flat_map(|i| [if (i + i / 64) % 2 == 0 { 255 } else { 0 }; 3]).collect();
        let mut out = vec![0; 8 * 8 * 3];
        to_square(&rgb, 64, 64, 8, &mut out).unwrap();
        assert!(out.iter().all(|&v| (120..136).contains(&v)), "{out:?}");
    }

    /// The definition, in f64, over all pixels: a triangle as wide as the step, around each output
    /// pixel's centre.
    fn naive(rgb: &[u8], width: usize, height: usize, size: usize) -> Vec<f64> {
        let side = width.min(height);
        let scale = side as f64 / size as f64;
        let weights = |from: usize, i: usize| -> Vec<f64> {
            let centre = (from - side) as f64 / 2.0 + (i as f64 + 0.5) * scale;
            let distance = |x: usize| (x as f64 + 0.5 - centre).abs() / scale.max(1.0);
            let weights: Vec<f64> = (0..from).map(|x| (1.0 - distance(x)).max(0.0)).collect();
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|w| w / sum).collect()
        };
        let mut out = vec![0.0; size * size * 3];
        for (i, out) in out.iter_mut().enumerate() {
            let (c, x, y) = (i % 3, i / 3 % size, i / 3 / size);
            let (across, down) = (weights(width, x), weights(height, y));
            for (row, v) in down.iter().enumerate().filter(|(_, v)| **v > 0.0) {
                let seen = across.iter().enumerate().filter(|(_, h)| **h > 0.0);
                for (column, h) in seen {
                    *out += v * h * f64::from(rgb[(row * width + column) * 3 + c]);
                }
            }
        }
        out
    }

    #[test]
    fn any_shape_to_any_size_is_the_definition_within_rounding() {
        for [width, height, size] in [
            [36, 12, 4],
            [33, 50, 32],
            [50, 33, 33],
            [33, 50, 64],
            [200, 131, 7],
            [1, 9, 5],
            [97, 97, 96],
            [150, 21, 21],
        ] {
            let noise = |i: usize| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0];
            let rgb: Vec<u8> = (0..width * height * 3).map(noise).collect();
            let mut out = vec![0; size * size * 3];
            to_square(&rgb, width, height, size, &mut out).unwrap();
            // Half a level for each axis, and what rounded weights add.
            let error = |(a, b): (&u8, f64)| (f64::from(*a) - b).abs();
            let pairs = out.iter().zip(naive(&rgb, width, height, size));
            let worst = pairs.map(error).fold(0.0, f64::max);
            assert!(worst < 1.1, "{width}×{height} to {size}: {worst}");
        }
    }

    #[test]
    fn pixels_that_are_missing_are_an_error() {
        let mut out = [0; 12];
        assert!(to_square(&[0; 26], 3, 3, 2, &mut out).is_err());
        assert!(to_square(&[], 0, 3, 2, &mut out).is_err());
    }

    #[test]
    fn a_size_that_cannot_fit_is_an_error() {
        assert!(memory(usize::MAX / 8, 32).is_err());
        assert!(memory(1 << 40, 1024).is_err());
    }
}
