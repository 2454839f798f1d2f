//! A method that a program brings: its run says so, and goes on with it alone.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorhood_train::{Event, Outcome, RunDir, TrainError, check_data, methods};

use crate::common::{self, Brought, Run};

/// A run of SimCLR.
fn run() -> Run {
    let mut config = common::tiny();
    config.method.name = &methods::SIMCLR;
    config.training.rounds = 0;
    config.training.epochs = 3;
    Run::new(&config)
}

/// Goes on with it by the same method of another name, for so many epochs.
fn go_on(run: &mut Run, name: &'static str, epochs: usize) -> Result<Outcome, TrainError> {
    let (method, ended) = (Brought::new(name, run), AtomicUsize::new(0));
    let outcome = run.go_on_by(Some(method), |event| {
        let ends = usize::from(matches!(event, Event::EpochEnded(_)));
        ended.fetch_add(ends, Ordering::Relaxed) + ends >= epochs
    });
    outcome.map(|(outcome, _)| outcome)
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
    let mut run = run();
    let path = run.dir.path().to_path_buf();
    // Before there is a checkpoint, and after.
    for epochs in [0, 1] {
        let outcome = go_on(&mut run, "mine", epochs).unwrap();
        assert!(matches!(outcome, Outcome::Stopped(_)), "{outcome:?}");
        run = run.reopen();
        assert_eq!(RunDir::config_of(&path).unwrap().method.own.as_deref(), Some("mine"));
        let before = files(&path);
        refused(run.go_on().unwrap_err());
        refused(go_on(&mut run, "another", 1).unwrap_err());
        refused(check_data(run.dir.config(), &run.data).unwrap_err());
        assert!(files(&path) == before, "a refused run was changed");
    }
    let outcome = go_on(&mut run, "mine", 9).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)), "{outcome:?}");
    assert_eq!(run.checkpoint("last").config, *run.dir.config());
}

/// A run that was begun before its configuration could say so.
#[test]
fn an_older_run_goes_on_by_the_method_of_its_checkpoint() {
    let mut run = run();
    run.go_on_until(|event| matches!(event, Event::EpochEnded(_))).unwrap();
    let other = go_on(&mut run, "mine", 1).unwrap_err();
    assert!(matches!(other, TrainError::Checkpoint(_)), "{other}");
    assert_eq!(run.dir.config().method.own, None);
    go_on(&mut run, "simclr", 9).unwrap();
}
