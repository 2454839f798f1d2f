//! From normalised sRGB to CIE Lab, each about as large as one.

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cpu::colour::Normalised;
use crate::cuda::Pointer;
use crate::naive;
use crate::{Error, Graph, Initial, NodeId, Op, Result, Role};

/// Colours in CIE Lab.
pub(crate) struct Lab;

impl Layer for Lab {
    fn reads(&self) -> [bool; 2] {
        [true, false]
    }

    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::lab::forward(x, at.statistics[0], at.statistics[1])
    }

    fn naive_backward(&self, at: &NaiveAt, [x, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::lab::backward(x, at.statistics[0], at.statistics[1], dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        colours(at).to_lab(x, y);
    }

    fn cpu_backward(&self, at: &CpuAt, [x, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        colours(at).lab_backward(x, dy, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        at.kernels.lab(x, at.statistics, at.len / 3, y)
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [x, _, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        at.kernels.lab_backward([x, dy], at.statistics, add, at.len / 3, dx)
    }
}

fn colours(at: &CpuAt) -> Normalised {
    let [mean, std] = at.statistics;
    Normalised { mean, std }
}

impl Graph {
    /// The colours of pictures, normalised by a mean and a standard deviation that are statistics
    /// of the layer, in CIE Lab.
    pub fn lab(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        let shape = self.shape(x);
        if shape.channels != 3 {
            return Err(Error::shape(name, "red, green and blue", shape));
        }
        let id = self.push(name, Op::Lab, vec![x], shape)?;
        let (zero, one) = (Initial::Constant(0.0), Initial::Constant(1.0));
        self.parameter(id, name, "mean", &[3], zero, Role::Statistic);
        self.parameter(id, name, "std", &[3], one, Role::Statistic);
        Ok(id)
    }
}
