//! Training: from what is asked for and the images to a run with its model, curve and report.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anchorhood_data::{Dataset, LoadOptions, open_with_progress};
use anchorhood_distributed::Launch;
use anchorhood_engine::{Communicator, Device};
use anchorhood_report::{Summary, read_metrics, write_curve};
use anchorhood_train::{
    Beginning, Event, MethodSpec, Outcome, Preset, Pretrained, RunConfig, RunDir, Setting,
    TrainError, check_data, check_room_to_train, check_together, fellow_readers, train_with,
};

use crate::device::{gpus_of, largest_images, machine_of, open_device};
use crate::error::usage;
use crate::explain::Trace;
use crate::folder_report::folder_events;
use crate::length::{Timed, enough_epochs};
use crate::refit::{forget_refitted, refit};
use crate::run_options::Configure;
use crate::run_report::write_run_report;
use crate::tensorboard::Follower;
use crate::{Error, Explained, Images, OnEvent, Run, RunOptions, pretrained, run_images};

/// A run that nobody stops.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Learns features from images without labels, as `anchorhood train` does: what is not said is
/// decided in the same way, and the same settings give the same bits.
///
/// ```
/// use anchorhood::prelude::*;
///
/// let images = Images::open("shapes")?;
/// # let folder = tempfile::tempdir()?;
/// # let runs = folder.path();
/// let run = Trainer::new(&images)
///     .preset(Preset::Quick)
///     .configure(|config| config.training.epochs = 1)
/// #   .configure(|config| {
/// #       (config.training.epochs, config.training.rounds, config.network.width) = (1, 0, 2);
/// #       (config.data.shapes_train, config.data.shapes_test) = (64, 32);
/// #   })
///     .device(Device::auto())
///     .run_dir(runs.join("shapes"))
///     .on_event(|event| if let Event::EpochEnded(e) = event { println!("loss {}", e.loss) })
///     .train()?;
/// let model = run.model()?;
/// # assert!(run.path().join("report.html").is_file());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Trainer<'a> {
    images: Option<Images>,
    options: RunOptions,
    runs: PathBuf,
    name: Option<String>,
    minutes: Option<f64>,
    resume: Option<PathBuf>,
    moved: Option<String>,
    tensorboard: bool,
    began: Instant,
    together: (Communicator, Option<Launch>),
    device: Option<Device>,
    on_event: Box<dyn FnMut(&Event) + Send + 'a>,
    stop: &'a AtomicBool,
}

/// Which run.
enum Plan {
    New(Box<RunConfig>),
    Resume(PathBuf, Box<RunConfig>),
}

impl Plan {
    fn config(&self) -> &RunConfig {
        let (Plan::New(config) | Plan::Resume(_, config)) = self;
        config
    }
}

/// All that a run needs to begin.
struct Prepared {
    plan: Plan,
    data: Dataset,
    device: Device,
    beginning: Beginning,
    trace: Trace,
}

