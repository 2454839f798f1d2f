//! What every run must beat: raw pixels, and its network as it was drawn, or the model that it
//! begins from.

use std::time::Instant;

use anchorhood_engine::Network;

use crate::{Accuracy, Evaluated, Labelled, Subject, TrainError, Trainer};

/// All of them, where there are labels.
pub(crate) fn all(
    trainer: &mut Trainer,
    model: Option<&mut Network>,
    examiner: Option<&Labelled>,
) -> Result<Vec<Evaluated>, TrainError> {
    let Some(examiner) = examiner else {
        return Ok(vec![]);
    };
    let raw_pixels = timed(Subject::RawPixels, || examiner.raw_pixels())?;
    let (subject, network) = match model {
        Some(model) => (Subject::Before, model),
        None => (Subject::Untrained, trainer.network()),
    };
    Ok(vec![raw_pixels, timed(subject, || examiner.network(network, None, None))?])
}

/// An evaluation, and how long it took.
pub(crate) fn timed(
    subject: Subject,
    judge: impl FnOnce() -> Result<Accuracy, TrainError>,
) -> Result<Evaluated, TrainError> {
    let clock = Instant::now();
    let accuracy = judge()?;
    Ok(Evaluated { subject, accuracy, seconds: clock.elapsed().as_secs_f64() })
}
