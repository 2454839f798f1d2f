//! A pass is the same work every time, so it is recorded and then launched as a whole: the host's time for a pass falls
//! from that of some hundred calls to that of one.

use super::State;
use crate::cuda::lane::Recording;
use crate::{Graph, Result};

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
