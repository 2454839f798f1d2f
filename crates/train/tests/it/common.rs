//! Runs that take no time, their pictures, and what becomes of them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood_data::Dataset;
use anchorhood_engine::{Batch, Device, Network, Precision, Result, Stream};
use anchorhood_models::RESNET18;
use anchorhood_train::methods::{EpochStart, Method, Round, StateDict, ViewSettings};
use anchorhood_train::{
    Beginning, Checkpoint, Event, MethodSpec, Outcome, Position, Preset, PretextMeasured,
    RunConfig, RunDir, Standing, TrainError, Trainer, TrainingSet, build_method, methods, train_by,
    train_with,
};
use tempfile::TempDir;

/// All methods there are.
pub fn methods() -> impl Iterator<Item = &'static MethodSpec> {
    methods::METHODS.all().into_iter()
}

/// A method's own recipe for so many pictures to train and to test on, of so many pixels a side.
pub fn small(
    method: &'static MethodSpec,
    [train, test]: [usize; 2],
    size: usize,
    width: usize,
) -> RunConfig {
    let mut config = Preset::Quick.config_for("shapes", method);
    (config.data.shapes_train, config.data.shapes_test) = (train, test);
    config.data.size = Some(size);
    config.network.width = width;
    config
}

/// One round of one epoch after round 0, over a few pictures.
pub fn tiny() -> RunConfig {
    tiny_by(&methods::AND, [16, 8])
}

/// The same by any method, with small heads, over so many pictures to train and to test on.
pub fn tiny_by(method: &'static MethodSpec, pictures: [usize; 2]) -> RunConfig {
    let mut config = small(method, pictures, 8, 2);
    // As photographs have it, with stages of several blocks.
    config.network.architecture = &RESNET18;
    config.network.features = 8;
    (config.training.batch, config.training.rounds, config.training.epochs) = (8, 1, 1);
    config.method.projector_width = 16;
    config.method.predictor_width = 16;
    config.method.projector_features = 8;
    config
}

/// What a configuration trains on.
pub fn data(config: &RunConfig) -> Dataset {
    anchorhood_data::open(&config.data.set, &config.data.load_options(config.seed)).unwrap()
}

/// The same pictures without what else is known of them.
pub fn unlabelled(data: &Dataset) -> Dataset {
    let mut blind = data.clone();
    blind.train.labels = None;
    blind.test = None;
    blind
}

/// Runs each on a thread and a CPU device of its own: networks of tests are so small that one
/// thread is used better than several.
pub fn beside_each_other<T: Send>(
    cases: impl IntoIterator<Item = T>,
    run: impl Fn(&Device, T) + Sync,
) {
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(|| run(&Device::cpu(1), case));
        }
    });
}

/// Runs a test on a GPU, with either kind of numbers.
pub fn on_cuda(test: impl Fn(&Device)) {
    for precision in [Precision::F32, Precision::Bf16] {
        test(&Device::cuda(0, precision).unwrap());
    }
}

/// A configured method at the beginning of a run.
pub fn trainer(device: &Device, config: &RunConfig, data: &Dataset) -> Trainer {
    let config = config.fitted(data).unwrap();
    let method = build_method(device, &config, data).unwrap();
    Trainer::with(device, &config, TrainingSet::of(data), method).unwrap()
}

/// Trains step by step, from a position to another, in rounds of so many epochs; gives the losses.
pub fn steps(trainer: &mut Trainer, from: Position, until: Position, epochs: usize) -> Vec<f64> {
    let (mut at, mut losses) = (from, vec![]);
    while at < until {
        if at.epoch == 0 && at.batch == 0 {
            trainer.before_round(at.round, &|_| {}).unwrap();
        }
        losses.extend(trainer.advance(at, 1).unwrap());
        at.batch += 1;
        if at.batch == trainer.batches() {
            at = at.next_epoch(epochs);
        }
    }
    losses
}

/// Trains to the end, and again with a checkpoint in between, through a file, which another trainer
/// goes on from: it ends in the same bits. Gives the last of these checkpoints.
pub fn same_from_any_cut(
    begun: &dyn Fn() -> Trainer,
    fresh: &dyn Fn() -> Trainer,
    epochs: usize,
    cuts: &[(usize, usize, usize)],
    end: (usize, usize, usize),
) -> Checkpoint {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    let place = |(round, epoch, batch)| Position { round, epoch, batch };
    let saved = |mut trainer: Trainer, from: Position, until: Position| {
        trainer.begin().unwrap();
        steps(&mut trainer, from, until, epochs);
        trainer.checkpoint(Standing::default()).unwrap().save(&path).unwrap();
        without_clock(&path)
    };
    let expected = saved(begun(), Position::default(), place(end));
    for cut in cuts.iter().copied().map(place) {
        saved(begun(), Position::default(), cut);
        let mut second = fresh();
        second.restore(Checkpoint::load(&path).unwrap(), &path).unwrap();
        assert!(saved(second, cut, place(end)) == expected, "cut at {cut}");
    }
    Checkpoint::load(&path).unwrap()
}

/// A checkpoint's file as it is in every run.
pub fn without_clock(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[34..258].fill(0); // docs/reference/formats.md
    bytes
}

/// A run called `a`, in a folder of its own.
pub struct Run {
    pub runs: TempDir,
    pub dir: RunDir,
    pub data: Dataset,
    pub device: Device,
    pub beginning: Beginning,
}

