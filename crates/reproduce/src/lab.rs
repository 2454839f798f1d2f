//! Where experiments are carried out: what is missing is trained, what was interrupted is resumed,
//! what is finished is read.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_report::{
    AttentionOptions, Summary, attention_strips, finished_rounds, read_metrics,
};
use anchorhood_storage::{Disk, FileSystem};
use anchorhood_train::{
    Checkpoint, Event, MachineConfig, Outcome, RunConfig, RunDir, RunEnded, TrainError, VERSION,
    checkpoint_path, train,
};

use crate::open::Open;
use crate::pictures::{self, Chosen};
use crate::record::{self, FinishedRun, RoundRecord};
use crate::results::{Cell, Results};
use crate::starts::{after_instance, after_nothing};
use crate::{
    Entry, Experiment, Job, LabFolders, Plot, ReproduceError, Scale, Start, System, Told,
    config_of, name_of, sets,
};

/// The layer whose places the attention figure weighs.
const LOOKED_AT: &str = "conv5";

/// Carries experiments out on a device.
pub struct Lab<'a> {
    pub(crate) device: &'a Device,
    pub(crate) place: &'a LabFolders,
    machine: &'a MachineConfig,
    pub(crate) observer: &'a mut (dyn FnMut(Told) + Send),
    stop: &'a AtomicBool,
    open: Open,
}

impl<'a> Lab<'a> {
    /// `observer` hears what happens; setting `stop` ends the work soon, saved.
    pub fn new(
        device: &'a Device,
        place: &'a LabFolders,
        machine: &'a MachineConfig,
        observer: &'a mut (dyn FnMut(Told) + Send),
        stop: &'a AtomicBool,
    ) -> Self {
        Lab { device, place, machine, observer, stop, open: Open::default() }
    }

    /// Carries out one experiment with each seed: all of it, or those of its rows that are named.
    /// Nothing is trained or judged that has been already; what has been of other rows is there,
    /// too.
    pub fn carry_out(
        &mut self,
        experiment: &Experiment,
        seeds: &[u64],
        only: &[String],
    ) -> Result<Results, ReproduceError> {
        experiment.check_rows(only)?;
        let Experiment { name, title, place, .. } = experiment;
        (self.observer)(Told::Note(&format!("{name}: {title} ({place})")));
        let mut results = Results::of(experiment, self.place.scale, seeds);
        for entry in &experiment.entries {
            let asked = only.is_empty() || only.iter().any(|row| entry.is_of(row));
            let cell = self.cell(entry, seeds, asked, &mut results)?;
            results.cells.push(cell);
        }
        if experiment.plot == Plot::Attention {
            self.choose_pictures(experiment, seeds, &mut results)?;
        }
        Ok(results)
    }

    /// A cell with each seed; of one that is not asked for, what is there already.
    fn cell(
        &mut self,
        entry: &Entry,
        seeds: &[u64],
        asked: bool,
        results: &mut Results,
    ) -> Result<Cell, ReproduceError> {
        let mut cell = Cell::of(entry);
        let Some((subject, protocol)) = entry.ours else {
            return Ok(cell);
        };
        let scale = self.place.scale;
        for seed in seeds {
            let job = Job { subject, scale, seed: *seed };
            if !asked && !self.is_judged(&job, protocol)? {
                cell.left_out = Some("not asked for".into());
                break;
            }
            match self.figure(&job, protocol) {
                Ok((run, judged)) => {
                    results.add(&run, protocol, &judged);
                    cell.add(&run.name, &judged, scale != Scale::Smoke);
                }
                Err(ReproduceError::Missing { why }) => {
                    let (row, column) = (&entry.row, entry.column);
                    let note = format!("  {row}, {column}: left out: {why}");
                    (self.observer)(Told::Note(&note));
                    cell.left_out = Some(why);
                    break;
                }
                Err(other) => return Err(other),
            }
        }
        Ok(cell)
    }

