//! The augmentation made fast: planes of f32, one pass per operation, nothing allocated after a
//! thread's first picture.
//!
//! Loops are over plain slices with selects instead of branches, so that they vectorise on any
//! machine; no operation is fused, so the bits do not depend on the machine. Sums over a picture go
//! to 32 lanes (pixel index modulo 32), then lane i takes lane i+16, i+8, … in turn: the order in
//! which a GPU's warp would add them.

use std::cell::RefCell;

use super::blur::{self, BlurScratch};
use super::{AugmentParams, Op};

const LANES: usize = 32;

/// u8 / 255 for every byte.
static UNIT: [f32; 256] = {
    let mut table = [0.0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = i as f32 / 255.0;
        i += 1;
    }
    table
};

/// A column's two sources in the crop (byte offsets in a row), and the weight of the second.
#[derive(Clone, Copy, Default)]
struct Column {
    first: u32,
    second: u32,
    weight: f32,
}

/// Working memory of one thread.
#[derive(Default)]
struct AugmentBuffers {
    /// Red, green, blue planes.
    planes: [Vec<f32>; 3],
    /// Two source rows stretched to full width, planar.
    rows: [Vec<f32>; 2],
    columns: Vec<Column>,
    blur: BlurScratch,
}

thread_local! {
    static SCRATCH: RefCell<AugmentBuffers> = RefCell::default();
}

/// Crops, colours, blurs, solarises and normalises one RGB picture of `from[0]` rows and `from[1]`
/// columns into `out` (`to[0]` rows and `to[1]` columns, HWC), as `params` say.
///
/// Mirroring comes last. Panics if a slice has the wrong length or the crop leaves the picture.
pub fn apply(
    picture: &[u8],
    from: [usize; 2],
    to: [usize; 2],
    params: &AugmentParams,
    mean: [f32; 3],
    std: [f32; 3],
    out: &mut [f32],
) {
    let [h, w] = to;
    assert_eq!(picture.len(), from[0] * from[1] * 3, "bytes of the picture");
    assert_eq!(out.len(), h * w * 3, "values of the output");
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.fit(h, w);
        resized_crop(picture, from, to, params, scratch);
        let [r, g, b] = &mut scratch.planes;
        colour(params, r, g, b);
        if params.blur > 0.0 {
            let radius = blur::radius(h, w);
            let weights = &blur::weights(params.blur, radius)[..=radius];
            for plane in [&mut *r, &mut *g, &mut *b] {
                blur::blur(plane, w, weights, &mut scratch.blur);
            }
        }
        if params.solarise == 1 {
            for plane in [&mut *r, &mut *g, &mut *b] {
                solarise(plane);
            }
        }
        write(params, w, [r, g, b], mean, std, out);
    });
}

/// Normalises pictures for evaluation: `(value / 255 − mean) / std` of each channel.
pub fn normalise(pixels: &[u8], mean: [f32; 3], std: [f32; 3], out: &mut [f32]) {
    assert_eq!(pixels.len(), out.len(), "values of the output");
    for (from, to) in pixels.chunks_exact(3).zip(out.chunks_exact_mut(3)) {
        for c in 0..3 {
            to[c] = (UNIT[from[c] as usize] - mean[c]) / std[c];
        }
    }
}

impl AugmentBuffers {
    fn fit(&mut self, h: usize, w: usize) {
        for plane in &mut self.planes {
            plane.resize(h * w, 0.0);
        }
        for row in &mut self.rows {
            row.resize(w * 3, 0.0);
        }
        self.columns.resize(w, Column::default());
    }
}

/// Between which two of `from` cells the centre of cell `i` of `to` lies, and how far from the
/// first (half-pixel centres).
fn place(i: usize, scale: f32, from: usize) -> (usize, usize, f32) {
    let centre = ((i as f32 + 0.5) * scale - 0.5).max(0.0);
    let first = (centre as usize).min(from - 1);
    (first, (first + 1).min(from - 1), centre - first as f32)
}

