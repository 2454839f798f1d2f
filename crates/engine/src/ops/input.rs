//! The pictures.

use super::{Case, Layer, NaiveAt, SavedForBackward};
use crate::cpu::CpuState;
use crate::cuda::CudaWalk;
use crate::{Graph, NodeId, Op, Result, Shape, walk};

/// What a graph begins with: nothing is computed.
pub(crate) struct Input;

impl Layer for Input {
    fn saved(&self) -> SavedForBackward {
        SavedForBackward::NOTHING
    }

    fn naive(&self, _: &mut NaiveAt, _: &[&[f64]]) -> Vec<f64> {
        unreachable!("the input is the first layer and no other")
    }

    fn naive_backward(&self, _: &mut NaiveAt, _: [&[f64]; 3]) -> Vec<Vec<f64>> {
        unreachable!("the input is the first layer and no other")
    }

    fn cpu(&self, _: &mut CpuState, _: &walk::Layer) -> Result<()> {
        Ok(())
    }

    fn cuda(&self, _: &mut CudaWalk, _: &walk::Layer) -> Result<()> {
        Ok(())
    }
}

pub(super) fn cases() -> Vec<Case> {
    vec![]
}

impl Graph {
    /// The pictures; a graph has one input, its first layer.
    pub fn input(&mut self, height: usize, width: usize, channels: usize) -> NodeId {
        assert!(self.nodes().is_empty(), "a graph has one input, added first");
        let shape = Shape::new(height, width, channels);
        self.push("input", Op::Input, vec![], shape).expect("no layer has its name yet")
    }
}
