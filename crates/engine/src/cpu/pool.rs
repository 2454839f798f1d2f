//! Max pool and global average pool.
//!
//! ```text
//! y[o][c] = max over the window of x[i][c]; the gradient goes to the first maximum   (dx = or +=)
//! y[c]    = mean over all places of x[i][c]; dx[i][c] (+)= dy[c] / places
//! ```

use rayon::prelude::*;

use crate::{Shape, Window};

/// A max pool's geometry.
#[derive(Clone, Copy)]
pub(crate) struct MaxPool {
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    pub(crate) window: Window,
}

impl MaxPool {
    /// Places of the input under output place `o`, in order.
    fn under(&self, o: usize) -> impl Iterator<Item = usize> {
        let MaxPool { input, output, window } = *self;
        let span = |o: usize, axis: usize, extent: usize| {
            let start = o * window.stride[axis];
            let first = start.max(window.padding[axis]) - window.padding[axis];
            let last =
                (start + window.kernel[axis]).max(window.padding[axis]) - window.padding[axis];
            first..last.min(extent)
        };
        let rows = span(o / output.width, 0, input.height);
        let columns = span(o % output.width, 1, input.width);
        rows.flat_map(move |y| columns.clone().map(move |x| y * input.width + x))
    }

    pub(crate) fn forward(&self, x: &[f32], y: &mut [f32]) {
        let channels = self.input.channels;
        let pictures = y.par_chunks_mut(self.output.len()).zip(x.par_chunks(self.input.len()));
        pictures.for_each(|(y, x)| {
            for (o, y) in y.chunks_exact_mut(channels).enumerate() {
                y.fill(f32::NEG_INFINITY);
                for i in self.under(o) {
                    for (y, x) in y.iter_mut().zip(&x[i * channels..]) {
                        // NaN wins, as in PyTorch: a diverged run must not look healthy.
                        *y = if *x > *y || x.is_nan() { *x } else { *y };
                    }
                }
            }
        });
    }

    pub(crate) fn backward(
        &self,
        x: &[f32],
        y: &[f32],
        dy: &[f32],
        accumulate: bool,
        dx: &mut [f32],
    ) {
        let channels = self.input.channels;
        let (in_len, out_len) = (self.input.len(), self.output.len());
        dx.par_chunks_mut(in_len).enumerate().for_each(|(picture, dx)| {
            let x = &x[picture * in_len..][..in_len];
            let y = &y[picture * out_len..][..out_len];
            let dy = &dy[picture * out_len..][..out_len];
            if !accumulate {
                dx.fill(0.0);
            }
            for o in 0..self.output.pixels() {
                for c in 0..channels {
                    let top = y[o * channels + c];
                    if let Some(i) = self.under(o).find(|i| x[i * channels + c] == top) {
                        dx[i * channels + c] += dy[o * channels + c];
                    }
                }
            }
        });
    }
}

/// y = mean over places.
pub(crate) fn global_average(x: &[f32], input: Shape, y: &mut [f32]) {
    let scale = 1.0 / input.pixels() as f32;
    let pictures = y.par_chunks_mut(input.channels).zip(x.par_chunks(input.len()));
    pictures.for_each(|(y, x)| {
        y.fill(0.0);
        for x in x.chunks_exact(input.channels) {
            for (y, x) in y.iter_mut().zip(x) {
                *y += x;
            }
        }
        y.iter_mut().for_each(|y| *y *= scale);
    });
}

/// dx (+)= dy / places.
pub(crate) fn global_average_backward(dy: &[f32], input: Shape, accumulate: bool, dx: &mut [f32]) {
    let scale = 1.0 / input.pixels() as f32;
    let pictures = dx.par_chunks_mut(input.len()).zip(dy.par_chunks(input.channels));
    pictures.for_each(|(dx, dy)| {
        for dx in dx.chunks_exact_mut(input.channels) {
            for (dx, dy) in dx.iter_mut().zip(dy) {
                *dx = if accumulate { *dx } else { 0.0 } + dy * scale;
            }
        }
    });
}