/// Bilinear, rows stretched first and then blended in pairs. A stretched row serves every output
/// row that touches it.
fn resized_crop(
    picture: &[u8],
    [rows, columns]: [usize; 2],
    [h, w]: [usize; 2],
    p: &AugmentParams,
    scratch: &mut AugmentBuffers,
) {
    let (crop_h, crop_w) = (p.height as usize, p.width as usize);
    let (top, left) = (p.top as usize, p.left as usize);
    assert!(crop_h >= 1 && top + crop_h <= rows, "rows of the crop");
    assert!(crop_w >= 1 && left + crop_w <= columns, "columns of the crop");
    let scale = crop_w as f32 / w as f32;
    for (x, column) in scratch.columns.iter_mut().enumerate() {
        let (first, second, weight) = place(x, scale, crop_w);
        *column = Column {
            first: ((left + first) * 3) as u32,
            second: ((left + second) * 3) as u32,
            weight,
        };
    }
    let scale = crop_h as f32 / h as f32;
    // Which source row each of the two buffers holds.
    let mut held = [usize::MAX; 2];
    for y in 0..h {
        let (first, second, weight) = place(y, scale, crop_h);
        for source in [first, second] {
            let slot = source % 2;
            if held[slot] != source {
                let row = (top + source) * columns * 3;
                stretch(
                    &picture[row..row + columns * 3],
                    &scratch.columns,
                    &mut scratch.rows[slot],
                );
                held[slot] = source;
            }
        }
        let (above, below) = (&scratch.rows[first % 2], &scratch.rows[second % 2]);
        for (c, plane) in scratch.planes.iter_mut().enumerate() {
            let part = c * w..(c + 1) * w;
            let to = &mut plane[y * w..(y + 1) * w];
            for ((to, a), b) in to.iter_mut().zip(&above[part.clone()]).zip(&below[part]) {
                *to = a * (1.0 - weight) + b * weight;
            }
        }
    }
}

fn stretch(row: &[u8], columns: &[Column], out: &mut [f32]) {
    let (red, rest) = out.split_at_mut(columns.len());
    let (green, blue) = rest.split_at_mut(columns.len());
    let targets = red.iter_mut().zip(green).zip(blue);
    for (((r, g), b), column) in targets.zip(columns) {
        let first = &row[column.first as usize..][..3];
        let second = &row[column.second as usize..][..3];
        let (near, far) = (1.0 - column.weight, column.weight);
        let mix = |c: usize| UNIT[first[c] as usize] * near + UNIT[second[c] as usize] * far;
        (*r, *g, *b) = (mix(0), mix(1), mix(2));
    }
}

fn colour(params: &AugmentParams, r: &mut [f32], g: &mut [f32], b: &mut [f32]) {
    for op in params.ops() {
        match op {
            Op::Brightness if params.brightness != 1.0 => {
                for plane in [&mut *r, &mut *g, &mut *b] {
                    towards(plane, 0.0, params.brightness);
                }
            }
            Op::Contrast if params.contrast != 1.0 => {
                let mean = mean_grey(r, g, b);
                for plane in [&mut *r, &mut *g, &mut *b] {
                    towards(plane, mean, params.contrast);
                }
            }
            Op::Saturation if params.saturation != 1.0 => saturate(r, g, b, params.saturation),
            Op::Hue if params.hue != 0.0 => turn_hue(r, g, b, params.hue),
            _ => {}
        }
    }
    if params.grey == 1 {
        for ((r, g), b) in r.iter_mut().zip(g).zip(b) {
            let grey = grey(*r, *g, *b);
            (*r, *g, *b) = (grey, grey, grey);
        }
    }
}

fn grey(r: f32, g: f32, b: f32) -> f32 {
    0.2989 * r + 0.587 * g + 0.114 * b
}

/// Into [0, 1]. Written out, since `clamp` keeps NaN apart and costs more.
fn clip(x: f32) -> f32 {
    let x = if x < 0.0 { 0.0 } else { x };
    if x > 1.0 { 1.0 } else { x }
}

