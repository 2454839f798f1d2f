//! What a run tells: how it began and ended, how its own task goes, and what is worth a warning.

use anchorhood_engine::Role;

use super::Run;
use crate::{
    Event, Labelled, Position, PretextMeasured, RunEnded, RunStarted, TrainError, VERSION,
};

impl Run<'_> {
    pub(super) fn started(&mut self, device: String) -> RunStarted {
        let config = self.dir.config().clone();
        let graph = self.trainer.network().graph();
        let trained = graph.parameters().iter().filter(|p| p.role == Role::Weight);
        let weights = trained.map(|p| p.len()).sum();
        let set = self.trainer.set();
        RunStarted {
            version: VERSION.into(),
            device,
            data: set.name.clone(),
            pictures: set.pictures.len(),
            size: set.pictures.width(),
            test_pictures: self.examiner.as_ref().map_or(0, Labelled::test_pictures),
            validation: config.data.validate_on.held_out().is_some(),
            network: format!("{} width {}", config.network.architecture, config.network.width),
            weights,
            batch: self.trainer.batch(),
            rounds: config.training.rounds,
            epochs: config.training.epochs,
            seed: config.seed,
            from: config.training.from,
            resumed: self.resumed.then_some(self.standing.position),
        }
    }

    pub(super) fn ended(&self) -> RunEnded {
        RunEnded {
            seconds: self.seconds(),
            loss: self.standing.last_loss.unwrap_or(f64::NAN),
            last: self.standing.last,
            best: self.standing.best,
        }
    }

    pub(super) fn tell_pretext(&mut self, at: Position) -> Result<(), TrainError> {
        let figures = self.trainer.pretext()?;
        if figures.is_empty() {
            return Ok(());
        }
        self.tell(Event::Pretext(PretextMeasured { round: at.round, epoch: at.epoch, figures }))
    }

    pub(super) fn warn_of_small_data(&mut self) -> Result<(), TrainError> {
        let (asked, batch) = (self.dir.config().training.batch, self.trainer.batch());
        if batch == asked {
            return Ok(());
        }
        self.tell(Event::Warning {
            message: format!(
                "a batch of {asked} is more than the {batch} pictures there are; training with \
                 batches of {batch}"
            ),
        })
    }

    /// Pictures that are decoded when they are needed may be gone by then, and are trained on as
    /// plain grey.
    pub(super) fn warn_of_lost_pictures(&mut self) -> Result<(), TrainError> {
        let lost = self.trainer.set().pictures.failures();
        let new: Vec<_> = lost.into_iter().skip(self.warned).collect();
        self.warned += new.len();
        for (name, why) in new {
            let message = format!("{name}: {why}; it is seen as plain grey");
            self.tell(Event::Warning { message })?;
        }
        Ok(())
    }

    pub(super) fn seconds(&self) -> f64 {
        self.seconds_before + self.clock.elapsed().as_secs_f64()
    }

    pub(super) fn tell(&mut self, event: Event) -> Result<(), TrainError> {
        if event.is_kept() {
            self.dir.keep(&event)?;
        }
        (self.observer)(&event);
        Ok(())
    }
}
