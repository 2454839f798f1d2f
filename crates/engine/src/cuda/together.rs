//! What a GPU's stream has where several processes take its steps: NCCL, and a stream of its own
//! for sums that go on beside a pass.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream};

use super::launch::{Pointer, launch, ones};
use super::nccl::{Kind, Nccl};
use super::{Cuda, Doing, FIRST};
use crate::{Communicator, Result};

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
            carrier: carrier.doing("making a stream")?,
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
        let arguments = (len as u64, 1.0 / self.nccl.ranks() as f32, values);
        launch(stream, &self.scale, ones(len)?, "the mean over processes", arguments)
    }
}

/// Work that is given to another stream begins after what one was given so far.
pub(super) fn after(stream: &CudaStream, before: &CudaStream) -> Result<()> {
    stream.join(before).doing("work on two streams")
}
