//! What a run is judged by on its way: floors before it begins, labels where there are some, and
//! without them.

use std::time::Instant;

use crate::evaluation::LabelFree;
use anchorhood_engine::{Device, Network};

use super::Run;
use crate::verdict::{evaluations_between, may_stop};
use crate::{
    Chosen, Event, LabelFreeEvaluated, Position, StoppedEarly, Subject, TrainError, floors,
};

impl Run<'_> {
    pub(super) fn judge_the_floors(&mut self, device: &Device) -> Result<(), TrainError> {
        let mut model = match self.beginning.model.take() {
            Some(model) => Some(model.network(device, self.trainer.batch())?),
            None => None,
        };
        self.judge_the_floors_by_labels(model.as_mut())?;
        let clock = Instant::now();
        let raw = self.copies.judge_raw_pixels(self.trainer.set().mean);
        self.tell_label_free(Subject::RawPixels, raw, clock)?;
        let clock = Instant::now();
        let subject = if model.is_some() { Subject::Before } else { Subject::Untrained };
        let figures = self.trainer.judge_label_free(&self.copies, model.as_mut())?;
        self.tell_label_free(subject, figures, clock)
    }

    fn judge_the_floors_by_labels(
        &mut self,
        model: Option<&mut Network>,
    ) -> Result<(), TrainError> {
        let mut floors = std::mem::take(&mut self.beginning.floors);
        if floors.is_empty() {
            floors = floors::all(&mut self.trainer, model, self.examiner.as_ref())?;
        }
        let mut floors = floors.into_iter().map(Event::Evaluated);
        floors.try_for_each(|e| self.tell(e))
    }

    pub(super) fn judge(&mut self, at: Position) -> Result<(), TrainError> {
        let Some(examiner) = &self.examiner else {
            return self.trainer.whiten();
        };
        let judged = floors::timed(trained(at), || {
            self.trainer.whiten()?;
            self.trainer.judge(examiner)
        })?;
        let accuracy = judged.accuracy;
        self.standing.last = Some(accuracy);
        if self.standing.best.is_none_or(|b| accuracy.top1 > b.top1) {
            self.standing.best = Some(accuracy);
        }
        self.tell(Event::Evaluated(judged))
    }

    /// Evaluations from one verdict without labels to the next.
    pub(super) fn evaluations_between(&mut self) -> usize {
        let views = self.trainer.method().views().len();
        let epoch = self.trainer.batches() * self.trainer.batch() * views;
        let every = self.dir.config().evaluation.every;
        evaluations_between(self.copies.seen(), every * epoch)
    }

    /// Takes a verdict after an epoch, and draws its consequences where it is to have any.
    pub(super) fn judge_without_labels(&mut self, at: Position) -> Result<(), TrainError> {
        let clock = Instant::now();
        let figures = self.trainer.judge_label_free(&self.copies, None)?;
        let patience = self.dir.config().evaluation.patience;
        if patience == 0 {
            return self.tell_label_free(trained(at), figures, clock);
        }
        let preferred = Chosen::hear(&mut self.standing.chosen, at, figures.score);
        self.tell(Event::LabelFree(LabelFreeEvaluated {
            chosen: Some(preferred),
            ..label_free(trained(at), figures, clock)
        }))?;
        if preferred {
            self.standing.seconds = self.seconds();
            let checkpoint = self.trainer.checkpoint(self.standing)?;
            let batch = self.trainer.batches();
            self.dir.check_finite(&checkpoint, Position { batch, ..at })?;
            self.chosen = Some(checkpoint);
        }
        let worse = self.standing.chosen.map_or(0, |c| c.worse);
        if worse < patience || !may_stop(&self.dir.config().training, at) {
            return Ok(());
        }
        self.standing.stopped_early = true;
        self.tell(Event::StoppedEarly(StoppedEarly { round: at.round, epoch: at.epoch, worse }))
    }

    fn tell_label_free(
        &mut self,
        subject: Subject,
        figures: LabelFree,
        clock: Instant,
    ) -> Result<(), TrainError> {
        self.tell(Event::LabelFree(label_free(subject, figures, clock)))
    }
}

fn trained(at: Position) -> Subject {
    Subject::Trained { round: at.round, epoch: at.epoch }
}

fn label_free(subject: Subject, figures: LabelFree, clock: Instant) -> LabelFreeEvaluated {
    LabelFreeEvaluated { subject, figures, chosen: None, seconds: clock.elapsed().as_secs_f64() }
}
