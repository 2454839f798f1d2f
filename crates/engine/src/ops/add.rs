//! The sum of two layers of one shape; the gradient of either is the sum's.

use super::{Case, Layer, NaiveAt, SavedForBackward};
use crate::cpu::CpuState;
use crate::cuda::CudaWalk;
use crate::{Error, Graph, NodeId, Op, Result, walk};

/// a + b.
pub(crate) struct Add;

impl Layer for Add {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::NOTHING
    }

    fn naive(&self, _: &mut NaiveAt, inputs: &[&[f64]]) -> Vec<f64> {
        naive(inputs[0], inputs[1])
    }

    fn naive_backward(&self, _: &mut NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<Vec<f64>> {
        vec![dy.to_vec(); 2]
    }

    fn cpu(&self, network: &mut CpuState, layer: &walk::Layer) -> Result<()> {
        network.add_layer(layer);
        Ok(())
    }

    fn cuda(&self, walk: &mut CudaWalk, layer: &walk::Layer) -> Result<()> {
        walk.add_layer(layer)
    }
}

pub(crate) fn naive(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// x is read three times in the second, once by both sides of one addition.
pub(super) fn cases() -> Vec<Case> {
    let with_relu = Case::over_shapes(3, |g, x| {
        let positive = g.relu("relu", x)?;
        g.add("sum", positive, x)
    });
    let shared = Case::over_shapes(4, |g, x| {
        let twice = g.add("twice", x, x)?;
        let positive = g.relu("relu", x)?;
        g.add("sum", twice, positive)
    });
    with_relu.chain(shared).collect()
}

impl Graph {
    /// The sum of two layers of one shape.
    pub fn add(&mut self, name: &str, a: NodeId, b: NodeId) -> Result<NodeId> {
        if self.shape(a) != self.shape(b) {
            return Err(Error::shape(name, self.shape(a).to_string(), self.shape(b)));
        }
        self.push(name, Op::Add, vec![a, b], self.shape(a))
    }
}
