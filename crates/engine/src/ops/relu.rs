//! max(x, 0), and NaN where x is NaN, as in PyTorch. The gradient is dy where the output is above
//! zero; at zero it is 0, as in PyTorch.

use rayon::prelude::*;

use super::{Case, CpuAt, CudaAt, NaiveAt, SavedForBackward, Unary};
use crate::cpu::elementwise::{TASK, at_least, pass_gradient};
use crate::cpu::vectorised;
use crate::cuda::Pointer;
use crate::{Graph, NodeId, Op, Result};

/// ReLU.
pub(crate) struct Relu;

impl Unary for Relu {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::OUTPUT
    }

    fn naive(&self, _: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive(x)
    }

    fn naive_backward(&self, _: &NaiveAt, [_, y, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive_backward(y, dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        vectorised! {
            fn task<'a>(x: &'a [f32], y: &'a mut [f32]) {
                for (y, x) in y.iter_mut().zip(x) {
                    *y = at_least(0.0, *x);
                }
            }
        }
        let tasks = y.par_chunks_mut(TASK).zip(x.par_chunks(TASK));
        tasks.for_each(|(y, x)| task(at.arch, x, y));
    }

    fn cpu_backward(&self, at: &CpuAt, [_, y, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        pass_gradient(at.arch, Some(y), dy, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        at.kernels.finish(x, 0, 0, true, at.output.channels, at.len, y)
    }

    fn cuda_backward(&self, at: &CudaAt, of: [Pointer; 3], add: bool, dx: Pointer) -> Result<()> {
        let [_, y, dy] = of;
        at.kernels.pass_gradient(y, dy, add, at.len, dx)
    }
}

pub(super) fn naive(x: &[f64]) -> Vec<f64> {
    let floor = |v: &f64| if 0.0 > *v { 0.0 } else { *v };
    x.iter().map(floor).collect()
}

pub(super) fn naive_backward(y: &[f64], dy: &[f64]) -> Vec<f64> {
    let pass = |(y, d): (&f64, &f64)| if *y > 0.0 { *d } else { 0.0 };
    y.iter().zip(dy).map(pass).collect()
}

pub(super) fn cases() -> Vec<Case> {
    Case::over_shapes(2, |g, x| g.relu("relu", x)).collect()
}

impl Graph {
    /// ReLU.
    pub fn relu(&mut self, name: &str, x: NodeId) -> Result<NodeId> {
        self.push(name, Op::Relu, vec![x], self.shape(x))
    }
}
