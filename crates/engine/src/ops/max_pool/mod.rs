//! The largest value in each window; padding never wins.
//!
//! A maximum's gradient goes to the first place that attains it, in row-major order, as in PyTorch;
//! NaN is above all numbers. A window holds at least one place of the image, since padding is at
//! most half of it.

use rayon::prelude::*;

use super::{Case, CpuAt, CudaAt, NaiveAt, SavedForBackward, Unary};
use crate::cuda::{Pointer, Sliding, eights, ones};
use crate::{Error, Graph, NodeId, Op, Result, Shape, Window};

/// The largest value in each window.
pub(crate) struct MaxPool(pub(super) Window);

impl Unary for MaxPool {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::BOTH
    }

    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        self.winners(at, x).into_iter().map(|from| x[from]).collect()
    }

    // Each output's goes to its winner, added where one wins several windows.
    fn naive_backward(&self, at: &NaiveAt, [x, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        let mut dx = vec![0.0; x.len()];
        for (from, d) in self.winners(at, x).into_iter().zip(dy) {
            dx[from] += d;
        }
        dx
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        let channels = at.input.channels;
        let images = y.par_chunks_mut(at.output.len()).zip(x.par_chunks(at.input.len()));
        images.for_each(|(y, x)| {
            for (o, y) in y.chunks_exact_mut(channels).enumerate() {
                y.fill(f32::NEG_INFINITY);
                for i in self.under(at, o) {
                    for (y, x) in y.iter_mut().zip(&x[i * channels..]) {
                        // NaN wins, as in PyTorch: a diverged run must not look healthy.
                        *y = if *x > *y || x.is_nan() { *x } else { *y };
                    }
                }
            }
        });
    }

    fn cpu_backward(&self, at: &CpuAt, [x, y, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        let channels = at.input.channels;
        let (in_len, out_len) = (at.input.len(), at.output.len());
        dx.par_chunks_mut(in_len).enumerate().for_each(|(image, dx)| {
            let x = &x[image * in_len..][..in_len];
            let y = &y[image * out_len..][..out_len];
            let dy = &dy[image * out_len..][..out_len];
            if !add {
                dx.fill(0.0);
            }
            for o in 0..at.output.pixels() {
                for c in 0..channels {
                    let top = y[o * channels + c];
                    if let Some(i) = self.under(at, o).find(|i| x[i * channels + c] == top) {
                        dx[i * channels + c] += dy[o * channels + c];
                    }
                }
            }
        });
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        let (k, len) = (&at.kernels.layers, at.batch * at.output.len());
        let (function, shape) = match at.input.channels.is_multiple_of(8) {
            true => (&k.max_pool_8, eights(len)?),
            false => (&k.max_pool_1, ones(len)?),
        };
        at.kernels.launch(function, shape, (x, self.on_gpu(at).words(), len as u64, y))
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        let (k, len) = (&at.kernels.layers, at.batch * at.input.len());
        let (function, shape) = match at.input.channels.is_multiple_of(8) {
            true => (&k.max_pool_backward_8, eights(len)?),
            false => (&k.max_pool_backward_1, ones(len)?),
        };
        let arguments = (of, self.on_gpu(at).words(), len as u64, i32::from(add), dx);
        at.kernels.launch(function, shape, arguments)
    }
}

impl MaxPool {
    /// For each output value, where in `x` it comes from.
    fn winners(&self, at: &NaiveAt, x: &[f64]) -> Vec<usize> {
        let (s, channels) = (at.sliding(self.0), at.input.channels);
        let mut best: Vec<Option<usize>> = vec![None; s.batch * s.output.len()];
        s.for_each(|to, from, _| {
            for c in 0..channels {
                let (held, challenger) = (&mut best[to * channels + c], from * channels + c);
                if held.is_none_or(|h| x[challenger] > x[h] || x[challenger].is_nan()) {
                    *held = Some(challenger);
                }
            }
        });
        let some = |b: Option<usize>| b.expect("every window meets the image");
        best.into_iter().map(some).collect()
    }

    /// Places of the input under output place `o`, in order.
    fn under(&self, at: &CpuAt, o: usize) -> impl Iterator<Item = usize> {
        let (window, input, output) = (self.0, at.input, at.output);
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

    fn on_gpu(&self, at: &CudaAt) -> Sliding {
        Sliding { input: at.input, output: at.output, window: self.0, batch: at.batch }
    }
}

pub(super) fn cases() -> Vec<Case> {
    let uneven = Window { kernel: [3, 2], stride: [1, 3], padding: [1, 0] };
    let windows = [
        Window::square(2, 2, 0),
        Window::square(3, 2, 1),
        Window::square(3, 1, 1),
        Window::square(5, 3, 2),
        uneven,
    ];
    let case = |(seed, window), channels| {
        Case::new(seed, 2, [9, 7, channels], |g, x| g.max_pool("pool", x, window))
    };
    let all = (0..).zip(windows);
    all.flat_map(|window| [1, 3, 16, 33].map(|channels| case(window, channels))).collect()
}

impl Graph {
    /// The largest value in each window.
    pub fn max_pool(&mut self, name: &str, x: NodeId, window: Window) -> Result<NodeId> {
        let input = self.shape(x);
        let padded = (0..2).any(|i| window.padding[i] * 2 > window.kernel[i]);
        if padded {
            let expected = "padding of at most half the window";
            return Err(Error::shape(name, expected, input));
        }
        let [height, width] = window.places(name, input)?;
        let shape = Shape::new(height, width, input.channels);
        self.push(name, Op::MaxPool(window), vec![x], shape)
    }
}
