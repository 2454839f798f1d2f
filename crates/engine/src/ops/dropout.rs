//! Zeroes each value with a probability in training, and scales the rest.

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cpu::elementwise;
use crate::cuda::Pointer;
use crate::naive::elementwise::{dropout_mask, masked};
use crate::{Error, Graph, NodeId, Op, Result};

/// Dropout, with this probability.
pub(crate) struct Dropout(pub(crate) f32);

impl Layer for Dropout {
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        match at.draw {
            Some((key, step)) => masked(x, &dropout_mask(key, step, self.0, x.len())),
            None => x.to_vec(),
        }
    }

    fn naive_backward(&self, at: &NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        self.naive(at, dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        match at.draw {
            Some((key, step, rank)) => elementwise::dropout(key, step, rank, self.0, x, false, y),
            None => y.copy_from_slice(x),
        }
    }

    fn cpu_backward(&self, at: &CpuAt, [_, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        if let Some((key, step, rank)) = at.draw {
            elementwise::dropout(key, step, rank, self.0, dy, add, dx);
        }
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        match at.draw {
            Some((key, step, rank)) => {
                at.kernels.dropout(x, key, (step, rank), self.0, false, at.len, y)
            }
            None => at.kernels.finish(x, 0, 0, false, at.output.channels, at.len, y),
        }
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [_, _, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        match at.draw {
            Some((key, step, rank)) => {
                at.kernels.dropout(dy, key, (step, rank), self.0, add, at.len, dx)
            }
            None => Ok(()),
        }
    }
}

impl Graph {
    /// Dropout.
    pub fn dropout(&mut self, name: &str, x: NodeId, p: f32) -> Result<NodeId> {
        if !(0.0..1.0).contains(&p) {
            return Err(Error::Plan(format!("{name}: a dropout of {p} is not in 0..1")));
        }
        self.push(name, Op::Dropout(p), vec![x], self.shape(x))
    }
}
