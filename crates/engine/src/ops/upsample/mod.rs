//! Twice as high and twice as wide: each place becomes 2×2 places (nearest neighbour).

mod cpu;
mod cuda;
pub(crate) mod naive;

pub(crate) use cuda::{SOURCE, UpsampleKernels};

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cuda::Pointer;
use crate::{Graph, NodeId, Op, Result, Shape};

/// Each place becomes 2×2 places.
pub(crate) struct Upsample;

impl Layer for Upsample {
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::forward(at.input, x)
    }

    fn naive_backward(&self, at: &NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::backward(at.input, dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        cpu::forward(x, at.input, y);
    }

    fn cpu_backward(&self, at: &CpuAt, [_, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        cpu::backward(dy, at.input, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        cuda::forward(at, x, y)
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [_, _, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        cuda::backward(at, dy, add, dx)
    }
}

impl Graph {
    /// Twice as high and twice as wide: each place becomes 2×2 places.
    pub fn upsample(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        let input = self.shape(x);
        let shape = Shape::new(2 * input.height, 2 * input.width, input.channels);
        self.push(name, Op::Upsample, vec![x], shape)
    }
}
