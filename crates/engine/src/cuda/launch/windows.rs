//! Launches over windows: convolution.cu.

use super::{Kernels, Pointer, argument, blocks, ones};
use crate::{Result, Shape, Window};

/// A window over pictures, as common.cuh has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    input: [u32; 3],
    output: [u32; 3],
    window: [u32; 6],
}
argument!(Windows);

/// A window over the pictures of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Sliding {
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    pub(crate) window: Window,
    pub(crate) batch: usize,
}

impl Sliding {
    pub(crate) fn words(&self) -> Windows {
        Windows { input: three(self.input), output: three(self.output), window: six(self.window) }
    }
}

impl Kernels {
    /// The places that a 1×1 window reads; a multiple of eight channels.
    pub(crate) fn gather(&self, x: Pointer, of: &Sliding, y: Pointer) -> Result<()> {
        let eights = of.batch * of.output.pixels() * of.input.channels / 8;
        self.launch(&self.of.gather, ones(eights)?, (x, of.words(), eights as u64, y))
    }

    /// The opposite of [`Kernels::gather`]: gradients go back to where the values came from.
    pub(crate) fn scatter(
        &self,
        y: Pointer,
        of: &Sliding,
        accumulate: bool,
        x: Pointer,
    ) -> Result<()> {
        let eights = of.batch * of.input.len() / 8;
        let arguments = (y, of.words(), eights as u64, i32::from(accumulate), x);
        self.launch(&self.of.scatter, ones(eights)?, arguments)
    }

    pub(crate) fn direct_forward(
        &self,
        [x, w]: [Pointer; 2],
        of: &Sliding,
        y: Pointer,
    ) -> Result<()> {
        let len = of.batch * of.output.len();
        self.launch(&self.of.direct_forward, ones(len)?, (x, w, of.words(), len as u64, y))
    }

    pub(crate) fn direct_input_gradient(
        &self,
        [w, dy]: [Pointer; 2],
        of: &Sliding,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let len = of.batch * of.input.len();
        let arguments = (w, dy, of.words(), len as u64, i32::from(accumulate), dx);
        self.launch(&self.of.direct_input_gradient, ones(len)?, arguments)
    }

    pub(crate) fn direct_weight_gradient(
        &self,
        [x, dy]: [Pointer; 2],
        of: &Sliding,
        dw: Pointer,
    ) -> Result<()> {
        let [kh, kw] = of.window.kernel;
        let shape = blocks(of.output.channels * kh * kw * of.input.channels, 128)?;
        let arguments = (x, dy, of.words(), of.batch as u32, dw);
        self.launch(&self.of.direct_weight_gradient, shape, arguments)
    }
}

fn three(s: Shape) -> [u32; 3] {
    [s.height, s.width, s.channels].map(|v| v as u32)
}

fn six(w: Window) -> [u32; 6] {
    let [a, b, c] = [w.kernel, w.stride, w.padding];
    [a[0], a[1], b[0], b[1], c[0], c[1]].map(|v| v as u32)
}
