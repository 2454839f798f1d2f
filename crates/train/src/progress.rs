//! How fast a run is and how long it will take: reports often enough to draw, rarely enough to cost
//! nothing.

use std::time::Instant;

use crate::{Progress, Standing, Trainer, TrainingConfig};

/// How many steps to ask a device for at once: about a tenth of a second's, so that progress moves
/// and a stop is heard.
pub(crate) struct Pace {
    steps: usize,
    since: Instant,
}

impl Pace {
    const MOST: usize = 256;

    pub fn new() -> Self {
        Pace { steps: 1, since: Instant::now() }
    }

    /// How many to ask for now.
    pub fn steps(&mut self) -> usize {
        self.since = Instant::now();
        self.steps
    }

    /// They are done.
    pub fn taken(&mut self) {
        let seconds = self.since.elapsed().as_secs_f64();
        self.steps = match seconds {
            s if s < 0.05 => (2 * self.steps).min(Self::MOST),
            s if s > 0.2 => (self.steps / 2).max(1),
            _ => self.steps,
        };
    }
}

/// Progress every tenth of a second, with a speed smoothed over a few reports.
pub(crate) struct Report {
    since: Instant,
    batch: usize,
    seconds_per_batch: Option<f64>,
}

impl Report {
    const EVERY: f64 = 0.1;

    pub fn new(batch: usize) -> Self {
        Report { since: Instant::now(), batch, seconds_per_batch: None }
    }

    pub fn due(
        &mut self,
        standing: &Standing,
        trainer: &Trainer,
        training: &TrainingConfig,
    ) -> Option<Progress> {
        let seconds = self.since.elapsed().as_secs_f64();
        let batches = trainer.batches();
        let at = standing.position;
        if seconds < Self::EVERY && at.batch < batches {
            return None;
        }
        let now = seconds / (at.batch - self.batch).max(1) as f64;
        let smooth = self.seconds_per_batch.map_or(now, |old| 0.8 * old + 0.2 * now);
        self.seconds_per_batch = Some(smooth);
        self.since = Instant::now();
        self.batch = at.batch;
        let epochs_left =
            (training.rounds + 1) * training.epochs - at.epochs_before(training.epochs);
        let batches_left = epochs_left * batches - at.batch;
        Some(Progress {
            round: at.round,
            epoch: at.epoch,
            batch: at.batch,
            batches,
            loss: standing.loss_sum / at.batch as f64,
            pictures_per_second: trainer.batch() as f64 / smooth.max(1e-9),
            seconds_left: batches_left as f64 * smooth,
        })
    }
}