impl<'a> Trainer<'a> {
    /// Learns from images.
    pub fn new(images: &Images) -> Trainer<'a> {
        Trainer::with_options(RunOptions::default()).images(images)
    }

    /// Goes on with a run that was stopped, to its end. Images that lay in memory must be given
    /// again, by [`images`](Self::images).
    pub fn resume(run: impl Into<PathBuf>) -> Trainer<'a> {
        Trainer::with_options(RunOptions::default()).resumed(run)
    }

    /// By what is asked for, and learning from the data set that it names, or from `shapes`.
    pub fn with_options(options: RunOptions) -> Trainer<'a> {
        Trainer {
            images: None,
            options,
            runs: "runs".into(),
            name: None,
            minutes: None,
            resume: None,
            moved: None,
            tensorboard: false,
            began: Instant::now(),
            together: (Communicator::single(), None),
            device: None,
            on_event: Box::new(|_| {}),
            stop: &NEVER,
        }
    }

    /// What to learn from.
    pub fn images(mut self, images: &Images) -> Self {
        match images.place() {
            Some(place) => self.options.data = Some(place.into()),
            None => self.images = Some(images.clone()),
        }
        self
    }

    /// Settings to begin from; [`Preset::Quick`] where nobody says.
    pub fn preset(mut self, preset: Preset) -> Self {
        self.options.preset = Some(preset);
        self
    }

    /// How to learn, with the method's own recipe; what the preset has for these images where
    /// nobody says.
    pub fn method(mut self, method: &MethodSpec) -> Self {
        let name = Setting::named("method.name").expect("it is a setting");
        self.options.settings.add(name, method.name);
        self
    }

    /// A configuration file, whole or in part.
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.config = Some(file.into());
        self
    }

    /// Gives a setting a value, as it could be typed: `.set(setting, "30")`; see
    /// [`Setting::named`].
    pub fn set(mut self, setting: &'static Setting, text: &str) -> Self {
        self.options.settings.add(setting, text);
        self
    }

    /// Changes settings. What it sets is final: neither images nor time change it.
    pub fn configure(mut self, change: impl Fn(&mut RunConfig) + Send + Sync + 'static) -> Self {
        self.options.configure = Configure::by(change);
        self
    }

    /// Trains for about so many minutes from [`began`](Self::began) to the report: the speed is
    /// measured first, and the epochs follow from it.
    pub fn minutes(mut self, minutes: f64) -> Self {
        self.minutes = Some(minutes);
        self
    }

    /// Since when minutes are counted; since the trainer was made where nobody says.
    pub fn began(mut self, at: Instant) -> Self {
        self.began = at;
        self
    }

    /// Where the run is to lie: a folder that is not there yet. By default a numbered one in
    /// `runs`.
    pub fn run_dir(mut self, folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        self.runs = folder.parent().unwrap_or(Path::new("")).into();
        self.name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        self
    }

    /// Where runs are kept, and what to call this one; the data set and a number without a name.
    pub fn runs(mut self, folder: impl Into<PathBuf>, name: Option<String>) -> Self {
        (self.runs, self.name) = (folder.into(), name);
        self
    }

    /// Goes on with this run.
    pub fn resumed(mut self, run: impl Into<PathBuf>) -> Self {
        self.resume = Some(run.into());
        self
    }

    /// Where the images of a resumed run are now.
    pub fn data_path(mut self, place: impl Into<String>) -> Self {
        self.moved = Some(place.into());
        self
    }

    /// Also writes its figures for TensorBoard.
    pub fn tensorboard(mut self, wanted: bool) -> Self {
        self.tensorboard = wanted;
        self
    }

    /// Where it runs; what the settings name where nobody says.
    pub fn device(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }

    /// Trains as one of several processes.
    pub fn process_group(mut self, communicator: Communicator, launch: Option<Launch>) -> Self {
        self.together = (communicator, launch);
        self
    }

    /// Who hears what happens.
    pub fn on_event(mut self, hear: impl FnMut(&Event) + Send + 'a) -> Self {
        self.on_event = Box::new(hear);
        self
    }

    /// Ends soon after this is set; the run is saved, and can be resumed.
    pub fn stop_when(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = stop;
        self
    }

    /// Every setting of the run that would begin now, and where its value comes from. Nothing is
    /// written.
    pub fn explain(mut self) -> Result<Vec<Explained>, Error> {
        Ok(self.prepare()?.trace.explain())
    }

    /// Trains. A run that cannot begin leaves no folder behind.
    pub fn train(mut self) -> Result<Run, Error> {
        let Prepared { plan, data, device, beginning, .. } = self.prepare()?;
        let first = device.communicator().is_first();
        let mut dir = self.folder(&plan, &data, first)?;
        let mut follower = Follower::new(dir.path(), self.tensorboard && first);
        let on_event = &mut *self.on_event;
        let mut observer = |event: &Event| {
            on_event(event);
            if let Some(message) = follower.event(event) {
                on_event(&Event::Warning { message });
            }
        };
        let outcome = train_with(&device, &mut dir, &data, beginning, &mut observer, self.stop)?;
        device.leave();
        let path = dir.path().to_path_buf();
        drop(dir); // the model, judged as it is used, is added to its events
        if let (Outcome::Finished(_), true) = (&outcome, first) {
            finish(&path, &data, &device.alone(), on_event)?;
        }
        match first {
            true => Run::after(&path, outcome),
            // Its folder may be on the first one's disk alone.
            false => Ok(Run::of_another(path, plan.config().clone(), outcome)),
        }
    }

    fn prepare(&mut self) -> Result<Prepared, Error> {
        self.check_minutes()?;
        let mut trace = Trace::default();
        let (mut plan, model) = self.plan(&mut trace)?;
        let data = self.open(&plan)?;
        if let Plan::New(config) = &mut plan {
            self.fit(config, &data, &mut trace)?;
            let on_event = &mut *self.on_event;
            if let Some(model) = &model {
                on_event(&Event::note(begins_from(model, config)));
            }
        }
        let (communicator, launch) = &self.together;
        let machine = machine_of(launch.as_ref(), plan.config().machine.clone())?;
        if gpus_of(machine.device)?.len() > 1 {
            return Err(usage!(
                "--device {}: several GPUs are work for as many processes, which only the command \
                 line starts; name one",
                machine.device
            ));
        }
        let on_event = &mut *self.on_event;
        if let Some(carrier) = communicator.describe() {
            let ranks = communicator.ranks();
            on_event(&Event::note(format!("{ranks} processes train together, by {carrier}")));
        }
        let device = match &self.device {
            Some(device) => device.clone(),
            None => open_device(&machine, on_event)?,
        };
        let device = device.among(communicator.clone());
        let mut beginning = Beginning::default();
        if let Plan::New(config) = &mut plan {
            check_data(config, &data)?;
            check_together(&device, config, &data)?;
            check_room_to_train(&device, config, &data)?;
            (**config, beginning) = self.timed(config, &data, model.as_ref(), &device)?;
            trace.add("time", config, []);
        }
        beginning.model = model;
        Ok(Prepared { plan, data, device, beginning, trace })
    }

    /// Epochs that follow from minutes are asked for by nobody else.
    fn check_minutes(&self) -> Result<(), Error> {
        let Some(minutes) = self.minutes else {
            return Ok(());
        };
        let configure = &self.options.configure;
        if !(minutes > 0.0 && minutes.is_finite()) {
            return Err(usage!("--minutes {minutes}: give a number above 0, such as 5 or 0.5"));
        }
        if self.resume.is_some() {
            return Err(usage!("--minutes: a run that goes on has its epochs; leave it out"));
        }
        let quick = Preset::Quick.config("shapes");
        if self.options.settings.has("training.epochs") || !configure.leaves_epochs(&quick) {
            return Err(usage!("--minutes: epochs follow from it; leave --epochs out"));
        }
        Ok(())
    }

    /// Which run it is, and the model that it needs to begin.
    fn plan(&mut self, trace: &mut Trace) -> Result<(Plan, Option<Pretrained>), Error> {
        let in_memory = self.images.as_ref().and_then(Images::dataset);
        if let (None, None, Some(data)) = (&self.resume, &self.options.data, in_memory) {
            self.options.data = Some(data.name.clone());
        }
        let (options, on_event) = (&self.options, &mut *self.on_event);
        let Some(path) = self.resume.clone() else {
            let (mut config, model) = options.new_run(&self.runs, on_event, trace)?;
            config.data.settle();
            trace.add("this folder", &config, []);
            return Ok((Plan::New(Box::new(config)), model));
        };
        let theirs = RunDir::config_of(&path)?;
        theirs.check_method_is_known()?;
        let mut config = options.configuration(Some(&theirs), None, trace)?;
        config.data.seen_from = theirs.data.seen_from.clone();
        if pretrained::is_the_same(&config, &theirs, &self.runs) {
            config.training.from = theirs.training.from.clone();
        }
        let differences = theirs.differences(&config);
        if !differences.is_empty() {
            return Err(TrainError::OtherSettings { path, differences }.into());
        }
        let model = pretrained::of_resumed(&path, &config, &self.runs, on_event)?;
        Ok((Plan::Resume(path, Box::new(config)), model))
    }

    /// What follows from the images: epochs, sizes, features.
    fn fit(
        &mut self,
        config: &mut RunConfig,
        data: &Dataset,
        trace: &mut Trace,
    ) -> Result<(), Error> {
        if self.options.epochs_are_open() {
            config.training.epochs = enough_epochs(config, data);
            self.options.configure.apply(config);
        }
        let open = config.data.size.is_none();
        *config = config.resolved(data)?;
        trace.add("images", config, []);
        if let (true, Some(size)) = (open, config.data.size) {
            (self.on_event)(&Event::note(format!(
                "pictures of {size}×{size} (--size for another), learnt from nothing (--from base: \
                 from the model inside this program)"
            )));
        }
        Ok(())
    }

    /// The configuration with as many epochs as there is time for, and what was judged on the way.
    fn timed(
        &mut self,
        config: &RunConfig,
        data: &Dataset,
        model: Option<&Pretrained>,
        device: &Device,
    ) -> Result<(RunConfig, Beginning), Error> {
        let timed = Timed {
            config,
            data,
            model,
            device,
            runs: &self.runs,
            began: self.began,
            rounds_asked_for: self.options.rounds_are_asked_for(),
        };
        // Whether nobody but the preset says how long a run on a CPU is, which is as long as most
        // people wait. A model that it begins from is fine-tuned for as long as was found best.
        let may_be_shortened = device.is_host()
            && config.training.from.is_none()
            && self.options.epochs_are_open()
            && self.options.configure.leaves_epochs(config);
        match self.minutes {
            Some(minutes) => timed.within(minutes, &mut *self.on_event),
            None if may_be_shortened => timed.shortened(&mut *self.on_event),
            None => Ok((config.clone(), Beginning::default())),
        }
    }

    /// The run's folder.
    fn folder(&self, plan: &Plan, data: &Dataset, first: bool) -> Result<RunDir, Error> {
        let runs = &self.runs;
        Ok(match plan {
            Plan::New(config) if !first => {
                let name = self.name.as_ref().unwrap_or(&data.name);
                RunDir::follow(&runs.join(name), config)
            }
            Plan::New(config) => match &self.name {
                Some(name) => RunDir::create(runs, name, config)?,
                None => RunDir::create_numbered(runs, &data.name, config)?,
            },
            Plan::Resume(path, config) if !first => RunDir::follow(path, config),
            Plan::Resume(path, config) => {
                let mut dir = RunDir::open(path)?;
                forget_refitted(path)?;
                dir.set_machine(config.machine.clone());
                dir
            }
        })
    }

    fn open(&mut self, plan: &Plan) -> Result<Dataset, Error> {
        let config = plan.config();
        if let Some(own) = self.images.as_ref().and_then(Images::dataset) {
            return Ok(own.clone().with_options(&config.data.load_options(config.seed))?);
        }
        let fellows = fellow_readers(&self.together.0);
        let data = {
            let on_event = Mutex::new(&mut *self.on_event);
            let progress = |done, pictures| {
                if let Ok(mut on_event) = on_event.try_lock() {
                    on_event(&Event::Loading { done, pictures });
                }
            };
            match plan {
                Plan::New(config) => {
                    let options = LoadOptions {
                        largest: Some(match &self.device {
                            Some(device) if !device.is_host() => 96,
                            _ => largest_images(&config.machine),
                        }),
                        fellows,
                        ..config.data.load_options(config.seed)
                    };
                    open_with_progress(&config.data.place(), &options, &progress)?
                }
                Plan::Resume(_, config) => {
                    let moved = self.moved.as_deref();
                    run_images::open_with_progress(config, moved, fellows, &progress)?
                }
            }
        };
        report_data(&data, &mut *self.on_event);
        Ok(data)
    }
}

