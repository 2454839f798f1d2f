//! On a GPU, a value a thread (upsample.cu).

use crate::Result;
use crate::cuda::{Pointer, kernels, ones};
use crate::ops::CudaAt;

kernels! {
    /// Both ways.
    UpsampleKernels {
        "upsample": upsample, upsample_backward;
    }
}

/// The kernel file, by its stem.
pub(crate) const SOURCE: (&str, &str) = ("upsample", include_str!("upsample.cu"));

/// y = each place of x, four times.
pub(super) fn forward(at: &CudaAt, x: Pointer, y: Pointer) -> Result<()> {
    let [width, channels] = [at.input.width, at.input.channels].map(|n| n as u32);
    let len = 4 * at.batch * at.input.len();
    let kernel = &at.kernels.layers.upsample.upsample;
    at.kernels.launch(kernel, ones(len)?, (x, width, channels, len as u64, y))
}

/// dx (+)= the sum of the four.
pub(super) fn backward(at: &CudaAt, dy: Pointer, accumulate: bool, dx: Pointer) -> Result<()> {
    let [width, channels] = [at.input.width, at.input.channels].map(|n| n as u32);
    let len = at.batch * at.input.len();
    let arguments = (dy, width, channels, len as u64, i32::from(accumulate), dx);
    at.kernels.launch(&at.kernels.layers.upsample.upsample_backward, ones(len)?, arguments)
}
