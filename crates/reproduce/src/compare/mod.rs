//! Methods beside each other: the same network, pictures and judge, and as many minutes or views
//! for each of them.
//!
//! Every method and seed is a run of its own, in a folder of its own. What is finished is read,
//! what was interrupted goes on, and only the rest is begun: the same call again costs nothing that
//! has been paid for.

mod standings;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anchorhood_data::{Dataset, LoadOptions};
use anchorhood_engine::Device;
use anchorhood_report::read_metrics;
use anchorhood_train::{
    Beginning, Evaluated, Event, Outcome, RunConfig, RunDir, TimeBudget, TrainError, check_data,
    check_room_to_train, measure, train_with,
};
use serde::{Deserialize, Serialize};

use crate::lab::same_settings;
use crate::open::Open;
use crate::{ReproduceError, Told, record};
pub use standings::{Contestant, Standings};

/// What every method is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowance {
    /// So many minutes, from the first step that is timed to the last evaluation.
    Minutes(f64),
    /// So many view-epochs: one view of every training picture, forwards and backwards, is one.
    ViewEpochs(usize),
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Where its runs and its results lie.
    pub folder: PathBuf,
    /// What every run is given; its epochs follow.
    pub allowance: Allowance,
    /// A configuration for each method and seed.
    pub configs: Vec<RunConfig>,
    /// About how often each run is judged; as configured, if nothing is said.
    pub evaluations: Option<usize>,
    /// Whether rounds are somebody's wish; otherwise a short run may have fewer
    /// ([`RunConfig::rounds_to_fit`]).
    pub rounds_asked_for: bool,
    /// Pixels a side that a folder's photographs may have where nobody says how many; see
    /// [`LoadOptions::largest`].
    pub largest: Option<usize>,
}

/// What a comparison was begun with: runs with other allowances are not compared.
#[derive(Serialize, Deserialize)]
struct Begun {
    allowance: Allowance,
}

impl Comparison {
    /// Trains what is missing and puts all of it side by side. `tell` hears what happens; setting
    /// `stop` ends it soon, saved.
    pub fn carry_out(
        &self,
        device: &Device,
        tell: &mut (dyn FnMut(Told) + Send),
        stop: &AtomicBool,
    ) -> Result<Standings, ReproduceError> {
        self.begin()?;
        let (mut open, mut contestants) = (Open::default(), vec![]);
        for config in &self.configs {
            let name = name_of(config);
            tell(Told::Training(&name));
            let found = self.finished(&name, config)?;
            let contestant = match found {
                Some(contestant) => contestant,
                None if stop.load(Ordering::Relaxed) => return Err(ReproduceError::Stopped),
                None => {
                    let data = labelled(&mut open, config, self.pictures(config)?, tell)?;
                    self.train(&name, config, device, &data, tell, stop)?;
                    self.finished(&name, config)?.ok_or(ReproduceError::Stopped)?
                }
            };
            contestants.push(contestant);
        }
        let standings = Standings::of(self.allowance, contestants);
        standings.write(&self.folder)?;
        Ok(standings)
    }

    /// The folder, and in it what everybody is given.
    fn begin(&self) -> Result<(), ReproduceError> {
        let file = self.folder.join("allowance.json");
        match record::read::<Begun>(&file)? {
            Some(begun) if begun.allowance == self.allowance => Ok(()),
            Some(begun) => Err(ReproduceError::OtherAllowance {
                folder: self.folder.clone(),
                begun: begun.allowance,
            }),
            None => {
                let allowance = self.allowance;
                record::write(&file, &Begun { allowance })
            }
        }
    }

    /// What a run came to, if it has ended.
    fn finished(
        &self,
        name: &str,
        config: &RunConfig,
    ) -> Result<Option<Contestant>, ReproduceError> {
        let folder = self.folder.join(name);
        if !folder.join("config.toml").is_file() {
            return Ok(None);
        }
        let theirs = RunDir::config_of(&folder)?;
        same_settings(&folder, &theirs, &self.as_begun(config, &theirs))?;
        let metrics = folder.join("metrics.jsonl");
        if !metrics.is_file() {
            return Ok(None);
        }
        let events = read_metrics(&metrics)?;
        Ok(Contestant::of(name, &theirs, &events.events))
    }

    /// What of the pictures: as large as the first run had them, whatever machine it began on.
    fn pictures(&self, config: &RunConfig) -> Result<LoadOptions, ReproduceError> {
        let folders = self.configs.iter().map(|c| self.folder.join(name_of(c)));
        let begun = folders.filter(|run| run.join("config.toml").is_file());
        let begun = begun.map(|run| RunDir::config_of(&run)).next();
        let options = config.data.load_options(config.seed);
        Ok(match begun.transpose()? {
            Some(first) => LoadOptions { size: options.size.or(first.data.size), ..options },
            None => LoadOptions { largest: self.largest, ..options },
        })
    }

