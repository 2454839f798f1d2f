//! The mean over all places: y[c] = mean of x[i][c]; dx[i][c] (+)= dy[c] / places.

use rayon::prelude::*;

use super::{Case, CpuAt, CudaAt, NaiveAt, Unary};
use crate::cuda::{Pointer, eights, ones};
use crate::{Graph, NodeId, Op, Result, Shape};

/// The mean over all places.
pub(crate) struct GlobalAvgPool;

impl Unary for GlobalAvgPool {
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        let input = at.input;
        let mut y = vec![0.0; x.len() / input.pixels()];
        let images = x.chunks(input.len());
        for (to, image) in y.chunks_mut(input.channels).zip(images) {
            for pixel in image.chunks(input.channels) {
                for (mean, v) in to.iter_mut().zip(pixel) {
                    *mean += v / input.pixels() as f64;
                }
            }
        }
        y
    }

    fn naive_backward(&self, at: &NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        let input = at.input;
        let mut dx = Vec::with_capacity(dy.len() * input.pixels());
        for image in dy.chunks(input.channels) {
            for _ in 0..input.pixels() {
                dx.extend(image.iter().map(|d| d / input.pixels() as f64));
            }
        }
        dx
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        let input = at.input;
        let scale = 1.0 / input.pixels() as f32;
        let images = y.par_chunks_mut(input.channels).zip(x.par_chunks(input.len()));
        images.for_each(|(y, x)| {
            y.fill(0.0);
            for x in x.chunks_exact(input.channels) {
                for (y, x) in y.iter_mut().zip(x) {
                    *y += x;
                }
            }
            y.iter_mut().for_each(|y| *y *= scale);
        });
    }

    fn cpu_backward(&self, at: &CpuAt, [_, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        let input = at.input;
        let scale = 1.0 / input.pixels() as f32;
        let images = dx.par_chunks_mut(input.len()).zip(dy.par_chunks(input.channels));
        images.for_each(|(dx, dy)| {
            for dx in dx.chunks_exact_mut(input.channels) {
                for (dx, dy) in dx.iter_mut().zip(dy) {
                    *dx = if add { *dx } else { 0.0 } + dy * scale;
                }
            }
        });
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        let (pixels, c) = (at.input.pixels() as u32, at.input.channels as u32);
        let len = at.batch * at.input.channels;
        at.launch(|k| &k.global_average, ones(len)?, (x, pixels, c, len as u64, y))
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        let (pixels, c) = (at.input.pixels() as u32, at.input.channels as u32);
        let len = at.batch * at.input.len();
        let arguments = (of[2], pixels, c, len as u64, i32::from(add), dx);
        at.launch(|k| &k.global_average_backward, eights(len)?, arguments)
    }
}

pub(super) fn cases() -> Vec<Case> {
    Case::over_shapes(5, |g, x| g.global_avg_pool("pool", x)).collect()
}

impl Graph {
    /// The mean over all places.
    pub fn global_avg_pool(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        let shape = Shape::new(1, 1, self.shape(x).channels);
        self.push(name, Op::GlobalAvgPool, vec![x], shape)
    }
}
