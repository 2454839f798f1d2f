//! Launches over windows: pool.cu's pooling, and convolution.cu.

use std::ffi::c_void;

use super::{BLOCK, Kernels, Pointer, eights, ones, side_by_side};
use crate::{Result, Shape, Window};

/// A window over pictures, as common.cuh has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Windows {
    input: [u32; 3],
    output: [u32; 3],
    window: [u32; 6],
}

/// A window over the pictures of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Sliding {
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    pub(crate) window: Window,
    pub(crate) batch: usize,
}

impl Sliding {
    fn words(&self) -> Windows {
        Windows { input: three(self.input), output: three(self.output), window: six(self.window) }
    }
}

impl Kernels {
    pub(crate) fn max_pool(&self, x: Pointer, of: &Sliding, y: Pointer) -> Result<()> {
        let (s, len) = (of.words(), of.batch * of.output.len());
        let n = len as u64;
        match eight(of.input) {
            true => launch!(self.max_pool_8, eights(len)?, [BLOCK, 1], x, s, n, y),
            false => launch!(self.max_pool_1, ones(len)?, [BLOCK, 1], x, s, n, y),
        }
    }

    pub(crate) fn max_pool_backward(
        &self,
        [x, y, dy]: [Pointer; 3],
        of: &Sliding,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let (s, len) = (of.words(), of.batch * of.input.len());
        let (n, add) = (len as u64, i32::from(accumulate));
        let (function, grid) = match eight(of.input) {
            true => (&self.max_pool_backward_8, eights(len)?),
            false => (&self.max_pool_backward_1, ones(len)?),
        };
        let arguments = arguments!(x, y, dy, s, n, add, dx);
        self.launch(function, grid, [BLOCK, 1], 0, &mut { arguments })
    }

    pub(crate) fn global_average(
        &self,
        x: Pointer,
        input: Shape,
        batch: usize,
        y: Pointer,
    ) -> Result<()> {
        let (pixels, c) = (input.pixels() as u32, input.channels as u32);
        let len = batch * input.channels;
        let n = len as u64;
        launch!(self.global_average, ones(len)?, [BLOCK, 1], x, pixels, c, n, y)
    }

    pub(crate) fn global_average_backward(
        &self,
        dy: Pointer,
        input: Shape,
        batch: usize,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let (pixels, c) = (input.pixels() as u32, input.channels as u32);
        let len = batch * input.len();
        let (n, add) = (len as u64, i32::from(accumulate));
        launch!(self.global_average_backward, eights(len)?, [BLOCK, 1], dy, pixels, c, n, add, dx)
    }

    pub(crate) fn upsample(
        &self,
        x: Pointer,
        input: Shape,
        batch: usize,
        y: Pointer,
    ) -> Result<()> {
        let ([_, width, c], len) = (three(input), 4 * batch * input.len());
        let n = len as u64;
        launch!(self.upsample, ones(len)?, [BLOCK, 1], x, width, c, n, y)
    }

    pub(crate) fn upsample_backward(
        &self,
        dy: Pointer,
        input: Shape,
        batch: usize,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let ([_, width, c], len) = (three(input), batch * input.len());
        let (grid, n, add) = (ones(len)?, len as u64, i32::from(accumulate));
        let arguments = arguments!(dy, width, c, n, add, dx);
        let function = &self.upsample_backward;
        self.launch(function, grid, [BLOCK, 1], 0, &mut { arguments })
    }

    /// The places that a 1×1 window reads; a multiple of eight channels.
    pub(crate) fn gather(&self, x: Pointer, of: &Sliding, y: Pointer) -> Result<()> {
        let eights = of.batch * of.output.pixels() * of.input.channels / 8;
        let (s, n) = (of.words(), eights as u64);
        launch!(self.gather, ones(eights)?, [BLOCK, 1], x, s, n, y)
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
        let (s, n) = (of.words(), eights as u64);
        let add = i32::from(accumulate);
        launch!(self.scatter, ones(eights)?, [BLOCK, 1], y, s, n, add, x)
    }

    pub(crate) fn direct_forward(
        &self,
        [x, w]: [Pointer; 2],
        of: &Sliding,
        y: Pointer,
    ) -> Result<()> {
        let (s, len) = (of.words(), of.batch * of.output.len());
        let n = len as u64;
        launch!(self.direct_forward, ones(len)?, [BLOCK, 1], x, w, s, n, y)
    }

    pub(crate) fn direct_input_gradient(
        &self,
        [w, dy]: [Pointer; 2],
        of: &Sliding,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let (s, len) = (of.words(), of.batch * of.input.len());
        let (n, add) = (len as u64, i32::from(accumulate));
        launch!(self.direct_input_gradient, ones(len)?, [BLOCK, 1], w, dy, s, n, add, dx)
    }

    pub(crate) fn direct_weight_gradient(
        &self,
        [x, dy]: [Pointer; 2],
        of: &Sliding,
        dw: Pointer,
    ) -> Result<()> {
        let (s, [kh, kw]) = (of.words(), of.window.kernel);
        let weights = side_by_side(of.output.channels * kh * kw * of.input.channels)?;
        let batch = of.batch as u32;
        launch!(self.direct_weight_gradient, [weights, 1], [128, 1], x, dy, s, batch, dw)
    }
}

/// Whether eight channels of a place lie together, aligned.
fn eight(s: Shape) -> bool {
    s.channels.is_multiple_of(8)
}

fn three(s: Shape) -> [u32; 3] {
    [s.height, s.width, s.channels].map(|v| v as u32)
}

fn six(w: Window) -> [u32; 6] {
    let [a, b, c] = [w.kernel, w.stride, w.padding];
    [a[0], a[1], b[0], b[1], c[0], c[1]].map(|v| v as u32)
}
