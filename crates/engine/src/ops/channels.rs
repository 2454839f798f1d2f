//! Channels moved: channel c is the input's channel c + first where there is one, else zero.

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cpu::elementwise;
use crate::cuda::Pointer;
use crate::naive;
use crate::{Error, Graph, NodeId, Op, Result, Shape};

/// Slices and pads: the input's channel that is the first.
pub(crate) struct Channels(pub(crate) isize);

impl Layer for Channels {
    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::channels::forward(x, at.input.channels, self.0, at.output.channels)
    }

    fn naive_backward(&self, at: &NaiveAt, [_, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::channels::forward(dy, at.output.channels, -self.0, at.input.channels)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        elementwise::channels(x, [at.input.channels, at.output.channels], self.0, false, y);
    }

    fn cpu_backward(&self, at: &CpuAt, [_, _, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        elementwise::channels(dy, [at.output.channels, at.input.channels], -self.0, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        let turned = [at.input.channels, at.output.channels];
        at.kernels.channels(x, turned, self.0, false, at.len, y)
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [_, _, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        let turned = [at.output.channels, at.input.channels];
        at.kernels.channels(dy, turned, -self.0, add, at.batch * at.input.len(), dx)
    }
}

impl Graph {
    /// So many channels of a layer, from one of them on; zeros before and beyond those there are.
    pub fn channels(&mut self, name: &str, x: NodeId, first: isize, out: usize) -> Result<NodeId> {
        let input = self.shape(x);
        let there = -(out as isize) < first && first < input.channels as isize;
        if !there {
            let expected = format!("channels of which some are among {out} from {first} on");
            return Err(Error::shape(name, expected, input));
        }
        let shape = Shape::new(input.height, input.width, out);
        self.push(name, Op::Channels { first }, vec![x], shape)
    }

    /// The channels of two layers of as many places side by side: each one's moved to its place,
    /// and added.
    pub fn concat(&mut self, name: &str, a: NodeId, b: NodeId) -> Result<NodeId> {
        let [own, other] = [a, b].map(|x| self.shape(x).channels);
        let left = self.channels(&format!("{name}.0"), a, 0, own + other)?;
        let right = self.channels(&format!("{name}.1"), b, -(own as isize), own + other)?;
        self.add(name, left, right)
    }
}
