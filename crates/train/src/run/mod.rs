//! A run from where it is to its end: rounds of epochs of steps, told as events, saved between
//! epochs.

mod judging;
mod telling;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::discovery::Neighbourhoods;
use crate::evaluation::Copies;
use crate::methods::Method;
use anchorhood_data::{Dataset, Split};
use anchorhood_engine::{Communicator, Device};

use crate::progress::{Pace, Report};
use crate::resume::Resumed;
use crate::run_dir::CHOSEN;
use crate::saves::Saves;
use crate::together::{any, check_together, of_first, sums};
use crate::{
    Checkpoint, Discovered, EpochEnded, Evaluated, Event, Labelled, Measured, Position, Pretrained,
    RunConfig, RunDir, RunEnded, Standing, TrainError, Trainer, TrainingSet, build_method,
    seen_pictures, whitened,
};

/// How training ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// All rounds are done.
    Finished(RunEnded),
    /// It was asked to stop, and is saved here.
    Stopped(Position),
}

/// Trains a run to its end, from its last checkpoint if it has one.
///
/// `observer` hears every event. Setting `stop` ends training after the step under way, saved.
pub fn train(
    device: &Device,
    dir: &mut RunDir,
    data: &Dataset,
    observer: &mut (dyn FnMut(&Event) + Send),
    stop: &AtomicBool,
) -> Result<Outcome, TrainError> {
    train_with(device, dir, data, Beginning::default(), observer, stop)
}

/// What a run is given at its beginning, beside its pictures.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// Floors that were judged already, when it was [measured](crate::measure): they are told, not
    /// judged again.
    pub floors: Vec<Evaluated>,
    /// The model that its configuration says it begins from. One that goes on from a checkpoint
    /// does not need it.
    pub model: Option<Pretrained>,
}

impl Beginning {
    /// That of a run that was measured.
    pub fn after(measured: Measured) -> Beginning {
        Beginning { floors: measured.floors, model: None }
    }
}

/// The same with a beginning of its own.
pub fn train_with(
    device: &Device,
    dir: &mut RunDir,
    data: &Dataset,
    beginning: Beginning,
    observer: &mut (dyn FnMut(&Event) + Send),
    stop: &AtomicBool,
) -> Result<Outcome, TrainError> {
    dir.config().check_method_is_known()?;
    check_together(device, dir.config(), data)?;
    let method = build_method(device, dir.config(), data)?;
    train_by(device, dir, data, (method, beginning), observer, stop)
}

/// The same by a method that is built already: the configured one, or one of its name.
pub fn train_by(
    device: &Device,
    dir: &mut RunDir,
    data: &Dataset,
    (method, beginning): (Box<dyn Method>, Beginning),
    observer: &mut (dyn FnMut(&Event) + Send),
    stop: &AtomicBool,
) -> Result<Outcome, TrainError> {
    let config = dir.config().clone();
    let mut trainer = Trainer::with(device, &config, TrainingSet::of(data), method)?;
    whitened::is_wanted(&config, trainer.network())?; // before anything is learnt
    let examiner = Labelled::for_run(data, &config, device);
    let train = &data.train;
    Run::new(dir, trainer, train, examiner, beginning, observer, stop)?.go(device)
}

struct Run<'a> {
    dir: &'a mut RunDir,
    trainer: Trainer,
    /// Judges features, where there are labels.
    examiner: Option<Labelled<'a>>,
    /// What features are judged by without labels.
    copies: Copies,
    observer: &'a mut (dyn FnMut(&Event) + Send),
    stop: &'a AtomicBool,
    /// What it was given.
    beginning: Beginning,
    standing: Standing,
    resumed: bool,
    pace: Pace,
    saves: Saves,
    /// Whether anything has happened since the last checkpoint.
    unsaved: bool,
    /// The checkpoint that is preferred, until it is written with the next one. What is lost with
    /// it is trained anew.
    chosen: Option<Checkpoint>,
    /// What is to be said when it goes on.
    warnings: Vec<String>,
    /// Whether `last` is to be written anew: it is damaged, or counts on metrics that are lost.
    mend: bool,
    /// Pictures that could not be read when they were needed, and that were warned of.
    warned: usize,
    /// Where the last checkpoint is, this process's or another's.
    saved_at: Option<Position>,
    clock: Instant,
    seconds_before: f64,
}

