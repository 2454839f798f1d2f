//! Where a run is, and what it has added up so far: all that must be known, beside tensors, to go
//! on as if never stopped.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::evaluation::Accuracy;
use crate::verdict::Chosen;

/// The next step to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Round, from 0; one beyond the last when the run is over.
    pub round: usize,
    /// Epoch of the round, from 0.
    pub epoch: usize,
    /// Batch of the epoch, from 0.
    pub batch: usize,
}

impl Position {
    /// The beginning of the epoch after this one.
    pub fn next_epoch(self, epochs: usize) -> Position {
        let last = self.epoch + 1 == epochs;
        Position {
            round: self.round + usize::from(last),
            epoch: if last { 0 } else { self.epoch + 1 },
            batch: 0,
        }
    }

    /// Epochs before this one, over all rounds: numbers the epoch's random draws.
    pub fn epochs_before(&self, epochs: usize) -> usize {
        self.round * epochs + self.epoch
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (round, epoch) = (self.round, self.epoch + 1);
        write!(f, "round {round}, epoch {epoch}")?;
        match self.batch {
            0 => Ok(()),
            1 => write!(f, ", after 1 batch"),
            batch => write!(f, ", after {batch} batches"),
        }
    }
}

/// What a checkpoint says of the run beside its tensors. What differs between identical runs,
/// seconds and what tells them, is not serialised with the rest: a checkpoint keeps it in its
/// clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The next step to take.
    pub position: Position,
    /// Sum of the losses of the epoch's batches so far.
    pub loss_sum: f64,
    /// Mean loss of the last whole epoch.
    pub last_loss: Option<f64>,
    /// Seconds trained, over all parts of the run.
    #[serde(skip)]
    pub seconds: f64,
    /// Seconds of the epoch so far.
    #[serde(skip)]
    pub epoch_seconds: f64,
    /// Bytes of `metrics.jsonl` that were written when the checkpoint was.
    #[serde(skip)]
    pub metrics_bytes: u64,
    /// Pictures it trains on, where no memory tells; checkpoints written before this was kept do
    /// not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pictures: Option<usize>,
    /// The last evaluation.
    pub last: Option<Accuracy>,
    /// The best evaluation.
    pub best: Option<Accuracy>,
    /// The checkpoint that is preferred without labels, where the run keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// Whether training is over before its last epoch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped_early: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_follow_each_other_across_rounds() {
        let mut at = Position::default();
        let mut seen = vec![];
        while at.round < 2 {
            seen.push((at.round, at.epoch, at.epochs_before(3)));
            at = at.next_epoch(3);
        }
        let expected = [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 0, 3), (1, 1, 4), (1, 2, 5)];
        assert_eq!(seen, expected);
    }
}
