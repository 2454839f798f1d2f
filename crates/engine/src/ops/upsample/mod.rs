//! Twice as high and twice as wide: each place becomes 2×2 places (nearest neighbour):
//! y[2i + a][2j + b][c] = x[i][j][c] with a and b of 0 and 1; dx (+)= the sum of the four.

use rayon::prelude::*;

use super::{Case, CpuAt, CudaAt, NaiveAt, Unary};
use crate::cuda::{Pointer, ones};
use crate::{Graph, NodeId, Op, Result, Shape};

/// Each place becomes 2×2 places.
pub(crate) struct Upsample;

impl Unary for Upsample {
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; 4 * x.len()];
        for_each(at.input, x.len(), |from, to| y[to] = x[from]);
        y
    }

    fn naive_backward(&self, at: &NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        let mut dx = vec![0.0; dy.len() / 4];
        for_each(at.input, dy.len() / 4, |from, to| dx[from] += dy[to]);
        dx
    }

    // Row by row of the input, whose two rows of the output lie one after the other.
    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        let (row, channels) = (at.input.width * at.input.channels, at.input.channels);
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

    fn cpu_backward(&self, at: &CpuAt, [_, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        let (row, channels) = (at.input.width * at.input.channels, at.input.channels);
        let rows = dx.par_chunks_mut(row).zip(dy.par_chunks(4 * row));
        rows.for_each(|(dx, dy)| {
            let (upper, lower) = dy.split_at(2 * row);
            for (i, dx) in dx.iter_mut().enumerate() {
                let left = i / channels * 2 * channels + i % channels;
                let right = left + channels;
                let sum = (upper[left] + upper[right]) + (lower[left] + lower[right]);
                *dx = if add { *dx + sum } else { sum };
            }
        });
    }

    // A value a thread.
    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        let [width, channels] = [at.input.width, at.input.channels].map(|n| n as u32);
        let len = 4 * at.batch * at.input.len();
        at.launch(|k| &k.upsample, ones(len)?, (x, width, channels, len as u64, y))
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        let [width, channels] = [at.input.width, at.input.channels].map(|n| n as u32);
        let len = at.batch * at.input.len();
        let arguments = (of[2], width, channels, len as u64, i32::from(add), dx);
        at.launch(|k| &k.upsample_backward, ones(len)?, arguments)
    }
}

/// Every value of so many of an input, with each of its places in the output.
fn for_each(input: Shape, len: usize, mut each: impl FnMut(usize, usize)) {
    let (width, channels) = (input.width, input.channels);
    for from in 0..len {
        let (row, column, c) = (from / channels / width, from / channels % width, from % channels);
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            // Rows of one image follow those of the one before: doubled, they still do.
            let to = (2 * row + a) * 2 * width + 2 * column + b;
            each(from, to * channels + c);
        }
    }
}

pub(super) fn cases() -> Vec<Case> {
    let alone = Case::over_shapes(32, |g, x| g.upsample("up", x));
    let added = Case::over_shapes(33, |g, x| {
        let [a, b] = ["a", "b"].map(|name| g.upsample(name, x));
        g.add("sum", a?, b?)
    });
    alone.chain(added).collect()
}

impl Graph {
    /// Twice as high and twice as wide: each place becomes 2×2 places.
    pub fn upsample(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        let input = self.shape(x);
        let shape = Shape::new(2 * input.height, 2 * input.width, input.channels);
        self.push(name, Op::Upsample, vec![x], shape)
    }
}
