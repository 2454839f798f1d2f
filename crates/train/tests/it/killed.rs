//! A run that ended where a run can be ended, taken up again: nothing is missing afterwards.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_train::{Checkpoint, Event, Outcome, RunDir, TrainError, train};

use crate::common::{data, tiny};

fn go_on(dir: &mut RunDir, data: &Dataset) -> Result<Outcome, TrainError> {
    let stop = AtomicBool::new(false);
    train(&Device::cpu(1), dir, data, &mut |_| {}, &stop)
}

fn ends(run: &Path) -> usize {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let events = text.lines().map(|l| serde_json::from_str(l).unwrap());
    events.filter(|e| matches!(e, Event::RunEnded(_))).count()
}

/// A round's own checkpoint is there before the run goes on from beyond it: else nobody would ever
/// write it.
#[test]
fn every_round_leaves_its_checkpoint() {
    let config = tiny();
    let data = data(&config);
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let round = dir.checkpoint("round-0");
    fs::create_dir(&round).unwrap(); // the run ends when it writes this file
    go_on(&mut dir, &data).unwrap_err();
    fs::remove_dir(&round).unwrap();
    go_on(&mut dir, &data).unwrap();
    for name in ["round-0", "round-1", "last"] {
        Checkpoint::load(&dir.checkpoint(name)).unwrap();
    }
}

/// Resuming a run that is over changes nothing about it: it is still told to have ended, once.
#[test]
fn a_finished_run_stays_finished() {
    let config = tiny();
    let data = data(&config);
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    go_on(&mut dir, &data).unwrap();
    let metrics = dir.path().join("metrics.jsonl");
    assert_eq!(ends(dir.path()), 1);
    go_on(&mut dir, &data).unwrap();
    assert_eq!(ends(dir.path()), 1, "resumed after its end");
    // Killed after its last checkpoint and before it said so.
    let last = Checkpoint::load(&dir.checkpoint("last")).unwrap();
    let file = fs::File::options().write(true).open(&metrics).unwrap();
    file.set_len(last.standing.metrics_bytes).unwrap();
    go_on(&mut dir, &data).unwrap();
    assert_eq!(ends(dir.path()), 1, "killed at its end");
}
