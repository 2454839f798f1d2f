//! How many epochs fit into the minutes there are? Steps, evaluations, discovery and saving are
//! timed on a trainer that is thrown away, and the epochs follow from them. They become a setting
//! like any other: a run of so many minutes is repeated and resumed as a run of so many epochs,
//! whatever the machine does that day.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, Instant};

use anchorhood_data::Dataset;
use anchorhood_engine::{Communicator, Device, Network};
use anchorhood_storage::{Disk, FileSystem};

use crate::progress::Pace;
use crate::saves::pause_after;
use crate::together::of_first;
use crate::{
    Evaluated, Event, FeatureSource, Labelled, Position, Pretrained, RunConfig, Standing,
    TimeFitted, TrainError, Trainer, TrainingSet, build_method, floors,
};

/// Steps that are taken before any is timed: a GPU takes the first call by call, records the
/// second, and repeats it from then on.
const FIRST_STEPS: usize = 3;
/// Steps that are timed at least.
const TIMED_STEPS: usize = 2;
/// How much longer steps are timed than warmed up.
const TIMED: f64 = 4.0;
/// The share of the epochs that rounds may cost which a shorter run could do without.
const FOR_ROUNDS: f64 = 0.05;
/// The share of the time that is left to what nobody can foresee.
const RESERVE: f64 = 0.015;

/// The time a run may take.
#[derive(Clone, Copy, Debug)]
pub struct TimeBudget {
    /// Seconds in all …
    pub seconds: f64,
    /// … from here on.
    pub since: Instant,
    /// Of these, what its owner needs when training is over.
    pub afterwards: f64,
    /// How long steps are timed.
    pub timing: f64,
}

impl TimeBudget {
    /// So many seconds from some time on, with nothing to come after training. Steps are timed for
    /// a fiftieth of the time, and no longer than it takes to know them.
    pub fn new(seconds: f64, since: Instant) -> TimeBudget {
        TimeBudget { seconds, since, afterwards: 0.0, timing: (0.02 * seconds).clamp(0.5, 5.0) }
    }

    /// What is left to a run that begins now.
    fn left(&self) -> f64 {
        let spent = self.since.elapsed().as_secs_f64();
        self.seconds * (1.0 - RESERVE) - self.afterwards - spent
    }
}

/// What the parts of a run take on this machine, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// All batches of an epoch.
    pub epoch: f64,
    /// What comes before each round after round 0, discovery for example.
    pub round: f64,
    /// An evaluation; 0 without labels.
    pub evaluation: f64,
    /// A checkpoint.
    pub checkpoint: f64,
    /// Building network and memory, and what comes before round 0.
    pub building: f64,
}

/// A configured training, timed.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What its parts take.
    pub costs: Costs,
    /// Pictures trained on a second.
    pub pictures_per_second: f64,
    /// Raw pixels and the untrained network, or the model that the run begins from, where there are
    /// labels: what the run itself would judge first.
    pub floors: Vec<Evaluated>,
}

/// Times the configured training, for as long as the budget has it; `scratch` is a folder on the
/// disk that the run will lie on. Several processes time it together, by the first one's clock.
pub fn measure(
    device: &Device,
    config: &RunConfig,
    data: &Dataset,
    model: Option<&Pretrained>,
    scratch: &Path,
    budget: &TimeBudget,
) -> Result<Measured, TrainError> {
    let mut config = config.clone();
    // It never ends: how fast steps are does not depend on how many there will be, nor on what is
    // frozen in them.
    config.training.epochs = RunConfig::MOST_EPOCHS / (config.training.rounds + 1);
    let clock = Instant::now();
    let method = build_method(device, &config, data)?;
    let trainer = Trainer::with(device, &config, TrainingSet::of(data), method)?;
    let stopwatch = Stopwatch {
        trainer,
        at: Position::default(),
        pace: Pace::new(),
        building: seconds(clock),
        // On the host the untrained network's evaluation is like any other; a GPU tries out
        // algorithms in its first.
        first_counts: device.is_host() && config.evaluation.features == FeatureSource::Recomputed,
        config: &config,
        scratch,
        budget,
    };
    let mut model = match model {
        Some(model) => Some(model.network(device, stopwatch.trainer.batch())?),
        None => None,
    };
    let labelled = Labelled::for_run(data, &config, device);
    device.within(|| stopwatch.measure(model.as_mut(), labelled.as_ref()))
}

