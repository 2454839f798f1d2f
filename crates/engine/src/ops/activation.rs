//! A function of each value alone.

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cpu::activation;
use crate::cuda::Pointer;
use crate::naive;
use crate::{Activation, Error, Graph, NodeId, Op, Result};

/// A function of each value alone.
pub(crate) struct ActivationLayer(pub(crate) Activation);

impl Layer for ActivationLayer {
    fn reads(&self) -> [bool; 2] {
        [false, true]
    }

    fn naive(&self, _: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::activation::forward(self.0, x)
    }

    fn naive_backward(&self, _: &NaiveAt, [_, y, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::activation::backward(self.0, y, dy)
    }

    fn cpu(&self, _: &CpuAt, x: &[f32], y: &mut [f32]) {
        activation::forward(self.0, x, y);
    }

    fn cpu_backward(&self, _: &CpuAt, [_, y, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        activation::backward(self.0, y, dy, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        at.kernels.activation(self.0, x, at.len, y)
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [_, y, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        at.kernels.activation_backward(self.0, [y, dy], add, at.len, dx)
    }
}

impl Graph {
    /// A function of each value alone.
    pub fn activation(&mut self, name: &str, x: NodeId, activation: Activation) -> Result<NodeId> {
        if let Activation::LeakyRelu(share) = activation
            && !(share > 0.0 && share < 1.0)
        {
            return Err(Error::Plan(format!("{name}: a leak of {share} is not between 0 and 1")));
        }
        self.push(name, Op::Activation(activation), vec![x], self.shape(x))
    }
}
