//! Gaussian blur of a plane, as torchvision's `GaussianBlur`: first across, then down.
//!
//! With radius r, weights w(k) = exp(−k² / 2σ²) / Σ and the edge mirrored (pixel −1 is pixel 1),
//! each pass makes w(0)·v(x) + w(1)·(v(x−1) + v(x+1)) + … + w(r)·(v(x−r) + v(x+r)), added in this
//! order, no operation fused: a GPU computes the same bits. The weights come from `+ - * /` alone.

use super::params::exp;

/// Weights that a kernel on a device has room for.
pub(super) const MOST_RADIUS: usize = 64;

/// Pixels either side that a blur takes in: a window of a tenth of the lesser side, odd, at least 3
/// (as SimCLR has it: 23 for 224). The mirrored edge must lie within the picture, so one of a
/// single row or column stays as it is.
pub(super) fn radius(h: usize, w: usize) -> usize {
    let side = h.min(w);
    (side / 20).clamp(1, MOST_RADIUS).min(side - 1)
}

/// e^x for x ≤ 0, and 0 below −50. Absolute error below 1e-6: halved until the polynomial holds,
/// then squared as often.
fn exp_below_zero(mut x: f32) -> f32 {
    if x < -50.0 {
        return 0.0;
    }
    let mut halvings = 0;
    while x < -2.0 {
        x *= 0.5;
        halvings += 1;
    }
    (0..halvings).fold(exp(x), |p, _| p * p)
}

/// w(0), …, w(r).
pub(super) fn weights(sigma: f32, radius: usize) -> [f32; MOST_RADIUS + 1] {
    let mut weights = [0.0; MOST_RADIUS + 1];
    let mut sum = 0.0;
    for (k, weight) in weights[..=radius].iter_mut().enumerate() {
        let x = k as f32 / sigma;
        *weight = exp_below_zero(-0.5 * (x * x));
        sum += if k == 0 { *weight } else { 2.0 * *weight };
    }
    weights.map(|weight| weight / sum)
}

/// Where pixel `i` of `n` lies when the edges are mirrored; `i` is at most n − 1 beyond them.
pub(super) fn mirrored(i: isize, n: usize) -> usize {
    let last = n as isize - 1;
    (if i > last { 2 * last - i } else { i.abs() }) as usize
}

/// Working memory of one thread.
#[derive(Default)]
pub(super) struct BlurScratch {
    /// A row with its mirrored edges.
    row: Vec<f32>,
    /// A plane blurred across.
    across: Vec<f32>,
}

/// Blurs a plane of rows of `w` in place.
pub(super) fn blur(plane: &mut [f32], w: usize, weights: &[f32], scratch: &mut BlurScratch) {
    scratch.row.resize(w + 2 * (weights.len() - 1), 0.0);
    scratch.across.resize(plane.len(), 0.0);
    let rows = plane.chunks_exact(w);
    for (from, to) in rows.zip(scratch.across.chunks_exact_mut(w)) {
        row_across(from, weights, &mut scratch.row, to);
    }
    let h = plane.len() / w;
    for (y, to) in plane.chunks_exact_mut(w).enumerate() {
        row_down(&scratch.across, h, y, weights, to);
    }
}

fn row_across(from: &[f32], weights: &[f32], padded: &mut [f32], to: &mut [f32]) {
    let (w, r) = (from.len(), weights.len() - 1);
    padded[r..r + w].copy_from_slice(from);
    for k in 1..=r {
        padded[r - k] = from[mirrored(-(k as isize), w)];
        padded[r + w - 1 + k] = from[mirrored((w - 1 + k) as isize, w)];
    }
    first(to, from, weights[0]);
    for (k, weight) in weights.iter().enumerate().skip(1) {
        add(to, &padded[r - k..][..w], &padded[r + k..][..w], *weight);
    }
}

fn row_down(plane: &[f32], h: usize, y: usize, weights: &[f32], to: &mut [f32]) {
    let (w, y) = (to.len(), y as isize);
    let row = |y: isize| &plane[mirrored(y, h) * w..][..w];
    first(to, row(y), weights[0]);
    for (k, weight) in weights.iter().enumerate().skip(1) {
        add(to, row(y - k as isize), row(y + k as isize), *weight);
    }
}

fn first(to: &mut [f32], from: &[f32], weight: f32) {
    for (to, v) in to.iter_mut().zip(from) {
        *to = weight * v;
    }
}

fn add(to: &mut [f32], before: &[f32], after: &[f32], weight: f32) {
    for ((to, a), b) in to.iter_mut().zip(before).zip(after) {
        *to += weight * (a + b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_a_tenth_of_the_lesser_side() {
        let sizes = [(1, 9), (2, 2), (32, 32), (64, 500), (96, 96), (224, 224)];
        assert_eq!(sizes.map(|(h, w)| radius(h, w)), [0, 1, 1, 3, 4, 11]);
        assert_eq!(radius(5000, 5000), MOST_RADIUS);
    }

    #[test]
    fn weights_are_those_of_the_formula() {
        for (sigma, r) in [(0.1, 1), (0.1, 11), (0.3, 4), (1.0, 11), (2.0, 3), (10.0, 64)] {
            let exact: Vec<f64> =
                (0..=r).map(|k| (-0.5 * (k as f64 / f64::from(sigma)).powi(2)).exp()).collect();
            let sum = 2.0 * exact.iter().sum::<f64>() - 1.0;
            let got = weights(sigma, r);
            for (exact, got) in exact.iter().zip(got) {
                assert!((exact / sum - f64::from(got)).abs() < 1e-6, "{sigma} {r}");
            }
            assert!(got[r + 1..].iter().all(|w| *w == 0.0));
        }
        assert_eq!(weights(1e-30, 2)[..3], [1.0, 0.0, 0.0]);
    }

    #[test]
    fn edges_are_mirrored() {
        let places = [-2, -1, 0, 3, 4, 5].map(|i| mirrored(i, 4));
        assert_eq!(places, [2, 1, 0, 3, 2, 1]);
    }

    #[test]
    fn one_colour_stays() {
        let mut plane = vec![0.7; 60];
        blur(&mut plane, 10, &weights(1.3, 2)[..3], &mut BlurScratch::default());
        assert!(plane.iter().all(|v| (v - 0.7).abs() < 1e-6));
    }
}
