//! Any RGB picture to a square of one size, resized with antialiasing: its centre, the shorter side
//! whole, or [otherwise](Squaring).
//!
//! The filter is bilinear and as wide as the step between two output pixels (Pillow's `BILINEAR`):
//! along each axis an output pixel is the weighted mean of the input pixels under a triangle around
//! its centre; or bicubic (`BICUBIC`). `fast_image_resize` computes it in whole numbers, so that
//! every processor gives the same bits.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ImageView, ResizeAlg, ResizeOptions, Resizer};
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

/// Fills `out` (`to[0]` rows, `to[1]` columns) from the largest part around the picture's centre
/// that has this shape. The error says what the picture lacks.
pub(crate) fn to_rectangle(
    rgb: &[u8],
    [rows, columns]: [Extent; 2],
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
    let spans = [Span::middle(rows, wide / ratio), Span::middle(columns, wide)];
    let by = Interpolation::Bilinear;
    resample(&mut Resizer::new(), rgb, [rows, columns], spans, by, to, out)
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
        return to_rectangle(rgb, [rows, columns], [size, size], out);
    }
    let (width, height) = (columns.pixels, rows.pixels);
    let whole = width.min(height).min(size) > 0 && rgb.len() == width * height * 3;
    if !whole || out.len() != size * size * 3 {
        let bytes = rgb.len();
        return Err(format!("{bytes} bytes do not make a picture of {width}×{height}×3"));
    }
    let side = rows.seen.min(columns.seen);
    let spans = match by.resized([rows.seen, columns.seen]) {
        None => [rows, columns].map(|axis| Span::middle(axis, side)),
        Some(to) if to.iter().any(|to| *to < size) => {
            let [rows, columns] = to;
            return Err(format!("resized to {columns}×{rows} it is smaller than {size}×{size}"));
        }
        Some([down, across]) => [
            Span::centre(rows, down, size, reversed[0]),
            Span::centre(columns, across, size, reversed[1]),
        ],
    };
    let (resizer, to) = (&mut Resizer::new(), [size, size]);
    resample(resizer, rgb, [rows, columns], spans, by.interpolation, to, out)
}

/// What of an axis is resized, in its pixels. The filter looks beyond it.
#[derive(Clone, Copy)]
struct Span {
    start: f64,
    length: f64,
}

impl Span {
    fn whole(pixels: u32) -> Span {
        Span { start: 0.0, length: pixels.into() }
    }

    /// The middle `side` of an axis.
    fn middle(of: Extent, side: f64) -> Span {
        // Rounding of a ratio may put it beyond the edge by a bit.
        let side = side.min(of.seen);
        Span { start: (of.seen - side) / 2.0, length: side }
    }

    /// The centre `size` of an axis that is resized to `to` pixels. torchvision rounds where it
    /// begins, to the even pixel.
    fn centre(of: Extent, to: usize, size: usize, reversed: bool) -> Span {
        let before = ((to - size) as f64 / 2.0).round_ties_even();
        let before = if reversed { (to - size) as f64 - before } else { before };
        let scale = of.seen / to as f64;
        let start = before * scale;
        Span { start, length: (size as f64 * scale).min(of.seen - start) }
    }
}

