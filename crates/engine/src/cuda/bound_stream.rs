//! A CUDA stream with what is bound to it (cuDNN's handle, kernels); a side stream for work beside
//! it; and CUDA graphs, recordings of the work given to a stream.
//!
//! A device works on one stream. A second one only records (stream capture): calls made on it run
//! nothing and become a CUDA graph, which the first then launches as a whole. A stream of its own
//! keeps what other threads do meanwhile out of the recording.

use std::collections::VecDeque;
use std::sync::Arc;

use cudarc::driver::{self, CudaEvent, CudaStream, result, sys};

use super::cudnn::Handle;
use super::launch::Kernels;
use super::{Cuda, Doing};
use crate::{Error, Result};

/// Runs of which the fastest counts when a recording is measured.
const RUNS: usize = 4;

pub(super) struct BoundStream {
    pub(super) kernels: Kernels,
    pub(super) cudnn: Handle,
    pub(super) inner: Arc<CudaStream>,
}

impl BoundStream {
    pub(super) fn new(cuda: &Cuda, stream: &Arc<CudaStream>) -> Result<Self> {
        Ok(BoundStream {
            kernels: Kernels::load(cuda, stream)?,
            cudnn: Handle::new(stream)?,
            inner: stream.clone(),
        })
    }

    /// Records the work that is given to this stream meanwhile.
    pub(super) fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<CudaGraph> {
        self.begin_capture()?;
        let worked = work();
        // The recording is ended in any case, or the stream would be lost.
        let recording = self.end_capture();
        worked?;
        recording
    }

    /// From now on, work that is given to this stream is recorded and not done.
    pub(super) fn begin_capture(&self) -> Result<()> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.inner.begin_capture(mode).doing("recording a pass")
    }

    /// What was recorded.
    pub(super) fn end_capture(&self) -> Result<CudaGraph> {
        let graph =
            self.inner.end_capture(sys::CUgraphInstantiate_flags(0)).doing("recording a pass")?;
        let empty = || Error::Device("a pass was recorded that does nothing".into());
        Ok(CudaGraph(graph.ok_or_else(empty)?))
    }
}

/// A side stream: work that goes on beside a stream's, for layers counted downwards: it begins
/// after what the stream was given so far, and is waited for when the stream has come a few layers
/// further.
pub(super) struct SideStream<'a> {
    main: &'a BoundStream,
    side: &'a BoundStream,
    going_on: Pending,
}

/// Work of layers that is not waited for yet.
pub(super) type Pending = VecDeque<(usize, CudaEvent)>;

impl<'a> SideStream<'a> {
    pub(super) fn new(main: &'a BoundStream, side: &'a BoundStream) -> Self {
        SideStream { main, side, going_on: Pending::new() }
    }

    /// Goes on waiting for what was left.
    pub(super) fn resume(main: &'a BoundStream, side: &'a BoundStream, going_on: Pending) -> Self {
        SideStream { main, side, going_on }
    }

    /// What is not waited for yet.
    pub(super) fn leave(self) -> Pending {
        self.going_on
    }

    /// Gives the side a layer's work.
    pub(super) fn run(
        &mut self,
        layer: usize,
        work: impl FnOnce(&BoundStream) -> Result<()>,
    ) -> Result<()> {
        let ready = self.main.inner.record_event(None).doing("work on two streams")?;
        self.side.inner.wait(&ready).doing("work on two streams")?;
        work(self.side)?;
        let done = self.side.inner.record_event(None).doing("work on two streams")?;
        self.going_on.push_back((layer, done));
        Ok(())
    }

    /// The stream waits for the work of layers from this one upwards.
    pub(super) fn wait_for(&mut self, layer: usize) -> Result<()> {
        while let Some((of, done)) = self.going_on.front()
            && *of >= layer
        {
            self.main.inner.wait(done).doing("work on two streams")?;
            self.going_on.pop_front();
        }
        Ok(())
    }
}

/// A CUDA graph: work that can be launched as a whole, again and again.
pub(super) struct CudaGraph(driver::CudaGraph);

// SAFETY: a graph may be used from any thread, by one at a time, which `&mut` sees to.
unsafe impl Send for CudaGraph {}

impl CudaGraph {
    /// Gives the work to the device's stream.
    pub(super) fn launch(&mut self, cuda: &Cuda) -> Result<()> {
        // SAFETY: both live; what the recorded work touches is its owner's, who launches it.
        unsafe { result::graph::launch(self.0.cu_graph_exec(), cuda.stream().cu_stream()) }
            .doing("starting a recorded pass")
    }

    /// Milliseconds of one run: the least of a few, since the chip may wake up only now.
    pub(super) fn time(&mut self, cuda: &Cuda) -> Result<f32> {
        self.launch(cuda)?;
        let mut least = f32::INFINITY;
        for _ in 0..RUNS {
            least = least.min(self.time_once(cuda)?);
        }
        Ok(least)
    }

    /// Milliseconds of the next run.
    pub(super) fn time_once(&mut self, cuda: &Cuda) -> Result<f32> {
        let event = || {
            let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
            cuda.stream().record_event(Some(flags)).doing("measuring")
        };
        let begun = event()?;
        self.launch(cuda)?;
        let ended = event()?;
        ended.synchronize().doing("measuring")?;
        begun.elapsed_ms(&ended).doing("measuring")
    }
}