impl<'a> Run<'a> {
    /// Takes up the run where its last checkpoint left it.
    fn new(
        dir: &'a mut RunDir,
        mut trainer: Trainer,
        train: &Split,
        examiner: Option<Labelled<'a>>,
        beginning: Beginning,
        observer: &'a mut (dyn FnMut(&Event) + Send),
        stop: &'a AtomicBool,
    ) -> Result<Self, TrainError> {
        let Resumed { checkpoint, mut warnings } = Resumed::find(dir, trainer.communicator())?;
        let resumed = checkpoint.is_some();
        let (mut standing, mut mend) = (Standing::default(), false);
        if let Some((checkpoint, path)) = checkpoint {
            let differences = checkpoint.config.differences(dir.config());
            if !differences.is_empty() {
                return Err(TrainError::OtherSettings { path, differences });
            }
            standing = checkpoint.standing;
            mend = path != dir.checkpoint("last");
            trainer.restore(checkpoint, &path)?;
        }
        if !resumed {
            begin_from(beginning.model.as_ref(), dir.config(), &mut trainer)?;
        }
        match (dir.is_written_here(), resumed) {
            (false, _) => {}
            (true, true) => {
                warnings.extend(seen_pictures::recognise(dir.disk(), dir.path(), train)?);
            }
            (true, false) => seen_pictures::keep(dir.disk(), dir.path(), train)?,
        }
        check_position(trainer.communicator(), standing.position)?;
        let lost = dir.rewind_metrics(standing.metrics_bytes)?;
        if lost > 0 {
            warnings.push(format!(
                "metrics.jsonl: the last {lost} of {} bytes are gone or damaged, as by a power \
                 cut; the run goes on, and its \
                 report lacks what they told",
                standing.metrics_bytes
            ));
        }
        // All or none: what is written is gathered from all.
        let mend = any(trainer.communicator(), mend || lost > 0)?;
        Ok(Run {
            dir,
            trainer,
            examiner,
            copies: Copies::of(&train.pictures),
            chosen: None,
            observer,
            stop,
            beginning,
            standing,
            resumed,
            pace: Pace::new(),
            saves: Saves::default(),
            unsaved: false,
            warnings,
            mend,
            warned: 0,
            saved_at: resumed.then_some(standing.position),
            clock: Instant::now(),
            seconds_before: standing.seconds,
        })
    }

    fn go(mut self, device: &Device) -> Result<Outcome, TrainError> {
        device.within(|| {
            let outcome = self.rounds(device);
            outcome.map_err(|error| self.why(error))
        })
    }

    /// What a device refuses may be its own failure, or what the steps before have made of the
    /// weights.
    fn why(&mut self, error: TrainError) -> TrainError {
        let TrainError::Engine(source) = error else {
            return error;
        };
        // Looking at the weights takes all processes, and this may be the only one that is in
        // trouble.
        if !self.trainer.communicator().is_single() {
            return TrainError::Engine(source);
        }
        if let Err(diverged @ TrainError::Diverged { .. }) = self.checkpoint(self.standing.position)
        {
            return diverged;
        }
        match self.saved_at {
            Some(position) => TrainError::DeviceFailed { source, position },
            None => TrainError::Engine(source),
        }
    }

    fn rounds(&mut self, device: &Device) -> Result<Outcome, TrainError> {
        let rounds = self.dir.config().training.rounds;
        if self.standing.stopped_early || self.standing.position.round > rounds {
            self.warn_and_mend()?;
            return self.finished();
        }
        let started = self.started(device.describe());
        self.tell(Event::RunStarted(started))?;
        self.warn_and_mend()?;
        self.warn_of_small_data()?;
        if !self.resumed {
            self.judge_the_floors(device)?;
        }
        self.trainer.begin()?;
        while !self.standing.stopped_early && self.standing.position.round <= rounds {
            if self.stopping()? {
                return self.stopped();
            }
            if self.standing.position.epoch == 0 && self.standing.position.batch == 0 {
                self.begin_round()?;
            }
            if !self.epoch()? {
                return self.stopped();
            }
        }
        self.trainer.end();
        self.finished()
    }

