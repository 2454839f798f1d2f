//! Max pooling and the global average.
//!
//! A maximum's gradient goes to the first place that attains it, in row-major order, as in PyTorch;
//! NaN is above all numbers. Padding never wins: a window holds at least one place of the picture,
//! since padding is at most half of it.

use super::window::Sliding;
use crate::Shape;

/// The largest value of each window and channel.
pub fn max(s: &Sliding, x: &[f64]) -> Vec<f64> {
    winners(s, x).into_iter().map(|from| x[from]).collect()
}

/// The gradient of the input: each output's goes to its winner, added where one wins several
/// windows.
pub fn max_backward(s: &Sliding, x: &[f64], dy: &[f64]) -> Vec<f64> {
    let mut dx = vec![0.0; x.len()];
    for (from, d) in winners(s, x).into_iter().zip(dy) {
        dx[from] += d;
    }
    dx
}

/// For each output value, where in `x` it comes from.
fn winners(s: &Sliding, x: &[f64]) -> Vec<usize> {
    let channels = s.input.channels;
    let mut best: Vec<Option<usize>> = vec![None; s.batch * s.output.len()];
    s.for_each(|to, from, _| {
        for c in 0..channels {
            let (held, challenger) = (&mut best[to * channels + c], from * channels + c);
            if held.is_none_or(|h| x[challenger] > x[h] || x[challenger].is_nan()) {
                *held = Some(challenger);
            }
        }
    });
    let some = |b: Option<usize>| b.expect("every window meets the picture");
    best.into_iter().map(some).collect()
}

/// The mean of each channel over a picture's places; `input` is one picture's shape.
pub fn global_average(input: Shape, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; x.len() / input.pixels()];
    let pictures = x.chunks(input.len());
    for (to, picture) in y.chunks_mut(input.channels).zip(pictures) {
        for pixel in picture.chunks(input.channels) {
            for (mean, v) in to.iter_mut().zip(pixel) {
                *mean += v / input.pixels() as f64;
            }
        }
    }
    y
}

/// Its gradient: each place gets an equal share.
pub fn global_average_backward(input: Shape, dy: &[f64]) -> Vec<f64> {
    let mut dx = Vec::with_capacity(dy.len() * input.pixels());
    for picture in dy.chunks(input.channels) {
        for _ in 0..input.pixels() {
            dx.extend(picture.iter().map(|d| d / input.pixels() as f64));
        }
    }
    dx
}
