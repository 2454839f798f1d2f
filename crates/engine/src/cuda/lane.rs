//! A stream with what is bound to it, and recordings of the work given to one.
//!
//! A device works on one lane. A second one only records: calls made on it run nothing and become a graph, which the
//! first then launches as a whole. A lane of its own keeps what other threads do meanwhile out of the recording.

use std::sync::Arc;

use cudarc::driver::{CudaGraph, CudaStream, result, sys};

use super::cudnn::Handle;
use super::launch::Kernels;
use super::{Cuda, failed};
use crate::{Error, Result};

/// Runs of which the fastest counts when a recording is measured.
const RUNS: usize = 4;

pub(super) struct Lane {
    pub(super) kernels: Kernels,
    pub(super) cudnn: Handle,
    stream: Arc<CudaStream>,
}

impl Lane {
    pub(super) fn new(cuda: &Cuda, stream: &Arc<CudaStream>) -> Result<Self> {
        Ok(Lane {
            kernels: Kernels::load(cuda, stream)?,
            cudnn: Handle::new(stream)?,
            stream: stream.clone(),
        })
    }

    /// Records the work that is given to this lane meanwhile.
    pub(super) fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<Recording> {
        let failed = |e| failed("recording a pass", e);
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.stream.begin_capture(mode).map_err(failed)?;
        let worked = work();
        // The recording is ended in any case, or the lane would be lost.
        let graph = self.stream.end_capture(sys::CUgraphInstantiate_flags(0));
        worked?;
        let graph = graph.map_err(failed)?;
        let empty = || Error::Device("a pass was recorded that does nothing".into());
        Ok(Recording(graph.ok_or_else(empty)?))
    }
}

/// Work that can be launched as a whole, again and again.
pub(super) struct Recording(CudaGraph);

// SAFETY: a graph may be used from any thread, by one at a time, which `&mut` sees to.
unsafe impl Send for Recording {}

impl Recording {
    /// Gives the work to the device's stream.
    pub(super) fn launch(&mut self, cuda: &Cuda) -> Result<()> {
        // SAFETY: both live; what the recorded work touches is its owner's, who launches it.
        let launched =
            unsafe { result::graph::launch(self.0.cu_graph_exec(), cuda.stream().cu_stream()) };
        launched.map_err(|e| failed("starting a recorded pass", e))
    }

    /// Milliseconds of one run: the least of a few, since the chip may wake up only now.
    pub(super) fn time(&mut self, cuda: &Cuda) -> Result<f32> {
        let failed = |e| failed("measuring", e);
        let event = || {
            let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
            cuda.stream().record_event(Some(flags)).map_err(failed)
        };
        self.launch(cuda)?;
        let mut least = f32::INFINITY;
        for _ in 0..RUNS {
            let begun = event()?;
            self.launch(cuda)?;
            let ended = event()?;
            ended.synchronize().map_err(failed)?;
            least = least.min(begun.elapsed_ms(&ended).map_err(failed)?);
        }
        Ok(least)
    }
}