/// A trainer that is thrown away.
struct Stopwatch<'a> {
    trainer: Trainer,
    at: Position,
    pace: Pace,
    building: f64,
    first_counts: bool,
    config: &'a RunConfig,
    scratch: &'a Path,
    budget: &'a TimeBudget,
}

impl Stopwatch<'_> {
    fn measure(
        mut self,
        model: Option<&mut Network>,
        examiner: Option<&Labelled>,
    ) -> Result<Measured, TrainError> {
        let floors = floors::all(&mut self.trainer, model, examiner)?;
        let step = self.step()?;
        let batches = self.trainer.batches() as f64;
        Ok(Measured {
            costs: Costs {
                epoch: batches * step,
                round: self.round()?,
                evaluation: self.evaluation(&floors, examiner)?,
                checkpoint: self.checkpoint()?,
                building: self.building,
            },
            pictures_per_second: self.trainer.batch() as f64 / step,
            floors,
        })
    }

    /// Seconds of a step.
    fn step(&mut self) -> Result<f64, TrainError> {
        let for_steps = self.budget.timing;
        let clock = Instant::now();
        self.trainer.begin()?;
        self.trainer.before_round(0, &|_| {})?;
        self.building += seconds(clock);
        self.steps(FIRST_STEPS, for_steps / TIMED)?;
        let clock = Instant::now();
        let taken = self.steps(TIMED_STEPS, for_steps)?;
        Ok(seconds(clock).max(1e-9) / taken as f64)
    }

    /// Takes at least so many steps, for at least so many seconds; says how many.
    fn steps(&mut self, least: usize, for_seconds: f64) -> Result<usize, TrainError> {
        let (clock, mut taken) = (Instant::now(), 0);
        loop {
            let more = taken < least || seconds(clock) < for_seconds;
            if of_first(self.trainer.communicator(), more.into())? == 0 {
                return Ok(taken);
            }
            let most = of_first(self.trainer.communicator(), self.pace.steps())?;
            let steps = self.trainer.advance(self.at, most)?.len();
            self.pace.taken();
            taken += steps;
            self.at.batch += steps;
            if self.at.batch == self.trainer.batches() {
                self.at = self.at.next_epoch(self.config.training.epochs);
            }
        }
    }

    /// Seconds of what comes before a later round: before the last, which discovers if any does.
    fn round(&mut self) -> Result<f64, TrainError> {
        let last = self.config.training.rounds;
        if last == 0 {
            return Ok(0.0);
        }
        let clock = Instant::now();
        self.trainer.before_round(last, &|_| {})?;
        Ok(seconds(clock))
    }

    fn evaluation(
        &mut self,
        floors: &[Evaluated],
        examiner: Option<&Labelled>,
    ) -> Result<f64, TrainError> {
        let clock = Instant::now();
        self.trainer.whiten()?;
        match (floors.last(), examiner) {
            (Some(untrained), _) if self.first_counts => Ok(seconds(clock) + untrained.seconds),
            (_, Some(examiner)) => {
                self.trainer.judge(examiner)?;
                Ok(seconds(clock))
            }
            (_, None) => Ok(seconds(clock)),
        }
    }

    /// Seconds until a checkpoint is safe.
    fn checkpoint(&mut self) -> Result<f64, TrainError> {
        let file = format!(".measured-{}.safetensors", std::process::id());
        let file = self.scratch.join(file);
        let clock = Instant::now();
        let checkpoint = self.trainer.checkpoint(Standing::default())?;
        let together = self.trainer.communicator();
        let saved = checkpoint.save_among(together, &Disk, &file);
        let took = seconds(clock); // the first one's counts
        if together.is_first() {
            let _ = Disk.remove(&file); // gone already, where it could not be saved
        }
        saved?;
        Ok(took)
    }
}