    /// The run of a job, trained if it is not yet.
    pub(crate) fn trained(&mut self, job: &Job) -> Result<FinishedRun, ReproduceError> {
        let name = name_of(job);
        let folder = self.place.runs().join(&name);
        let finished = folder.join("finished.json");
        if let Some(found) = record::read::<FinishedRun>(&finished)? {
            self.check_settings(job, &found, &folder)?;
            return Ok(found);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(ReproduceError::Stopped);
        }
        let before = match job.subject.method {
            System::And { start: Start::Instance, .. } => Some(self.trained_here(&job.before())?),
            _ => None,
        };
        let data = self.data(job)?;
        let record = sets::record(&data);
        let mut config = config_of(job, &self.spec(job), self.machine);
        if job.subject.method == System::Supervised {
            if record.classes == 0 {
                return Err(TrainError::NoLabels { data: data.name.clone() }.into());
            }
            config = config.supervised(record.classes);
        }
        if let System::Rival(_) = job.subject.method {
            config = config.fitted(&data)?;
        }
        (self.observer)(Told::Training(&name));
        let mut run = FinishedRun {
            name,
            version: VERSION.into(),
            device: self.device.describe(),
            seconds: 0.0,
            seed: job.seed,
            data: record,
            knn: None,
            rounds: before.as_ref().map_or(vec![], |b| b.rounds.clone()),
            pretext: vec![],
            config,
        };
        if job.subject.method != System::Untrained {
            let ended = self.train(job, &run, &data)?;
            run.seconds = ended.seconds;
            run.knn = ended.last;
            let log = read_metrics(&folder.join("metrics.jsonl"))?;
            if let Some(left_out) = log.left_out {
                let message = left_out.to_string();
                (self.observer)(Told::Event(&Event::Warning { message }));
            }
            let summary = Summary::of(&log.events);
            run.rounds.extend(rounds_of(&summary));
            run.pretext = summary.pretext;
        }
        record::write(&finished, &run)?;
        Ok(run)
    }

    /// The same with its last checkpoint. The record of a run is small and may have come without:
    /// then the run is trained again.
    pub(crate) fn trained_here(&mut self, job: &Job) -> Result<FinishedRun, ReproduceError> {
        let folder = self.place.runs().join(name_of(job));
        let finished = folder.join("finished.json");
        // One that is damaged is told of, and not thrown away.
        let known: Option<FinishedRun> = record::read(&finished)?;
        if let Some(known) = known
            && !checkpoint_path(&folder, "last").is_file()
        {
            let config = folder.join("config.toml");
            if !config.is_file() {
                record::write_bytes(&config, known.config.to_toml().as_bytes())?;
            }
            Disk.remove(&finished).map_err(ReproduceError::io(&finished))?;
        }
        self.trained(job)
    }

    fn train(
        &mut self,
        job: &Job,
        run: &FinishedRun,
        data: &Dataset,
    ) -> Result<RunEnded, ReproduceError> {
        let mut dir = self.run_dir(&run.name, &run.config)?;
        let mut tell = |event: &Event| (self.observer)(Told::Event(event));
        if let System::And { start, .. } = job.subject.method
            && !dir.checkpoint("last").exists()
        {
            let from = self.place.runs().join(name_of(&job.before()));
            let first = match start {
                Start::Instance => after_instance(&from, dir.config())?,
                Start::Random => after_nothing(self.device, dir.config(), data)?,
            };
            dir.begin_after_round_0(&first, &data.train)?;
        }
        match train(self.device, &mut dir, data, &mut tell, self.stop)? {
            Outcome::Finished(ended) => Ok(ended),
            Outcome::Stopped(_) => Err(ReproduceError::Stopped),
        }
    }

    /// The run's folder: made, or taken up where it was left.
    fn run_dir(&self, name: &str, config: &RunConfig) -> Result<RunDir, ReproduceError> {
        let runs = self.place.runs();
        let folder = runs.join(name);
        if !folder.join("config.toml").is_file() {
            return Ok(RunDir::create(&runs, name, config)?);
        }
        let mut dir = RunDir::open(&folder)?;
        same_settings(&folder, dir.config(), config)?;
        dir.set_machine(config.machine.clone());
        Ok(dir)
    }

    /// A finished run must be the one that is asked for: a later version of the program may have
    /// other settings.
    fn check_settings(
        &self,
        job: &Job,
        found: &FinishedRun,
        folder: &Path,
    ) -> Result<(), ReproduceError> {
        let mut config = config_of(job, &found.config.data.set, self.machine);
        if job.subject.method == System::Supervised {
            config = config.supervised(found.data.classes);
        }
        if let System::Rival(_) = job.subject.method {
            // Below heads, features are as many as the layer has.
            config.network.features = found.config.network.features;
        }
        same_settings(folder, &found.config, &config)
    }

