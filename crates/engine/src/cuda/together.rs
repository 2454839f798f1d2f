//! What a GPU's stream has where several processes take its steps: NCCL, and a stream of its own
//! for sums that go on beside a pass.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};

use super::launch::{Pointer, side_by_side};
use super::nccl::{Kind, Nccl};
use super::{Cuda, FIRST, failed};
use crate::{Communicator, Result};

/// Threads of a block.
const THREADS: u32 = 256;

/// The other processes, and the ways to them.
pub(super) struct Together {
    pub(super) nccl: Arc<Nccl>,
    /// Carries gradients while a backward pass goes on.
    pub(super) carrier: Arc<CudaStream>,
    /// This process's share of a loss, and then the sum of all.
    share: CudaSlice<f64>,
    scale: CudaFunction,
}

impl Together {
    pub(super) fn new(cuda: &Cuda, communicator: &Communicator) -> Result<Self> {
        let nccl = cuda.nccl(communicator)?;
        let carrier = cuda.shared.context.new_stream_with_priority(FIRST);
        Ok(Together {
            nccl,
            carrier: carrier.map_err(|e| failed("making a stream", e))?,
            share: cuda.zeros(1, "the loss of a step")?,
            scale: cuda.function("steps", "scale_values")?,
        })
    }

    /// f64: where a process's share of a loss goes.
    pub(super) fn share(&self, cuda: &Cuda) -> Pointer {
        cuda.pointer(&self.share)
    }

    /// `len` values become their mean over all processes.
    pub(super) fn mean(&self, stream: &Arc<CudaStream>, values: Pointer, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.nccl.all_reduce(stream, values, len, Kind::F32)?;
        if self.nccl.ranks() == 1 {
            return Ok(());
        }
        let (count, factor) = (len as u64, 1.0 / self.nccl.ranks() as f32);
        let mut launch = stream.launch_builder(&self.scale);
        launch.arg(&count).arg(&factor).arg(&values);
        let grid = LaunchConfig {
            grid_dim: (side_by_side(len.div_ceil(THREADS as usize))?, 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the arguments are those of the kernel; the pointer covers the values, as the
        // caller promises.
        let launched = unsafe { launch.launch(grid) };
        launched.map(drop).map_err(|e| failed("the mean over processes", e))
    }
}

/// Work that is given to another stream begins after what one was given so far.
pub(super) fn after(stream: &CudaStream, before: &CudaStream) -> Result<()> {
    stream.join(before).map_err(|e| failed("work on two streams", e))
}