impl Costs {
    /// Seconds of the configured run, without its floors.
    pub fn of(&self, config: &RunConfig) -> f64 {
        let rounds = (config.training.rounds + 1) as f64;
        let epochs = config.training.epochs;
        let evaluations = epochs.div_ceil(config.evaluation.every) as f64;
        let round =
            epochs as f64 * self.epoch + evaluations * self.evaluation + 2.0 * self.checkpoint;
        let training = rounds * round + (rounds - 1.0) * self.round;
        self.building + training * (1.0 + self.share_of_saving())
    }

    /// What saving between epochs adds to the time.
    fn share_of_saving(&self) -> f64 {
        let pause = pause_after(Duration::from_secs_f64(self.checkpoint)).as_secs_f64();
        self.checkpoint / pause.max(self.epoch)
    }
}

impl Measured {
    /// The configuration with as many epochs as the budget has time for: of the rounds it may have,
    /// as many as cost no more than a few of them. `with` makes one of any number of rounds after
    /// round 0, and of epochs in each.
    pub fn fitted(
        &self,
        budget: &TimeBudget,
        rounds: RangeInclusive<usize>,
        with: impl Fn(usize, usize) -> RunConfig,
    ) -> Result<RunConfig, TrainError> {
        let left = budget.left();
        let fewest = *rounds.start();
        let fits = |rounds| Some((rounds, self.most_epochs(left, |n| with(rounds, n))?));
        let fits: Vec<(usize, usize)> = rounds.rev().filter_map(fits).collect();
        let all = |(rounds, epochs): &(usize, usize)| (rounds + 1) * epochs;
        let most = fits.iter().map(all).max().unwrap_or(0);
        let enough = |fit: &&(usize, usize)| all(fit) as f64 >= (1.0 - FOR_ROUNDS) * most as f64;
        match fits.iter().find(enough) {
            Some((rounds, epochs)) => Ok(with(*rounds, *epochs)),
            None => Err(TrainError::TooLittleTime {
                rounds: fewest,
                seconds: budget.seconds,
                needed: budget.seconds + (self.costs.of(&with(fewest, 1)) - left) / (1.0 - RESERVE),
            }),
        }
    }

    /// Epochs in each round that so many seconds are enough for, if one is.
    fn most_epochs(&self, seconds: f64, with: impl Fn(usize) -> RunConfig) -> Option<usize> {
        let fit = |epochs| self.costs.of(&with(epochs)) <= seconds;
        let most = RunConfig::MOST_EPOCHS / (with(1).training.rounds + 1);
        // More epochs never take less: the first number that is too many is found by halving.
        let (mut fits, mut too_many) = (0, most + 1);
        while fits + 1 < too_many {
            let epochs = fits.midpoint(too_many);
            if fit(epochs) { fits = epochs } else { too_many = epochs }
        }
        (fits > 0).then_some(fits)
    }

    /// The configuration as it is where the budget has time for it; else what fits, of the rounds
    /// it may have; and where nothing does, the shortest: an epoch in each of the fewest rounds.
    pub fn shortened(
        &self,
        budget: &TimeBudget,
        rounds: RangeInclusive<usize>,
        config: &RunConfig,
    ) -> RunConfig {
        if self.costs.of(config) <= budget.left() {
            return config.clone();
        }
        let fewest = *rounds.start();
        let with = |rounds, epochs| config.with_rounds(rounds, epochs);
        let Ok(fitted) = self.fitted(budget, rounds, with) else {
            return with(fewest, 1);
        };
        // Fewer rounds may have time for more epochs than it was to have.
        let (own, fitted) = (&config.training, &fitted.training);
        let most = (own.rounds + 1) * own.epochs / (fitted.rounds + 1);
        with(fitted.rounds, fitted.epochs.min(most))
    }

