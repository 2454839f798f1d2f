//! What every run must beat: raw pixels, and its network as it was drawn.

use std::time::Instant;

use crate::{Accuracy, Evaluated, Examiner, Subject, TrainError, Trainer};

/// How good raw pixels are, where there are labels.
pub(crate) fn raw_pixels(examiner: &mut dyn Examiner) -> Result<Option<Evaluated>, TrainError> {
    timed(Subject::RawPixels, || examiner.raw_pixels())
}

/// How good the features are of a network that took no step yet.
pub(crate) fn untrained(
    trainer: &mut Trainer,
    examiner: &mut dyn Examiner,
) -> Result<Option<Evaluated>, TrainError> {
    timed(Subject::Untrained, || {
        examiner.network(trainer.network(), None)
    })
}

/// An evaluation, and how long it took.
pub(crate) fn timed(
    subject: Subject,
    judge: impl FnOnce() -> Result<Option<Accuracy>, TrainError>,
) -> Result<Option<Evaluated>, TrainError> {
    let clock = Instant::now();
    let accuracy = judge()?;
    Ok(accuracy.map(|accuracy| Evaluated {
        subject,
        accuracy,
        seconds: clock.elapsed().as_secs_f64(),
    }))
}
