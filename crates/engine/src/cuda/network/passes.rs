//! An inference is the same work every time, so it is recorded and then launched as a whole: the
//! host's time for it falls from that of some hundred calls to that of one. (Training passes are
//! recorded with the step they are part of.)

use super::State;
use crate::cuda::bound_stream::CudaGraph;
use crate::{Graph, Result};

/// What has become of the inference so far.
#[derive(Default)]
pub(super) enum Inferences {
    #[default]
    New,
    /// It ran call by call.
    Seen,
    Recorded(CudaGraph),
    /// It cannot be recorded: call by call it is.
    Refused,
}

impl State {
    /// Does the work of an inference: call by call the first time (which also loads every kernel),
    /// recorded from the second time on.
    pub(super) fn infer_recorded(&mut self, graph: &Graph) -> Result<()> {
        match &mut self.inferences {
            Inferences::Recorded(recording) => recording.launch(&self.cuda),
            Inferences::Seen => {
                let (next, done) = match self.record_inference(graph) {
                    Ok(mut recording) => {
                        let launched = recording.launch(&self.cuda);
                        (Inferences::Recorded(recording), launched)
                    }
                    Err(_) => (Inferences::Refused, self.infer_pass(graph)),
                };
                self.inferences = next;
                done
            }
            Inferences::New => {
                self.inferences = Inferences::Seen;
                self.infer_pass(graph)
            }
            Inferences::Refused => self.infer_pass(graph),
        }
    }

    fn record_inference(&mut self, graph: &Graph) -> Result<CudaGraph> {
        let cuda = self.cuda.clone();
        let recorder = cuda.recorder()?;
        let direct = std::mem::replace(&mut self.stream, recorder.clone());
        let recording = recorder.record(|| self.infer_pass(graph));
        self.stream = direct;
        recording
    }
}
