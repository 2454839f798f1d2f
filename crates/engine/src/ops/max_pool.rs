//! The largest value in each window; padding never wins.

use super::{CpuAt, CudaAt, Layer, NaiveAt};
use crate::cpu::pool;
use crate::cuda::Pointer;
use crate::cuda::Sliding;
use crate::naive;
use crate::{Error, Graph, NodeId, Op, Result, Shape, Window};

/// The largest value in each window.
pub(crate) struct MaxPool(pub(crate) Window);

impl Layer for MaxPool {
    fn reads(&self) -> [bool; 2] {
        [true, true]
    }

    fn naive(&self, at: &NaiveAt, x: &[f64]) -> Vec<f64> {
        naive::pool::max(&self.naive_window(at), x)
    }

    fn naive_backward(&self, at: &NaiveAt, [x, _, dy]: [&[f64]; 3]) -> Vec<f64> {
        naive::pool::max_backward(&self.naive_window(at), x, dy)
    }

    fn cpu(&self, at: &CpuAt, x: &[f32], y: &mut [f32]) {
        self.on_cpu(at).forward(x, y);
    }

    fn cpu_backward(&self, at: &CpuAt, [x, y, dy]: [&[f32]; 3], add: bool, dx: &mut [f32]) {
        self.on_cpu(at).backward(x, y, dy, add, dx);
    }

    fn cuda(&self, at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
        at.kernels.max_pool(x, &self.on_gpu(at), y)
    }

    fn cuda_backward(
        &self,
        at: &CudaAt,
        [x, y, dy]: [Pointer; 3],
        add: bool,
        dx: Pointer,
    ) -> Result<()> {
        at.kernels.max_pool_backward([x, y, dy], &self.on_gpu(at), add, dx)
    }
}

impl MaxPool {
    fn naive_window(&self, at: &NaiveAt) -> naive::window::Sliding {
        let (batch, input, output) = (at.batch, at.input, at.output);
        naive::window::Sliding { batch, input, output, window: self.0 }
    }

    fn on_cpu(&self, at: &CpuAt) -> pool::MaxPool {
        pool::MaxPool { input: at.input, output: at.output, window: self.0 }
    }

    fn on_gpu(&self, at: &CudaAt) -> Sliding {
        Sliding { input: at.input, output: at.output, window: self.0, batch: at.batch }
    }
}

impl Graph {
    /// The largest value in each window.
    pub fn max_pool(&mut self, name: &str, x: NodeId, window: Window) -> Result<NodeId> {
        let input = self.shape(x);
        let padded = (0..2).any(|i| window.padding[i] * 2 > window.kernel[i]);
        if padded {
            let expected = "padding of at most half the window";
            return Err(Error::shape(name, expected, input));
        }
        let [height, width] = window.places(name, input)?;
        let shape = Shape::new(height, width, input.channels);
        self.push(name, Op::MaxPool(window), vec![x], shape)
    }
}