    /// Seconds of the budget that a run takes which begins now, and what follows it.
    pub fn foreseen(&self, budget: &TimeBudget, config: &RunConfig) -> f64 {
        budget.since.elapsed().as_secs_f64() + self.costs.of(config) + budget.afterwards
    }

    /// What came of it, to be told: `asked` is the configuration before, `fitted` the one after.
    pub fn event(&self, budget: &TimeBudget, asked: &RunConfig, fitted: &RunConfig) -> Event {
        let (before, after) = (&asked.training, &fitted.training);
        Event::TimeFitted(TimeFitted {
            minutes: budget.seconds / 60.0,
            pictures_per_second: self.pictures_per_second,
            rounds: after.rounds,
            epochs: after.epochs,
            warm_up: after.warm_up,
            shortened: after.warm_up < before.warm_up,
        })
    }
}

impl RunConfig {
    /// The rounds after round 0 that a run of so many minutes may have: its own; and where one
    /// schedule spans them all, and nobody asked for so many, down to half, for each has one epoch
    /// at least, and as many as the others.
    pub fn rounds_to_fit(&self, asked_for: bool) -> RangeInclusive<usize> {
        let own = self.training.rounds;
        if self.training.one_schedule && !asked_for { own.div_ceil(2)..=own } else { own..=own }
    }

    /// The same with so many rounds after round 0, epochs in each, and a warm-up that is in
    /// proportion.
    pub fn with_rounds(&self, rounds: usize, epochs: usize) -> RunConfig {
        let mut config = self.clone();
        config.training.rounds = rounds;
        config.training.set_epochs(epochs);
        config
    }

    /// The same with so many epochs in each round.
    pub fn with_epochs(&self, epochs: usize) -> RunConfig {
        self.with_rounds(self.training.rounds, epochs)
    }
}

/// The rounds and epochs of a configuration that the first of several processes finds; only that
/// one looks for it.
pub fn found_by_first(
    together: &Communicator,
    found: impl FnOnce() -> Result<RunConfig, TrainError>,
) -> Result<(usize, usize), TrainError> {
    let (rounds, epochs) = if together.is_first() {
        let training = found()?.training;
        (training.rounds, training.epochs)
    } else {
        (0, 0)
    };
    Ok((of_first(together, rounds)?, of_first(together, epochs)?))
}

