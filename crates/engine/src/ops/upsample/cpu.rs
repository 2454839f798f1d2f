//! Each place four times; the maths is in [`super::naive`]. Works row by row of the
//! input, whose two rows of the output lie one after the other.

use rayon::prelude::*;

use crate::Shape;

/// y = each place of x, four times.
pub(super) fn forward(x: &[f32], input: Shape, y: &mut [f32]) {
    let (row, channels) = (input.width * input.channels, input.channels);
    let rows = y.par_chunks_mut(4 * row).zip(x.par_chunks(row));
    rows.for_each(|(y, x)| {
        let (upper, lower) = y.split_at_mut(2 * row);
        for (to, from) in upper.chunks_exact_mut(2 * channels).zip(x.chunks(channels)) {
            to[..channels].copy_from_slice(from);
            to[channels..].copy_from_slice(from);
        }
        lower.copy_from_slice(upper);
    });
}

/// dx (+)= the sum of the four.
pub(super) fn backward(dy: &[f32], input: Shape, accumulate: bool, dx: &mut [f32]) {
    let (row, channels) = (input.width * input.channels, input.channels);
    let rows = dx.par_chunks_mut(row).zip(dy.par_chunks(4 * row));
    rows.for_each(|(dx, dy)| {
        let (upper, lower) = dy.split_at(2 * row);
        for (i, dx) in dx.iter_mut().enumerate() {
            let left = i / channels * 2 * channels + i % channels;
            let right = left + channels;
            let sum = (upper[left] + upper[right]) + (lower[left] + lower[right]);
            *dx = if accumulate { *dx + sum } else { sum };
        }
    });
}