impl Run {
    pub fn new(config: &RunConfig) -> Run {
        Run::on(&Device::cpu(1), config, data(config))
    }

    pub fn on(device: &Device, config: &RunConfig, data: Dataset) -> Run {
        let runs = tempfile::tempdir().unwrap();
        let dir = RunDir::create(runs.path(), "a", &config.fitted(&data).unwrap()).unwrap();
        Run { runs, dir, data, device: device.clone(), beginning: Beginning::default() }
    }

    /// Goes on with it; what became of it, and what was told.
    pub fn go_on(&mut self) -> std::result::Result<(Outcome, Vec<Event>), TrainError> {
        self.go_on_until(|_| false)
    }

    /// The same until `stop` says so.
    pub fn go_on_until(
        &mut self,
        stop: impl Fn(&Event) -> bool + Sync,
    ) -> std::result::Result<(Outcome, Vec<Event>), TrainError> {
        self.go_on_by(None, stop)
    }

    /// The same by a method that is brought, if one is.
    pub fn go_on_by(
        &mut self,
        method: Option<Brought>,
        stop: impl Fn(&Event) -> bool + Sync,
    ) -> std::result::Result<(Outcome, Vec<Event>), TrainError> {
        let (stopped, mut told) = (AtomicBool::new(false), vec![]);
        let mut hear = |event: &Event| {
            told.push(event.clone());
            stopped.fetch_or(stop(event), Ordering::Relaxed);
        };
        let (device, dir, data) = (&self.device, &mut self.dir, &self.data);
        let outcome = match method {
            Some(method) => {
                let brought: Box<dyn Method> = Box::new(method);
                train_by(device, dir, data, (brought, Beginning::default()), &mut hear, &stopped)
            }
            None => train_with(device, dir, data, self.beginning.clone(), &mut hear, &stopped),
        };
        Ok((outcome?, told))
    }

    /// From its beginning to its end: what was told, and the last checkpoint.
    pub fn whole(mut self) -> (Vec<Event>, Checkpoint) {
        let (outcome, told) = self.go_on().unwrap();
        assert!(matches!(outcome, Outcome::Finished(_)));
        (told, self.checkpoint("last"))
    }

    pub fn checkpoint(&self, name: &str) -> Checkpoint {
        Checkpoint::load(&self.dir.checkpoint(name)).unwrap()
    }

    /// Opens its folder anew, as another process would.
    pub fn reopen(self) -> Run {
        let path = self.dir.path().to_path_buf();
        drop(self.dir);
        Run { dir: RunDir::open(&path).unwrap(), ..self }
    }
}

/// What each event of a kind says.
macro_rules! each {
    ($told:expr, $kind:pat => $says:expr) => {
        $told.iter().filter_map(|event| if let $kind = event { Some($says) } else { None })
    };
}
pub(crate) use each;

pub fn losses(told: &[Event]) -> Vec<f64> {
    each!(told, Event::EpochEnded(e) => e.loss).collect()
}

/// Accuracies on labels, the floors' first.
pub fn judged(told: &[Event]) -> Vec<f64> {
    each!(told, Event::Evaluated(e) => e.accuracy.top1).collect()
}

pub fn pretexts(told: &[Event]) -> Vec<PretextMeasured> {
    each!(told, Event::Pretext(measured) => measured.clone()).collect()
}

/// The namespaces of a checkpoint's heads.
pub fn heads(saved: &Checkpoint) -> Vec<&str> {
    saved.heads.iter().map(|head| head.namespace.as_str()).collect()
}

/// A method that a program brings: a configured one, which does something beside it.
pub struct Brought {
    pub method: Box<dyn Method>,
    /// The network that embeds, where it is another.
    pub shown: Option<Network>,
    /// Is given that network and the number of an epoch that begins.
    pub before_epoch: fn(&mut Network, usize) -> Result<()>,
    /// Steps that it takes before its device fails.
    pub left: usize,
}

impl Brought {
    pub fn new(run: &Run) -> Brought {
        let method = build_method(&run.device, run.dir.config(), &run.data).unwrap();
        Brought { method, shown: None, before_epoch: |_, _| Ok(()), left: usize::MAX }
    }
}

impl Method for Brought {
    fn views(&self) -> Vec<ViewSettings> {
        self.method.views()
    }

    fn before_round(&mut self, round: &mut Round) -> Result<()> {
        self.method.before_round(round)
    }

    fn before_epoch(&mut self, start: &mut EpochStart) -> Result<()> {
        if let Some(shown) = &mut self.shown {
            (self.before_epoch)(shown, start.epoch)?;
        }
        self.method.before_epoch(start)
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        if self.left == 0 {
            return Err(anchorhood_engine::Error::Device("an illegal memory access".into()));
        }
        self.left -= 1;
        self.method.step(stream, batch)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        self.method.networks()
    }

    fn encoder(&mut self) -> (&mut Network, Option<&anchorhood_train::discovery::MemoryBank>) {
        match &mut self.shown {
            Some(shown) => (shown, None),
            None => self.method.encoder(),
        }
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        self.method.state(device)
    }

    fn restore(&mut self, device: &Device, state: &StateDict) -> Result<()> {
        self.method.restore(device, state)
    }
}