fn seconds(clock: Instant) -> f64 {
    clock.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Preset, methods};

    fn measured() -> Measured {
        Measured {
            costs: Costs {
                epoch: 2.0,
                round: 5.0,
                evaluation: 1.0,
                checkpoint: 0.0,
                building: 0.0,
            },
            pictures_per_second: 1000.0,
            floors: vec![],
        }
    }

    fn budget(seconds: f64) -> TimeBudget {
        TimeBudget { afterwards: 1.0, ..TimeBudget::new(seconds, Instant::now()) }
    }

    fn fitted(config: &RunConfig, seconds: f64) -> Result<RunConfig, TrainError> {
        let rounds = config.rounds_to_fit(false);
        measured().fitted(&budget(seconds), rounds, |r, n| config.with_rounds(r, n))
    }

    #[test]
    fn as_many_epochs_as_fit_and_not_one_more() {
        // 2 + 1 rounds, evaluated every 2 epochs.
        let config = Preset::Quick.config_for("folder", &methods::AND);
        let fitted = fitted(&config, 300.0).unwrap();
        let took = |epochs| measured().costs.of(&fitted.with_epochs(epochs));
        let epochs = fitted.training.epochs;
        assert_eq!(took(10), 3.0 * (10.0 * 2.0 + 5.0) + 2.0 * 5.0);
        assert!(took(epochs) <= 300.0 && took(epochs + 1) > 290.0, "{epochs}");
    }

    /// Rounds of a few epochs each leave much of a short time unused, where one schedule spans them
    /// and there may be fewer.
    #[test]
    fn short_runs_have_fewer_rounds_rather_than_fewer_epochs() {
        let config = Preset::Strong.config_for("folder", &methods::ANCHORHOOD);
        assert!(config.training.one_schedule);
        let own = config.training.rounds;
        let epochs = |c: &RunConfig| (c.training.rounds + 1) * c.training.epochs;
        let mut fewer = 0;
        for seconds in 100..600 {
            let seconds = f64::from(seconds);
            let Ok(found) = fitted(&config, seconds) else {
                continue;
            };
            let cost = measured().costs.of(&found);
            assert!(cost <= seconds, "{seconds} s");
            let rounds = own..=own;
            let budget = budget(seconds);
            let typed = measured().fitted(&budget, rounds, |r, n| config.with_rounds(r, n));
            let typed = typed.map_or(0, |c| epochs(&c));
            assert!(epochs(&found) >= typed, "{seconds} s");
            assert!((own.div_ceil(2)..=own).contains(&found.training.rounds));
            fewer += usize::from(found.training.rounds < own);
        }
        assert!((50..450).contains(&fewer), "{fewer}");
        // Long ones have their own; and so have those whose rounds are somebody's wish, or have a
        // schedule each.
        assert_eq!(fitted(&config, 1e5).unwrap().training.rounds, own);
        assert_eq!(config.rounds_to_fit(true), own..=own);
        let and = Preset::Quick.config_for("folder", &methods::AND);
        assert_eq!(and.rounds_to_fit(false), 2..=2);
    }

    /// What is short enough stays as it is; what is not has no more than fits, and never less than
    /// an epoch in each of half the rounds.
    #[test]
    fn long_runs_are_shortened_and_short_ones_kept() {
        let config = Preset::Quick.config_for("folder", &methods::ANCHORHOOD);
        let config = config.with_rounds(4, 3); // 3 epochs and an evaluation in each of five rounds
        let whole = measured().costs.of(&config);
        assert_eq!(whole, 5.0 * 7.0 + 4.0 * 5.0);
        let within = |seconds| {
            let rounds = config.rounds_to_fit(false);
            measured().shortened(&budget(seconds), rounds, &config)
        };
        assert_eq!(within(whole / (1.0 - RESERVE) + 1.5), config);
        let shorter = within(whole);
        assert!(measured().costs.of(&shorter) <= whole - 1.0);
        let t = &shorter.training;
        let epochs = (t.rounds + 1) * t.epochs;
        assert!((2..=4).contains(&t.rounds) && (10..=15).contains(&epochs));
        assert_eq!(within(5.0), config.with_rounds(2, 1));
    }

    #[test]
    fn saving_takes_its_share() {
        let mut slow = measured();
        slow.costs.checkpoint = 1.0; // once in sixty seconds
        let config = Preset::Quick.config_for("folder", &methods::AND);
        let (slow, quick) = (slow.costs.of(&config), measured().costs.of(&config));
        assert_eq!(slow, (quick + 6.0) * (1.0 + 1.0 / 60.0));
    }

    #[test]
    fn what_does_not_fit_says_what_would() {
        let config = Preset::Quick.config_for("folder", &methods::AND);
        let refused = fitted(&config, 10.0).unwrap_err();
        let TrainError::TooLittleTime { needed, .. } = refused else {
            panic!("{refused}");
        };
        let enough = fitted(&config, needed + 0.1);
        assert_eq!(enough.unwrap().training.epochs, 1);
        assert!(fitted(&config, needed - 0.5).is_err());
    }

    #[test]
    fn no_more_epochs_than_a_run_can_have() {
        let config = Preset::Quick.config_for("folder", &methods::AND);
        fitted(&config, 1e12).unwrap().check().unwrap();
    }
}
