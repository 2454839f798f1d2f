//! Divides each image's vector by its Euclidean norm.

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cpu::normalise;
use crate::cuda::Pointer;
use crate::naive;
use crate::{Graph, NodeId, Op, Result};

/// Unit length.
pub(crate) struct L2Normalise;

impl Layer for L2Normalise {
    fn reads(&self) -> [bool; 2] {
        [true, true]
    }

    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::l2_normalise::forward(at.input.len(), x)
    }

    fn naive_backward(&self, at: &NaiveAt, [x, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::l2_normalise::backward(at.input.len(), x, dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        normalise::forward(x, at.input.len(), y);
    }

    fn cpu_backward(&self, at: &CpuAt, [x, y, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        normalise::backward(x, y, dy, at.input.len(), add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        at.kernels.l2_normalise(x, at.batch, at.input.len(), y, at.wide)
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [x, _, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        at.kernels.l2_normalise_backward(x, [dy, at.wide], at.batch, at.input.len(), add, dx)
    }
}

impl Graph {
    /// Each picture's vector divided by its norm.
    pub fn l2_normalise(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        self.push(name, Op::L2Normalise, vec![x], self.shape(x))
    }
}
