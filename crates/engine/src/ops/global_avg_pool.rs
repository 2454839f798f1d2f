//! The mean over all places.

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cpu::pool;
use crate::cuda::Pointer;
use crate::naive;
use crate::{Graph, NodeId, Op, Result, Shape};

/// The mean over all places.
pub(crate) struct GlobalAvgPool;

impl Layer for GlobalAvgPool {
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::pool::global_average(at.input, x)
    }

    fn naive_backward(&self, at: &NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::pool::global_average_backward(at.input, dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        pool::global_average(x, at.input, y);
    }

    fn cpu_backward(&self, at: &CpuAt, [_, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        pool::global_average_backward(dy, at.input, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        at.kernels.global_average(x, at.input, at.batch, y)
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [_, _, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        at.kernels.global_average_backward(dy, at.input, at.batch, add, dx)
    }
}

impl Graph {
    /// The mean over all places.
    pub fn global_avg_pool(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        let shape = Shape::new(1, 1, self.shape(x).channels);
        self.push(name, Op::GlobalAvgPool, vec![x], shape)
    }
}