    /// Says that the run is over, which a run that is resumed after its end has forgotten with all
    /// that was told since its last checkpoint.
    fn finished(&mut self) -> Result<Outcome, TrainError> {
        let ended = self.ended();
        self.tell(Event::RunEnded(ended))?;
        self.dir.sync_metrics()?;
        Ok(Outcome::Finished(ended))
    }

    /// Says what was wrong with what it goes on from, and leaves a whole checkpoint to all who look
    /// for the last.
    fn warn_and_mend(&mut self) -> Result<(), TrainError> {
        for message in std::mem::take(&mut self.warnings) {
            self.tell(Event::Warning { message })?;
        }
        if std::mem::take(&mut self.mend) {
            let checkpoint = self.checkpoint(self.standing.position)?;
            self.save(&checkpoint)?;
        }
        Ok(())
    }

    fn begin_round(&mut self) -> Result<(), TrainError> {
        let round = self.standing.position.round;
        let rounds = self.dir.config().training.rounds;
        self.tell(Event::RoundStarted { round, rounds })?;
        let clock = Instant::now();
        let pictures = self.trainer.set().pictures.len();
        {
            // Told from whichever thread gets there; a report that would have to wait is left out.
            let observer = Mutex::new(&mut *self.observer);
            let progress = |done| {
                if let Ok(mut observer) = observer.try_lock() {
                    observer(&Event::Discovering { round, done, pictures });
                }
            };
            self.trainer.before_round(round, &progress)?;
        }
        let found = self.trainer.method().neighbourhoods();
        let Some(found) = found.filter(|found| found.k() > 0) else {
            return Ok(());
        };
        let (k, recall, here) = (found.k(), found.recall(), entropy_sums(found));
        let examiner = self.examiner.as_ref();
        let consistency = examiner.map(|e| e.consistency(found)).transpose()?;
        let [all, anchors, of_all, of_anchors] = sums(self.trainer.communicator(), here)?;
        self.tell(Event::Discovered(Discovered {
            round,
            anchors: anchors as usize,
            pictures,
            k,
            mean_entropy: of_all / all.max(1.0),
            anchor_entropy: of_anchors / anchors.max(1.0),
            recall,
            consistency,
            seconds: clock.elapsed().as_secs_f64(),
        }))
    }

    /// Trains to the end of the epoch and saves; false if it was asked to stop before.
    fn epoch(&mut self) -> Result<bool, TrainError> {
        let training = self.dir.config().training.clone();
        let batches = self.trainer.batches();
        let start = self.standing.position;
        let rate = training.rate_at(start);
        let clock = Instant::now();
        let seconds_before = self.standing.epoch_seconds;
        let mut report = Report::new(start.batch);
        while self.standing.position.batch < batches {
            let steps = of_first(self.trainer.communicator(), self.pace.steps())?;
            let losses = self.trainer.advance(self.standing.position, steps)?;
            for loss in losses.iter().copied() {
                if !loss.is_finite() {
                    let at = self.standing.position;
                    return Err(self.dir.diverged("the loss", loss, at));
                }
                self.standing.loss_sum += loss;
                self.standing.position.batch += 1;
            }
            self.pace.taken();
            self.unsaved = true;
            self.standing.epoch_seconds = seconds_before + clock.elapsed().as_secs_f64();
            if let Some(progress) = report.due(&self.standing, &self.trainer, &training) {
                self.tell(Event::Progress(progress))?;
            }
            if self.stopping()? && self.standing.position.batch < batches {
                return Ok(false);
            }
        }
        self.end_epoch(start, rate)?;
        Ok(true)
    }

