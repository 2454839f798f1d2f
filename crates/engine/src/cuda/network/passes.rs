//! A pass is the same work every time, so it is recorded and then launched as a whole: the host's time for a pass falls
//! from that of some hundred calls to that of one.

use super::{CudaNetwork, State};
use crate::cuda::lane::{Lane, Recording};
use crate::cuda::launch::Pointer;
use crate::{Graph, Result, Sgd};

/// What can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    Forward,
    Backward,
    Infer,
}

/// What has become of a pass so far.
#[derive(Default)]
pub(super) struct Passes([Progress; 3]);

#[derive(Default)]
enum Progress {
    #[default]
    New,
    /// Ran call by call, with this key.
    Seen(u64),
    Recorded(u64, Recording),
    /// Cannot be recorded: call by call it is.
    Refused,
}

impl State {
    /// Does the work of a pass: call by call the first time (which also loads every kernel), recorded from the second
    /// time on. `key` stands for what may change between passes; a recording serves one.
    pub(super) fn run(
        &mut self,
        pass: Pass,
        key: u64,
        graph: &Graph,
        work: fn(&State, &Graph) -> Result<()>,
    ) -> Result<()> {
        match &mut self.passes.0[pass as usize] {
            Progress::Recorded(of, recording) if *of == key => recording.launch(&self.cuda),
            Progress::Seen(before) if *before == key => {
                let recorded = self.record(graph, work);
                let (next, done) = match recorded {
                    Ok(mut recording) => {
                        let launched = recording.launch(&self.cuda);
                        (Progress::Recorded(key, recording), launched)
                    }
                    Err(_) => (Progress::Refused, work(self, graph)),
                };
                self.passes.0[pass as usize] = next;
                done
            }
            progress => {
                if !matches!(progress, Progress::Refused) {
                    *progress = Progress::Seen(key);
                }
                work(self, graph)
            }
        }
    }

    fn record(
        &mut self,
        graph: &Graph,
        work: fn(&State, &Graph) -> Result<()>,
    ) -> Result<Recording> {
        let cuda = self.cuda.clone();
        let recorder = cuda.recorder()?;
        let direct = std::mem::replace(&mut self.lane, recorder.clone());
        let recording = recorder.record(|| work(self, graph));
        self.lane = direct;
        recording
    }
}

/// For steps that are more than the network's: its passes, to be given to its lane among other work, and the places where
/// these meet.
impl CudaNetwork {
    /// Records work that is given to the network's lane.
    pub(in crate::cuda) fn record(
        &mut self,
        work: impl FnOnce(&CudaNetwork) -> Result<()>,
    ) -> Result<Recording> {
        let cuda = self.state.cuda.clone();
        let recorder = cuda.recorder()?;
        let direct = std::mem::replace(&mut self.state.lane, recorder.clone());
        let recording = recorder.record(|| work(self));
        self.state.lane = direct;
        recording
    }

    /// Before steps: the number of the first, and how weights move.
    pub(in crate::cuda) fn begin_steps(&mut self, number: u64, sgd: &Sgd) -> Result<()> {
        let state = &mut self.state;
        state.bind()?;
        state.last_was_training = true;
        let step = state.cuda.pointer(&state.step);
        state.kernels().set_step(number % (1 << 20), step)?;
        state.parameters.set(&state.lane.kernels, sgd)
    }

    pub(in crate::cuda) fn forward_calls(&self) -> Result<()> {
        self.state.forward_pass(&self.graph)
    }

    pub(in crate::cuda) fn backward_calls(&self) -> Result<()> {
        self.state.backward_pass(&self.graph)
    }

    pub(in crate::cuda) fn update_calls(&self) -> Result<()> {
        let parameters = &self.state.parameters;
        parameters.update(self.state.kernels(), 0..parameters.len())
    }

    /// Backwards, then the weights moved; `meanwhile` and `after` as the passes have it.
    pub(in crate::cuda) fn backward_and_update(
        &self,
        meanwhile: impl FnOnce(&Lane) -> Result<()>,
        after: impl FnOnce(&Lane) -> Result<()>,
    ) -> Result<()> {
        self.state
            .backward_and_update(&self.graph, meanwhile, after)
    }

    /// Bytes the optimiser reads and writes.
    pub(in crate::cuda) fn update_bytes(&self) -> f64 {
        self.state.parameters.update_bytes() as f64
    }

    pub(in crate::cuda) fn lane(&self) -> &Lane {
        &self.state.lane
    }

    /// A number that no other living network has.
    pub(in crate::cuda) fn identity(&self) -> u64 {
        self.state.cuda.pointer(&self.state.arena)
    }

    /// Channels that pictures have on the device.
    pub(in crate::cuda) fn input_channels(&self) -> usize {
        self.state.input_channels
    }

    pub(in crate::cuda) fn input_place(&self) -> Pointer {
        self.state.value(0)
    }

    pub(in crate::cuda) fn output_place(&self) -> Pointer {
        self.state.cuda.pointer(&self.state.output.values)
    }

    pub(in crate::cuda) fn output_gradient_place(&self) -> Pointer {
        self.state.cuda.pointer(&self.state.output_gradient.values)
    }

    pub(in crate::cuda) fn step_place(&self) -> Pointer {
        self.state.cuda.pointer(&self.state.step)
    }
}