fn resample(
    resizer: &mut Resizer,
    rgb: &[u8],
    [rows, columns]: [Extent; 2],
    [down, across]: [Span; 2],
    by: Interpolation,
    to: [usize; 2],
    out: &mut [u8],
) -> Result<(), String> {
    let said = |why: &dyn std::fmt::Display| format!("it cannot be resized: {why}");
    let side = |pixels: usize| u32::try_from(pixels).map_err(|e| said(&e));
    let [wide, high] = [side(columns.pixels)?, side(rows.pixels)?];
    // Typed: `resize` itself would bring code for every kind of pixel, 3 MB of the program.
    let from = TypedImageRef::<U8x3>::from_buffer(wide, high, rgb).map_err(|e| said(&e))?;
    let to = TypedImage::<U8x3>::from_buffer(side(to[1])?, side(to[0])?, out);
    let mut to = to.map_err(|e| said(&e))?;
    let options = |filter, [down, across]: [Span; 2]| {
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(filter));
        options.crop(across.start, down.start, across.length, down.length)
    };
    let resized = match by {
        Interpolation::Bilinear => {
            resizer.resize_typed(&from, &mut to, &options(FilterType::Bilinear, [down, across]))
        }
        // It overshoots, and what is cut off at 0 and 255 between the two axes is what Pillow cuts
        // off only where rows come first; the library begins with columns.
        Interpolation::Bicubic => {
            let mut rows_done = TypedImage::<U8x3>::new(to.width(), high);
            let first = [Span::whole(high), across];
            let then = [down, Span::whole(to.width())];
            let filter = FilterType::CatmullRom;
            let first = resizer.resize_typed(&from, &mut rows_done, &options(filter, first));
            first.and_then(|()| resizer.resize_typed(&rows_done, &mut to, &options(filter, then)))
        }
    };
    resized.map_err(|e| said(&e))
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
        .map_err(|why| DataError::option("size", why))?;
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
        _ => {
            let what = format!("{n} pictures of {size}×{size} do not fit in memory");
            Err(DataError::option("size", format!("{what}; use a smaller size or a limit")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let sides = [height, width].map(Extent::from);
            to_rectangle(&rgb, sides, [size, size], &mut out).unwrap();
            // Half a level for each axis, and what rounded weights add.
            let error = |(a, b): (&u8, f64)| (f64::from(*a) - b).abs();
            let pairs = out.iter().zip(naive(&rgb, width, height, size));
            let worst = pairs.map(error).fold(0.0, f64::max);
            assert!(worst < 1.1, "{width}×{height} to {size}: {worst}");
        }
    }

    /// So that an index made on one machine can be searched on another.
    #[test]
    #[allow(unsafe_code)]
    fn every_processor_gives_the_same_bits() {
        use fast_image_resize::CpuExtensions;
        let noise = |i: usize| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0];
        // Edges as well, at which a cubic overshoots.
        let rgb: Vec<u8> = (0..301 * 203 * 3)
            .map(|i| if i % 7 < 3 { noise(i) } else { noise(i / 40) & 128 })
            .collect();
        let sides = [203, 301].map(Extent::from);
        for by in [Interpolation::Bilinear, Interpolation::Bicubic] {
            for [rows, columns] in [[64, 64], [7, 96], [400, 333]] {
                let made = |extensions: CpuExtensions| {
                    let mut resizer = Resizer::new();
                    // SAFETY: only those that the processor has are asked for.
                    unsafe { resizer.set_cpu_extensions(extensions) };
                    let mut out = vec![0; rows * columns * 3];
                    let spans = sides.map(|axis| Span::middle(axis, 171.3));
                    let to = [rows, columns];
                    resample(&mut resizer, &rgb, sides, spans, by, to, &mut out).unwrap();
                    out
                };
                let plain = made(CpuExtensions::None);
                #[cfg(target_arch = "x86_64")]
                for extensions in [CpuExtensions::Sse4_1, CpuExtensions::Avx2] {
                    if extensions.is_supported() {
                        assert!(
                            made(extensions) == plain,
                            "{extensions:?} {by:?} {rows}×{columns}"
                        );
                    }
                }
                assert!(made(CpuExtensions::default()) == plain);
            }
        }
    }

    #[test]
    fn pixels_that_are_missing_are_an_error() {
        let mut out = [0; 12];
        for (rgb, sides) in [(&[0; 26][..], [3, 3]), (&[], [3, 0])] {
            let sides = sides.map(Extent::from);
            assert!(to_rectangle(rgb, sides, [2, 2], &mut out).is_err());
        }
    }

    #[test]
    fn a_size_that_cannot_fit_is_an_error() {
        assert!(memory(usize::MAX / 8, 32).is_err());
        assert!(memory(1 << 40, 1024).is_err());
    }
}