/// What was found in a folder, and what could not be read.
fn report_data(data: &Dataset, on_event: OnEvent) {
    folder_events(&data.report).iter().for_each(&mut *on_event);
    for (path, why) in &data.skipped {
        on_event(&Event::warning(format!("{path}: skipped: {why}")));
    }
    // Those of the training part are told as training meets them.
    let test = data.test.iter().flat_map(|test| test.pictures.failures());
    for (path, why) in test {
        on_event(&Event::warning(format!("{path}: {why}; it is seen as plain grey")));
    }
    if !data.skipped.is_empty() {
        let read = data.train.pictures.len() + data.test.as_ref().map_or(0, |t| t.pictures.len());
        on_event(&Event::warning(format!(
            "{} of {} pictures could not be read and were skipped",
            data.skipped.len(),
            data.skipped.len() + read
        )));
    }
}

/// What a run begins from, and how carefully.
fn begins_from(model: &Pretrained, config: &RunConfig) -> String {
    let (network, size, t) = (&model.network, model.input.size, &config.training);
    let frozen = match t.freeze_epochs {
        0 => "it is never frozen".into(),
        1 => "it stays as it is for 1 epoch while the heads settle".into(),
        epochs => format!("it stays as it is for {epochs} epochs while the heads settle"),
    };
    let given = match config.data.embed_size {
        Some(embed) => format!(" (what it has learnt is then given {embed}×{embed})"),
        None => String::new(),
    };
    format!(
        "begins from {}: {} width {}, pictures of {size}×{size}{given}; {frozen}, and learns at {} \
         × the learning rate then",
        model.name, network.architecture, network.width, t.from_rate
    )
}

/// Makes what a run that came to its end is used by and looked at: its model, curve and report. The
/// run is whole without them, so what goes wrong is a warning.
fn finish(run: &Path, data: &Dataset, device: &Device, on_event: OnEvent) -> Result<(), Error> {
    refit(run, data, device, on_event);
    let summary = Summary::of(&read_metrics(&run.join("metrics.jsonl"))?.events);
    write_curve(&summary, &run.join("curve.svg"))?;
    if let Err(error) = write_run_report(run, &Ok(data), &|| Ok(device.clone()), false, on_event) {
        let why = error.with_advice();
        on_event(&Event::warning(format!("no report was written: {why}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn minutes_and_epochs_are_not_asked_for_together() {
        let epochs = || Setting::named("training.epochs").unwrap();
        let trainer = || Trainer::new(&Images::open("shapes").unwrap()).minutes(1.0);
        for refused in [
            trainer().set(epochs(), "3"),
            trainer().configure(|config| config.training.epochs = 3),
            trainer().resumed("runs/some"),
            trainer().minutes(-1.0),
        ] {
            let error = refused.explain().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().starts_with("--minutes"), "{error}");
        }
    }
}