fn towards(plane: &mut [f32], other: f32, ratio: f32) {
    let constant = (1.0 - ratio) * other;
    for v in plane {
        *v = clip(ratio * *v + constant);
    }
}

fn mean_grey(r: &[f32], g: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let chunks = r.chunks(LANES).zip(g.chunks(LANES)).zip(b.chunks(LANES));
    for ((r, g), b) in chunks {
        for (((lane, r), g), b) in lanes.iter_mut().zip(r).zip(g).zip(b) {
            *lane += grey(*r, *g, *b);
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0] / r.len() as f32
}

fn saturate(r: &mut [f32], g: &mut [f32], b: &mut [f32], ratio: f32) {
    for ((r, g), b) in r.iter_mut().zip(g).zip(b) {
        let constant = (1.0 - ratio) * grey(*r, *g, *b);
        *r = clip(ratio * *r + constant);
        *g = clip(ratio * *g + constant);
        *b = clip(ratio * *b + constant);
    }
}

/// Bright values turn into their negative.
fn solarise(plane: &mut [f32]) {
    for v in plane {
        *v = if *v >= 0.5 { 1.0 - *v } else { *v };
    }
}

/// To hue (in sixths of the circle) and back, by the branch-free form of HSV: with k = (n + 6·hue)
/// mod 6, channel = value − range·clip(min(k, 4 − k)), n = 5, 3, 1 for red, green, blue.
fn turn_hue(r: &mut [f32], g: &mut [f32], b: &mut [f32], turn: f32) {
    for ((r, g), b) in r.iter_mut().zip(g).zip(b) {
        let max = |x: f32, y: f32| if x > y { x } else { y };
        let min = |x: f32, y: f32| if x < y { x } else { y };
        let most = max(max(*r, *g), *b);
        let range = most - min(min(*r, *g), *b);
        let inverse = 1.0 / if range == 0.0 { 1.0 } else { range };
        // Differences of two channels, since (most − g) − (most − b) = b − g up to rounding.
        let red = (*g - *b) * inverse;
        let green = 2.0 + (*b - *r) * inverse;
        let blue = 4.0 + (*r - *g) * inverse;
        let sixths = if most == *g { green } else { blue };
        let sixths = if most == *r { red } else { sixths };
        let sixths = around(around(sixths) + 6.0 * turn);
        let channel = |n: f32| {
            let k = n + sixths;
            let k = if k >= 6.0 { k - 6.0 } else { k };
            most - range * clip(min(k, 4.0 - k))
        };
        (*r, *g, *b) = (channel(5.0), channel(3.0), channel(1.0));
    }
}

/// From [−6, 12) into [0, 6].
fn around(sixths: f32) -> f32 {
    let up = if sixths < 0.0 { sixths + 6.0 } else { sixths };
    if up >= 6.0 { up - 6.0 } else { up }
}

fn write(
    params: &AugmentParams,
    w: usize,
    [r, g, b]: [&[f32]; 3],
    mean: [f32; 3],
    std: [f32; 3],
    out: &mut [f32],
) {
    let rows = r.chunks_exact(w).zip(g.chunks_exact(w)).zip(b.chunks_exact(w));
    for (((r, g), b), out) in rows.zip(out.chunks_exact_mut(w * 3)) {
        let pixels = r.iter().zip(g).zip(b);
        let put = |(((r, g), b), out): (((&f32, &f32), &f32), &mut [f32])| {
            out[0] = (r - mean[0]) / std[0];
            out[1] = (g - mean[1]) / std[1];
            out[2] = (b - mean[2]) / std[2];
        };
        if params.flip == 1 {
            pixels.rev().zip(out.chunks_exact_mut(3)).for_each(put);
        } else {
            pixels.zip(out.chunks_exact_mut(3)).for_each(put);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::augment::{Augmentation, naive};
    use anchorhood_storage::random::{Draws, Stream};

    const MEAN: [f32; 3] = [0.49, 0.48, 0.45];
    const STD: [f32; 3] = [0.20, 0.21, 0.22];

    fn noise(h: usize, w: usize, item: u64) -> Vec<u8> {
        let draws = Draws::new(5, Stream::Test, 0, item);
        (0..h * w * 3).map(|i| draws.word(i as u64) as u8).collect()
    }

    /// Few values, so that greys and ties between channels are common.
    fn coarse(h: usize, w: usize, item: u64) -> Vec<u8> {
        noise(h, w, item).iter().map(|v| v / 86 * 127).collect()
    }

    fn difference(picture: &[u8], from: [usize; 2], to: [usize; 2], params: &AugmentParams) -> f32 {
        let values = to[0] * to[1] * 3;
        let (mut fast, mut slow) = (vec![0.0; values], vec![1.0; values]);
        apply(picture, from, to, params, MEAN, STD, &mut fast);
        naive::apply(picture, from, to, params, MEAN, STD, &mut slow);
        let pairs = fast.iter().zip(&slow);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn fast_equals_naive() {
        let how = Augmentation {
            jitter: 0.8,
            blur: 0.5,
            solarise: 0.5,
            flip: 0.5,
            ..Augmentation::default()
        };
        let own = [(32, 32), (5, 7), (1, 1), (40, 24), (70, 61)].map(|(h, w)| [[h, w]; 2]);
        let other = [[[48, 70], [32, 32]], [[33, 90], [32, 32]], [[9, 8], [16, 15]]];
        for [[h, w], to] in own.into_iter().chain(other) {
            for item in 0..200 {
                let draws = Draws::new(9, Stream::Augment, 1, item);
                let params = AugmentParams::draw(&how, h, w, &draws);
                for picture in [noise(h, w, item), coarse(h, w, item)] {
                    let worst = difference(&picture, [h, w], to, &params);
                    assert!(worst < 2e-5, "{h}×{w} to {to:?}, {item}: {worst} {params:?}");
                }
            }
        }
    }

    #[test]
    fn solarising_turns_bright_values_into_their_negative() {
        let picture: Vec<u8> = (0..=255).flat_map(|v| [v, v, 255 - v]).collect();
        let plain = AugmentParams::identity(16, 16);
        let solarise = 1;
        let params = AugmentParams { solarise, ..plain };
        let (mut before, mut after) = (vec![0.0; 768], vec![0.0; 768]);
        apply(&picture, [16; 2], [16; 2], &plain, [0.0; 3], [1.0; 3], &mut before);
        apply(&picture, [16; 2], [16; 2], &params, [0.0; 3], [1.0; 3], &mut after);
        for (before, after) in before.iter().zip(after) {
            let negative = 1.0 - before;
            assert_eq!(after, if *before >= 0.5 { negative } else { *before });
        }
    }

    #[test]
    fn nothing_to_do_is_exact() {
        let picture = noise(32, 32, 0);
        let (mut seen, mut plain) = (vec![0.0; 3072], vec![1.0; 3072]);
        apply(&picture, [32; 2], [32; 2], &AugmentParams::identity(32, 32), MEAN, STD, &mut seen);
        normalise(&picture, MEAN, STD, &mut plain);
        assert_eq!(seen, plain);
        assert_eq!(plain[4], (f32::from(picture[4]) / 255.0 - MEAN[1]) / STD[1]);
    }

    #[test]
    fn a_flip_mirrors_rows() {
        let picture = noise(4, 6, 0);
        let params = AugmentParams::identity(4, 6);
        let (mut plain, mut flipped) = (vec![0.0; 72], vec![0.0; 72]);
        apply(&picture, [4, 6], [4, 6], &params, MEAN, STD, &mut plain);
        let flip = AugmentParams { flip: 1, ..params };
        apply(&picture, [4, 6], [4, 6], &flip, MEAN, STD, &mut flipped);
        for y in 0..4 {
            for x in 0..6 {
                let (a, b) = ((y * 6 + x) * 3, (y * 6 + 5 - x) * 3);
                assert_eq!(plain[a..a + 3], flipped[b..b + 3]);
            }
        }
    }
}