    /// What is asked for, with the epochs that were found out when the run began.
    fn as_begun(&self, config: &RunConfig, theirs: &RunConfig) -> RunConfig {
        let rounds = match self.rounds_to_fit(config).contains(&theirs.training.rounds) {
            true => theirs.training.rounds,
            false => config.training.rounds,
        };
        let mut config = self.with_rounds(config, rounds, theirs.training.epochs);
        // What the pictures decided: supervision's classes, the width of a layer below heads,
        // sizes.
        if !config.method.name.has_features_to_choose() {
            config.network.features = theirs.network.features;
        }
        config.data.size = config.data.size.or(theirs.data.size);
        config.data.embed_size = config.data.embed_size.or(theirs.data.embed_size);
        config
    }

    /// How many rounds a run may have.
    fn rounds_to_fit(&self, config: &RunConfig) -> RangeInclusive<usize> {
        match self.allowance {
            Allowance::Minutes(_) => config.rounds_to_fit(self.rounds_asked_for),
            Allowance::ViewEpochs(_) => config.training.rounds..=config.training.rounds,
        }
    }

    fn with_rounds(&self, config: &RunConfig, rounds: usize, epochs: usize) -> RunConfig {
        let mut config = config.with_rounds(rounds, epochs);
        config.evaluation.patience = 0; // none is cut short
        if let Some(evaluations) = self.evaluations {
            let all = (config.training.rounds + 1) * epochs;
            config.evaluation.every = (all / evaluations.max(1)).clamp(1, epochs);
        }
        config
    }

    fn train(
        &self,
        name: &str,
        config: &RunConfig,
        device: &Device,
        data: &Dataset,
        tell: &mut (dyn FnMut(Told) + Send),
        stop: &AtomicBool,
    ) -> Result<(), ReproduceError> {
        let (mut dir, floors) = match self.folder.join(name) {
            folder if folder.join("config.toml").is_file() => {
                let mut dir = RunDir::open(&folder)?;
                dir.set_machine(config.machine.clone());
                (dir, vec![])
            }
            _ => {
                let config = config.resolved(data)?;
                check_data(&config, data)?;
                check_room_to_train(device, &config, data)?;
                let (config, floors) = self.fitted(&config, device, data, tell)?;
                (RunDir::create(&self.folder, name, &config)?, floors)
            }
        };
        let beginning = Beginning { floors, model: None };
        let mut event = |event: &Event| tell(Told::Event(event));
        let outcome = train_with(device, &mut dir, data, beginning, &mut event, stop)?;
        let run = dir.path().to_path_buf();
        drop(dir); // who is told may write to it
        match outcome {
            Outcome::Finished(_) => {
                tell(Told::Trained { run: &run, data });
                Ok(())
            }
            Outcome::Stopped(_) => Err(ReproduceError::Stopped),
        }
    }

    /// The configuration with the epochs that the allowance comes to, and the floors where they had
    /// to be judged for it.
    fn fitted(
        &self,
        config: &RunConfig,
        device: &Device,
        data: &Dataset,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<(RunConfig, Vec<Evaluated>), ReproduceError> {
        let with = |rounds, epochs| self.with_rounds(config, rounds, epochs);
        match self.allowance {
            Allowance::ViewEpochs(views) => {
                let once = config.with_epochs(1).view_epochs();
                // As near as whole epochs in each round come to it.
                let epochs = ((views + once / 2) / once).max(1);
                Ok((with(config.training.rounds, epochs), vec![]))
            }
            Allowance::Minutes(minutes) => {
                let budget = TimeBudget::new(60.0 * minutes, Instant::now());
                let measured = measure(device, config, data, None, &self.folder, &budget)?;
                let fitted = measured.fitted(&budget, self.rounds_to_fit(config), with)?;
                tell(Told::Event(&measured.event(&budget, config, &fitted)));
                Ok((fitted, measured.floors))
            }
        }
    }
}

/// A run is called after its method, and after its seed where there is one.
fn name_of(config: &RunConfig) -> String {
    let method = config.method.name;
    match config.seed {
        0 => method.to_string(),
        seed => format!("{method}-seed-{seed}"),
    }
}

/// The pictures of a configuration, which must have labels.
fn labelled(
    open: &mut Open,
    config: &RunConfig,
    options: LoadOptions,
    tell: &mut (dyn FnMut(Told) + Send),
) -> Result<Arc<Dataset>, ReproduceError> {
    let data = open.data(&config.data.place(), options, tell)?;
    let tested = data.test.as_ref().and_then(|test| test.labels.as_ref());
    if tested.is_none() || data.train.labels.is_none() {
        let data = data.name.clone();
        return Err(TrainError::NoLabels { data }.into());
    }
    Ok(data)
}
