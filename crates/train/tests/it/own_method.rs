//! A method that a program brings: its run says so, and goes on with it alone.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood_data::Dataset;
use anchorhood_engine::{Batch, Device, Network, Result, Stream};
use anchorhood_methods::{Method, StateDict, StateError};
use anchorhood_train::{
    Checkpoint, Event, MethodChoice, Outcome, RunConfig, RunDir, TrainError, build_method,
    check_data, train, train_method,
};

use crate::common;

/// SimCLR by another name.
struct Mine(&'static str, Box<dyn Method>);

impl Method for Mine {
    fn name(&self) -> &'static str {
        self.0
    }

    fn views(&self) -> Vec<anchorhood_methods::ViewSettings> {
        self.1.views()
    }

    fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.1.step(stream, batch)
    }

    fn networks(&mut self) -> Vec<(&'static str, &mut Network)> {
        self.1.networks()
    }

    fn state(&self, device: &Device) -> Result<StateDict> {
        self.1.state(device)
    }

    fn restore(
        &mut self,
        device: &Device,
        state: &StateDict,
    ) -> std::result::Result<(), StateError> {
        self.1.restore(device, state)
    }
}

fn config() -> (RunConfig, Dataset) {
    let mut config = common::tiny();
    config.method.name = MethodChoice::SimClr;
    config.training.rounds = 0;
    config.training.epochs = 3;
    let data = common::data(&config);
    (config.fitted(&data).unwrap(), data)
}

/// Goes on with a run by a method of a name, for so many epochs.
fn go_on(
    dir: &mut RunDir,
    name: &'static str,
    data: &Dataset,
    epochs: usize,
) -> std::result::Result<Outcome, TrainError> {
    let device = Device::cpu(1);
    let method = build_method(&device, dir.config(), data).unwrap();
    let (stop, mut ended) = (AtomicBool::new(epochs == 0), 0);
    let mut hear = |event: &Event| {
        ended += usize::from(matches!(event, Event::EpochEnded(_)));
        stop.fetch_or(ended >= epochs, Ordering::Relaxed);
    };
    let method = Box::new(Mine(name, method));
    train_method(&device, dir, data, method, &mut hear, &stop)
}

fn refused(error: TrainError) {
    assert!(matches!(&error, TrainError::OwnMethod { own, .. } if own == "mine"));
    assert!(error.is_usage());
}

fn files(run: &Path) -> [Option<Vec<u8>>; 3] {
    ["config.toml", "metrics.jsonl", "checkpoints/last.safetensors"]
        .map(|file| std::fs::read(run.join(file)).ok())
}

#[test]
fn its_name_is_written_down_and_nothing_else_goes_on_with_the_run() {
    let runs = tempfile::tempdir().unwrap();
    let (config, data) = config();
    let path = runs.path().join("a");
    let device = Device::cpu(1);
    // Before there is a checkpoint, and after.
    for epochs in [0, 1] {
        let mut dir = match epochs {
            0 => RunDir::create(runs.path(), "a", &config).unwrap(),
            _ => RunDir::open(&path).unwrap(),
        };
        let outcome = go_on(&mut dir, "mine", &data, epochs).unwrap();
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        drop(dir);
        let written = RunDir::config_of(&path).unwrap();
        assert_eq!(written.method.own.as_deref(), Some("mine"));
        let before = files(&path);
        let mut dir = RunDir::open(&path).unwrap();
        refused(train(&device, &mut dir, &data, &mut |_| {}, &false.into()).unwrap_err());
        refused(go_on(&mut dir, "another", &data, 1).unwrap_err());
        refused(check_data(dir.config(), &data).unwrap_err());
        assert!(files(&path) == before, "a refused run was changed");
    }
    let mut dir = RunDir::open(&path).unwrap();
    let outcome = go_on(&mut dir, "mine", &data, 9).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
    let last = Checkpoint::load(&dir.checkpoint("last")).unwrap();
    assert_eq!(last.config, *dir.config());
}

/// A run that was begun before its configuration could say so.
#[test]
fn an_older_run_goes_on_by_the_method_of_its_checkpoint() {
    let runs = tempfile::tempdir().unwrap();
    let (config, data) = config();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let stop = AtomicBool::new(false);
    let mut hear = |event: &Event| {
        let ended = matches!(event, Event::EpochEnded(_));
        stop.fetch_or(ended, Ordering::Relaxed);
    };
    train(&Device::cpu(1), &mut dir, &data, &mut hear, &stop).unwrap();
    let other = go_on(&mut dir, "mine", &data, 1).unwrap_err();
    assert!(matches!(other, TrainError::Checkpoint(_)), "{other}");
    assert_eq!(dir.config().method.own, None);
    go_on(&mut dir, "simclr", &data, 9).unwrap();
}
