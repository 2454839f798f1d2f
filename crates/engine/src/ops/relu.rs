//! max(x, 0).

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cpu::elementwise;
use crate::cuda::Pointer;
use crate::naive;
use crate::{Graph, NodeId, Op, Result};

/// ReLU.
pub(crate) struct Relu;

impl Layer for Relu {
    fn reads(&self) -> [bool; 2] {
        [false, true]
    }

    fn naive(&self, _: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::elementwise::relu(x)
    }

    fn naive_backward(&self, _: &NaiveAt, [_, y, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::elementwise::relu_backward(y, dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        elementwise::relu(at.arch, x, y);
    }

    fn cpu_backward(&self, at: &CpuAt, [_, y, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        elementwise::pass_gradient(at.arch, Some(y), dy, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        at.kernels.finish(x, 0, 0, true, at.output.channels, at.len, y)
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [_, y, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        at.kernels.pass_gradient(y, dy, add, at.len, dx)
    }
}

impl Graph {
    /// ReLU.
    pub fn relu(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        self.push(name, Op::Relu, vec![x], self.shape(x))
    }
}
