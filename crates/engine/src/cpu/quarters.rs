//! A picture and its quarters, all of one size; [`crate::naive::quarters`] has the loops in f64.

use rayon::prelude::*;

/// Pictures of `size`×`size` pixels: for each the whole, shrunk to half, then of each its first
/// quarter, and so on, all enlarged to the size of a picture.
pub(crate) fn quarters(pixels: &[f32], size: usize, channels: usize, to: &mut [f32]) {
    let one = size * size * channels;
    let (pictures, half) = (pixels.len() / one, size / 2);
    to.par_chunks_mut(one).enumerate().for_each(|(row, to)| {
        let (view, i) = (row / pictures, row % pictures);
        let picture = &pixels[i * one..][..one];
        let pixel = |y: usize, x: usize, c: usize| picture[(y * size + x) * channels + c];
        let small = |y: usize, x: usize, c: usize| match view {
            0 => {
                let (y, x) = (2 * y, 2 * x);
                0.25 * (pixel(y, x, c)
                    + pixel(y, x + 1, c)
                    + pixel(y + 1, x, c)
                    + pixel(y + 1, x + 1, c))
            }
            part => {
                let [down, across] = [(part - 1) / 2, (part - 1) % 2].map(|at| at * (size - half));
                pixel(down + y, across + x, c)
            }
        };
        for (at, to) in to.iter_mut().enumerate() {
            let (y, x, c) = (at / channels / size, at / channels % size, at % channels);
            let [(top, bottom, fy), (left, right, fx)] = [y, x].map(|at| between(at, size));
            let across = |y| small(y, left, c) * (1.0 - fx) + small(y, right, c) * fx;
            *to = across(top) * (1.0 - fy) + across(bottom) * fy;
        }
    });
}

/// Between which two of the half's pixels a pixel lies, and the share of the second.
fn between(at: usize, size: usize) -> (usize, usize, f32) {
    let half = size / 2;
    let place = (at as f32 + 0.5) * half as f32 / size as f32 - 0.5;
    let place = place.clamp(0.0, (half - 1) as f32);
    let low = place as usize;
    (low, (low + 1).min(half - 1), place - low as f32)
}
