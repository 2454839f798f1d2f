//! From which checkpoint does a run go on? From the last, or, where that is damaged, from the
//! newest round's that is whole.

use std::path::PathBuf;

use anchorhood_engine::Communicator;

use crate::together::any;
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
    /// Looks through a run's checkpoints. Where all that are there are damaged, that of the last is
    /// the error. Several processes look together, each for its own rows: what one finds damaged is
    /// so for all.
    pub(crate) fn find(dir: &RunDir, together: &Communicator) -> Result<Resumed, TrainError> {
        let rounds = (0..=dir.config().training.rounds).rev();
        let names = rounds.map(|round| format!("round-{round}"));
        let mut damaged: Option<CheckpointError> = None;
        for name in std::iter::once("last".into()).chain(names) {
            let path = dir.checkpoint(&name);
            let there = dir.disk().exists(&path);
            if !any(together, there)? {
                continue;
            }
            if any(together, !there)? {
                break; // not on the disk that this process sees, or another: they will say so
            }
            let own = |pictures| together.part(pictures);
            let found = Checkpoint::load_rows(dir.disk(), &path, &own);
            let damage = matches!(&found, Err(error) if error.is_damage());
            match (found, any(together, damage)?) {
                (Ok(checkpoint), false) => return Ok(Resumed::from(checkpoint, path, damaged)),
                (Ok(_), true) => {}
                (Err(error), _) if damage => damaged = damaged.or(Some(error)),
                (Err(error), _) => return Err(error.into()),
            }
        }
        damaged.map_or(Ok(Resumed::default()), |error| Err(error.into()))
    }

    fn from(checkpoint: Checkpoint, path: PathBuf, damaged: Option<CheckpointError>) -> Resumed {
        let (file, position) = (path.display(), checkpoint.standing.position);
        let instead = |error: CheckpointError| {
            format!("{error}; the run goes on from {file}, that is from {position}")
        };
        Resumed {
            warnings: damaged.map(instead).into_iter().collect(),
            checkpoint: Some((checkpoint, path)),
        }
    }
}
