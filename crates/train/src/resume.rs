//! From which checkpoint does a run go on? From the last, or, where that is damaged, from the newest round's that is whole.

use std::path::PathBuf;

use crate::{Checkpoint, CheckpointError, RunDir, TrainError};

/// What a run goes on from.
#[derive(Debug, Default)]
pub(crate) struct Resumed {
    /// The checkpoint and its file; none where the run begins.
    pub(crate) checkpoint: Option<(Checkpoint, PathBuf)>,
    /// What the user should know of it, a sentence each.
    pub(crate) warnings: Vec<String>,
}

impl Resumed {
    /// Looks through a run's checkpoints. Where all that are there are damaged, that of the last is the error.
    pub(crate) fn find(dir: &RunDir) -> Result<Resumed, TrainError> {
        let rounds = (0..=dir.config().training.rounds).rev();
        let names = rounds.map(|round| format!("round-{round}"));
        let mut damaged: Option<CheckpointError> = None;
        for name in std::iter::once("last".into()).chain(names) {
            let path = dir.checkpoint(&name);
            if !dir.disk().exists(&path) {
                continue;
            }
            match Checkpoint::load_from(dir.disk(), &path) {
                Ok(checkpoint) => return Ok(Resumed::from(checkpoint, path, damaged)),
                Err(error) if error.is_damage() => damaged = damaged.or(Some(error)),
                Err(error) => return Err(error.into()),
            }
        }
        damaged.map_or(Ok(Resumed::default()), |error| Err(error.into()))
    }

    fn from(checkpoint: Checkpoint, path: PathBuf, damaged: Option<CheckpointError>) -> Resumed {
        let (file, position) = (path.display(), checkpoint.standing.position);
        let instead = |error: CheckpointError| {
            format!("{error}; the run goes on from {file}, that is from {position}")
        };
        let unchecked = checkpoint.checked.warning(&path);
        Resumed {
            warnings: damaged.map(instead).into_iter().chain(unchecked).collect(),
            checkpoint: Some((checkpoint, path)),
        }
    }
}