    /// The place of a job's pictures, as its run names it.
    fn spec(&self, job: &Job) -> String {
        job.spec(&sets::spec_of(job.subject.set, self.place.data.as_deref()))
    }

    pub(crate) fn data(&mut self, job: &Job) -> Result<Arc<Dataset>, ReproduceError> {
        let spec = self.spec(job);
        let config = config_of(job, &spec, self.machine);
        let data = self.open.data(&spec, config.data.load_options(config.seed), self.observer);
        data.map_err(|error| match sets::missing(job.subject.set, &error) {
            Some(why) => ReproduceError::Missing { why },
            None => error.into(),
        })
    }

    /// The pictures that the attention figure shows, chosen once from the first seed's run.
    fn choose_pictures(
        &mut self,
        experiment: &Experiment,
        seeds: &[u64],
        results: &mut Results,
    ) -> Result<(), ReproduceError> {
        let first = results.cells.first().and_then(|c| c.runs.first().cloned());
        let subject = experiment.entries.first().and_then(|e| e.ours);
        let (Some(name), Some((subject, _)), Some(seed)) = (first, subject, seeds.first()) else {
            return Ok(()); // its data set is not there
        };
        let folder = self.place.runs().join(&name);
        let file = folder.join("chosen.json");
        let chosen: Vec<Chosen> = match record::read(&file)? {
            Some(chosen) => chosen,
            None => {
                let job = Job { subject, scale: self.place.scale, seed: *seed };
                let data = self.data(&job)?;
                let last = checkpoint_path(&folder, "last");
                let found = Checkpoint::load(&last)?.neighbourhoods();
                let chosen = pictures::choose(found.as_ref(), &data.train);
                record::write(&file, &chosen)?;
                chosen
            }
        };
        results.pictures = chosen.into_iter().map(Into::into).collect();
        let job = Job { subject, scale: self.place.scale, seed: *seed };
        self.draw_strips(&job, &folder, results)
    }

    /// Draws the strips that are not there yet, beside the results.
    fn draw_strips(
        &mut self,
        job: &Job,
        run: &Path,
        results: &Results,
    ) -> Result<(), ReproduceError> {
        let folder = self.place.results(&results.experiment);
        let missing = results.pictures.iter();
        let missing = missing.filter(|p| !folder.join(&p.file).is_file());
        let numbers: Vec<usize> = missing.map(|p| p.chosen.number).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let data = self.data(job)?;
        let config = RunDir::config_of(run)?;
        let rounds = finished_rounds(run, &config);
        let options = AttentionOptions {
            pictures: &numbers,
            layer: LOOKED_AT,
            temperature: config.discovery.temperature as f32,
        };
        let observer = std::sync::Mutex::new(&mut *self.observer);
        let tell = |done| {
            if let Ok(mut observer) = observer.try_lock() {
                let (what, total) = ("looking", rounds.len());
                observer(Told::Step { what, done, total });
            }
        };
        let strips = attention_strips(self.device, &rounds, &config, &data, &options, &tell)?;
        for strip in strips {
            let record = results.pictures.iter().find(|p| p.chosen.number == strip.picture);
            if let Some(record) = record {
                record::write_bytes(&folder.join(&record.file), &strip.png)?;
                let note = format!("  {}: {}", record.file, strip.sentence);
                (self.observer)(Told::Note(&note));
            }
        }
        Ok(())
    }
}

fn rounds_of(summary: &Summary) -> Vec<RoundRecord> {
    let told = summary.rounds.iter().filter(|r| r.accuracy.is_some() || r.anchors.is_some());
    told.map(|r| RoundRecord {
        round: r.round,
        top1: r.accuracy.map(|a| a.top1),
        anchors: r.anchors,
        consistent: r.consistency.map(|c| c.consistent_anchors),
        inconsistent: r.consistency.map(|c| c.anchors - c.consistent_anchors),
    })
    .collect()
}

/// Two configurations must agree in all but the place of the data, which may have moved, and the
/// machine.
pub(crate) fn same_settings(
    folder: &Path,
    ours: &RunConfig,
    wanted: &RunConfig,
) -> Result<(), ReproduceError> {
    let mut wanted = wanted.clone();
    wanted.data.set = ours.data.set.clone();
    let differences = ours.differences(&wanted);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(TrainError::OtherSettings { path: folder.into(), differences }.into()),
    }
}
