//! The specification of the augmentation: one pixel and one operation at a time, as torchvision's
//! source reads.
//!
//! Slow, and used only to test [`apply`](super::apply).

use super::blur::{mirrored, radius};
use super::{AugmentParams, Op};

/// An RGB picture in [0, 1].
type Picture = Vec<[f32; 3]>;

/// As [`apply`](super::apply).
pub fn apply(
    picture: &[u8],
    [_, columns]: [usize; 2],
    [h, w]: [usize; 2],
    params: &AugmentParams,
    mean: [f32; 3],
    std: [f32; 3],
    out: &mut [f32],
) {
    let mut seen = resized_crop(picture, columns, [h, w], params);
    for op in params.ops() {
        seen = match op {
            Op::Brightness => blend(&seen, |_| 0.0, params.brightness),
            Op::Contrast => {
                let mean = seen.iter().copied().map(grey).sum::<f32>() / seen.len() as f32;
                blend(&seen, |_| mean, params.contrast)
            }
            Op::Saturation => blend(&seen, grey, params.saturation),
            Op::Hue if params.hue == 0.0 => seen,
            Op::Hue => seen.iter().map(|&p| turn_hue(p, params.hue)).collect(),
        };
    }
    if params.grey == 1 {
        seen = seen.iter().map(|&p| [grey(p); 3]).collect();
    }
    if params.blur > 0.0 {
        seen = gaussian_blur(&seen, h, w, params.blur);
    }
    if params.solarise == 1 {
        let one = |v| if v >= 0.5 { 1.0 - v } else { v };
        seen = seen.iter().map(|p| p.map(one)).collect();
    }
    for y in 0..h {
        for x in 0..w {
            let from = if params.flip == 1 { w - 1 - x } else { x };
            for c in 0..3 {
                out[(y * w + x) * 3 + c] = (seen[y * w + from][c] - mean[c]) / std[c];
            }
        }
    }
}

/// `F.resized_crop` with bilinear interpolation, of a picture of so many columns.
fn resized_crop(picture: &[u8], columns: usize, [h, w]: [usize; 2], p: &AugmentParams) -> Picture {
    let at = |y: usize, x: usize, c: usize| {
        let (y, x) = (y + p.top as usize, x + p.left as usize);
        f32::from(picture[(y * columns + x) * 3 + c]) / 255.0
    };
    let mut result = Vec::new();
    for y in 0..h {
        let (y0, y1, fy) = place(y, h, p.height as usize);
        for x in 0..w {
            let (x0, x1, fx) = place(x, w, p.width as usize);
            result.push([0, 1, 2].map(|c| {
                let above = at(y0, x0, c) * (1.0 - fx) + at(y0, x1, c) * fx;
                let below = at(y1, x0, c) * (1.0 - fx) + at(y1, x1, c) * fx;
                above * (1.0 - fy) + below * fy
            }));
        }
    }
    result
}

/// Between which two of `from` cells the centre of cell `i` of `to` lies, and how far from the
/// first.
fn place(i: usize, to: usize, from: usize) -> (usize, usize, f32) {
    let centre = ((i as f32 + 0.5) * (from as f32 / to as f32) - 0.5).max(0.0);
    let first = (centre as usize).min(from - 1);
    (first, (first + 1).min(from - 1), centre - first as f32)
}

/// `rgb_to_grayscale` of one pixel.
fn grey([r, g, b]: [f32; 3]) -> f32 {
    0.2989 * r + 0.587 * g + 0.114 * b
}

fn blend(picture: &Picture, other: impl Fn([f32; 3]) -> f32, ratio: f32) -> Picture {
    let one = |p: [f32; 3]| p.map(|v| (ratio * v + (1.0 - ratio) * other(p)).clamp(0.0, 1.0));
    picture.iter().map(|&p| one(p)).collect()
}

/// `gaussian_blur`: the whole window at once, in f64, edges mirrored.
fn gaussian_blur(picture: &Picture, h: usize, w: usize, sigma: f32) -> Picture {
    let r = radius(h, w) as isize;
    let weight = |k: isize| (-0.5 * (k as f64 / f64::from(sigma)).powi(2)).exp();
    let weights: Vec<f64> = (-r..=r).map(weight).collect();
    let total = weights.iter().sum::<f64>().powi(2);
    let mut result = Vec::new();
    for (y, x) in (0..h * w).map(|i| ((i / w) as isize, (i % w) as isize)) {
        let mut sums = [0.0; 3];
        for (j, down) in (y - r..).zip(&weights) {
            for (i, across) in (x - r..).zip(&weights) {
                let pixel = picture[mirrored(j, h) * w + mirrored(i, w)];
                for (sum, v) in sums.iter_mut().zip(pixel) {
                    *sum += down * across * f64::from(v);
                }
            }
        }
        result.push(sums.map(|sum| (sum / total) as f32));
    }
    result
}

/// `adjust_hue` of one pixel: to hue, saturation, value and back.
fn turn_hue([r, g, b]: [f32; 3], turn: f32) -> [f32; 3] {
    let most = r.max(g).max(b);
    let range = most - r.min(g).min(b);
    if range == 0.0 {
        return [most; 3];
    }
    let saturation = range / most;
    let [rc, gc, bc] = [r, g, b].map(|v| (most - v) / range);
    let hue = if most == r {
        bc - gc
    } else if most == g {
        2.0 + rc - bc
    } else {
        4.0 + gc - rc
    };
    let hue = ((hue / 6.0 + 1.0) % 1.0 + turn).rem_euclid(1.0);
    let sector = (hue * 6.0).floor();
    let f = hue * 6.0 - sector;
    let p = most * (1.0 - saturation);
    let q = most * (1.0 - saturation * f);
    let t = most * (1.0 - saturation * (1.0 - f));
    match sector as i32 % 6 {
        0 => [most, t, p],
        1 => [q, most, p],
        2 => [p, most, t],
        3 => [p, q, most],
        4 => [t, p, most],
        _ => [most, p, q],
    }
}