    fn end_epoch(&mut self, at: Position, rate: f64) -> Result<(), TrainError> {
        let (epochs, every) = {
            let config = self.dir.config();
            (config.training.epochs, config.evaluation.every)
        };
        let batches = self.trainer.batches();
        let loss = self.standing.loss_sum / batches as f64;
        let seconds = self.standing.epoch_seconds;
        self.tell(Event::EpochEnded(EpochEnded {
            round: at.round,
            epoch: at.epoch,
            epochs,
            loss,
            rate,
            pictures_per_second: (batches * self.trainer.batch()) as f64 / seconds.max(1e-9),
            seconds,
        }))?;
        self.tell_pretext(at)?;
        self.warn_of_lost_pictures()?;
        let last_of_round = at.epoch + 1 == epochs;
        if last_of_round || (at.epoch + 1).is_multiple_of(every) {
            self.judge(at)?;
        }
        self.standing.last_loss = Some(loss);
        self.standing.loss_sum = 0.0;
        self.standing.epoch_seconds = 0.0;
        self.standing.position = at.next_epoch(epochs);
        if last_of_round || (at.epoch + 1).is_multiple_of(every * self.evaluations_between()) {
            self.judge_without_labels(at)?;
        }
        let due = of_first(self.trainer.communicator(), self.saves.due().into())?;
        if !last_of_round && !self.standing.stopped_early && due == 0 {
            return Ok(());
        }
        let begun = Instant::now();
        let checkpoint = self.checkpoint(Position { batch: batches, ..at })?;
        if last_of_round {
            // Before `last`: a run that goes on from there never comes by here again.
            let name = format!("round-{}", at.round);
            self.dir.save(&checkpoint, &name, self.trainer.communicator())?;
        }
        self.save(&checkpoint)?;
        self.saves.written(begun);
        Ok(())
    }

    /// The run as it stands, after the steps that `reached` counts, unless nothing could go on from
    /// there.
    fn checkpoint(&mut self, reached: Position) -> Result<Checkpoint, TrainError> {
        self.standing.seconds = self.seconds();
        self.standing.metrics_bytes = self.dir.sync_metrics()?;
        let checkpoint = self.trainer.checkpoint(self.standing)?;
        self.dir.check_finite(&checkpoint, reached)?;
        Ok(checkpoint)
    }

    /// Writes the checkpoint that the run goes on from. The preferred one comes first: a run that
    /// goes on from after it does not come by it again.
    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        let together = self.trainer.communicator();
        if let Some(chosen) = &self.chosen {
            self.dir.save(chosen, CHOSEN, together)?;
        }
        self.chosen = None;
        let path = self.dir.save(checkpoint, "last", together)?;
        self.unsaved = false;
        self.saved_at = Some(self.standing.position);
        self.tell(Event::CheckpointSaved {
            path: path.display().to_string(),
            position: self.standing.position,
        })
    }

    /// Whether this process was asked to stop, or another of those that train with it.
    fn stopping(&self) -> Result<bool, TrainError> {
        let here = self.stop.load(Ordering::Relaxed);
        any(self.trainer.communicator(), here)
    }

    fn stopped(&mut self) -> Result<Outcome, TrainError> {
        if self.unsaved {
            let checkpoint = self.checkpoint(self.standing.position)?;
            self.save(&checkpoint)?;
        }
        Ok(Outcome::Stopped(self.standing.position))
    }
}

/// Gives a trainer what the model has learnt that its run is to begin from, if there is one: no
/// other than that.
fn begin_from(
    model: Option<&Pretrained>,
    config: &RunConfig,
    trainer: &mut Trainer,
) -> Result<(), TrainError> {
    match (model, &config.training.from) {
        (Some(model), _) => trainer.begin_from(model),
        (None, Some(from)) => Err(TrainError::NoModel { model: from.clone() }),
        (None, None) => Ok(()),
    }
}

/// Refuses processes that would go on from different places.
fn check_position(together: &Communicator, at: Position) -> Result<(), TrainError> {
    let own = [at.round, at.epoch, at.batch].map(|n| n as u64);
    let mut all = vec![own; together.ranks()];
    together.gather(&[own], &mut all)?;
    let of = |at: [u64; 3]| {
        let [round, epoch, batch] = at.map(|n| n as usize);
        Position { round, epoch, batch }
    };
    match all.iter().position(|at| *at != all[0]) {
        None => Ok(()),
        Some(rank) => {
            Err(TrainError::OtherPosition { rank, other: of(all[rank]), first: of(all[0]) })
        }
    }
}

/// How many entropies there are here, how many of them are anchors', and the sums of both.
fn entropy_sums(found: &Neighbourhoods) -> [f64; 4] {
    let entropy = || found.entropy().iter().map(|e| f64::from(*e));
    let anchors = || entropy().zip(found.anchors()).filter(|(_, a)| **a);
    [
        entropy().count() as f64,
        anchors().count() as f64,
        entropy().sum(),
        anchors().map(|(e, _)| e).sum(),
    ]
}
