//! Training as a library: labels decide nothing, and a run taken up anywhere goes on in the same
//! bits.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_methods::StateDict;
use anchorhood_train::{
    Checkpoint, Event, OptimiserChoice, Position, RunConfig, RunDir, Standing, Trainer,
    TrainingSet, judge, train,
};

use crate::common::{self, data};

fn tiny() -> RunConfig {
    let mut config = common::tiny();
    config.data.shapes_train = 40;
    config.data.shapes_test = 10;
    config.training.epochs = 2;
    config
}

fn bits(c: &Checkpoint) -> Vec<u32> {
    let tensors =
        c.weights.iter().chain(c.slots.iter().flat_map(|s| &s.tensors)).map(|t| &t.values[..]);
    let all = tensors.chain(c.memory().map(|(rows, _)| rows)).flatten();
    all.map(|v| v.to_bits()).collect()
}

fn run_with(data: &Dataset, config: &RunConfig) -> (Checkpoint, Vec<Event>) {
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", config).unwrap();
    let mut events = vec![];
    let mut observer = |event: &Event| events.push(event.clone());
    let stop = AtomicBool::new(false);
    train(&Device::cpu(1), &mut dir, data, &mut observer, &stop).unwrap();
    (Checkpoint::load(&dir.checkpoint("last")).unwrap(), events)
}

#[test]
fn labels_decide_nothing() {
    let config = tiny();
    let labelled = data(&config);
    let mut blind = labelled.clone();
    blind.train.labels = None;
    blind.test = None;
    let (with, told) = run_with(&labelled, &config);
    let (without, untold) = run_with(&blind, &config);
    assert!(bits(&with) == bits(&without));
    let judged = |events: &[Event]| events.iter().any(|e| matches!(e, Event::Evaluated(_)));
    assert!(judged(&told) && !judged(&untold));
}

/// A network is shown other pictures as it was shown its own, whatever their mean and deviation.
#[test]
fn a_checkpoint_knows_how_to_look() {
    let mut config = tiny();
    config.data.shapes_test = 300;
    config.evaluation.k = 3;
    let data = data(&config);
    let (mut checkpoint, _) = run_with(&data, &config);
    let mut other = data.clone();
    (other.mean, other.std) = ([0.9; 3], [0.01; 3]);
    let judged = |c: &Checkpoint, d: &Dataset| {
        judge(&Device::cpu(1), c, Path::new("last"), &config, d).unwrap()
    };
    let (own, there) = (judged(&checkpoint, &data), judged(&checkpoint, &other));
    assert_eq!((own.trained, own.untrained), (there.trained, there.untrained));
    (checkpoint.input.mean, checkpoint.input.std) = (other.mean, other.std);
    assert_ne!(own.trained, judged(&checkpoint, &other).trained);
}

/// Trains step by step, from a position on, to the end.
fn finish(trainer: &mut Trainer, from: Position, config: &RunConfig, until: Position) {
    trainer.begin().unwrap();
    let mut at = from;
    while at < until {
        if at.round > 0 && at.epoch == 0 && at.batch == 0 {
            trainer.before_round(at.round, &|_| {}).unwrap();
        }
        let losses = trainer.advance(at, 1).unwrap();
        assert_eq!(losses.len(), 1);
        at.batch += 1;
        if at.batch == trainer.batches() {
            at = at.next_epoch(config.training.epochs);
        }
    }
}

#[test]
fn taken_up_at_any_step_it_ends_in_the_same_bits() {
    let config = tiny();
    let set = TrainingSet::of(&data(&config));
    let fresh = || Trainer::new(&Device::cpu(1), &config, set.clone()).unwrap();
    let cuts = [(0, 0, 1), (0, 1, 0), (0, 1, 4), (1, 0, 0), (1, 0, 3), (1, 1, 2)];
    same_from_any_cut(&config, &fresh, &cuts);
}

/// An optimiser that measures tensors, and one with two slots that counts its steps.
#[test]
fn lars_and_adam_w_are_taken_up_too() {
    let mut config = tiny();
    let set = TrainingSet::of(&data(&config));
    let device = Device::cpu(1);
    let mut saved_by = |optimiser| {
        config.training.optimiser = optimiser;
        let fresh = || Trainer::new(&device, &config, set.clone()).unwrap();
        let saved = same_from_any_cut(&config, &fresh, &[(0, 1, 2), (1, 1, 0)]);
        let names: Vec<String> = saved.slots.iter().map(|slot| slot.name.clone()).collect();
        (saved, names)
    };
    assert_eq!(saved_by(OptimiserChoice::Lars).1, ["momentum"]);
    let (saved, names) = saved_by(OptimiserChoice::AdamW);
    assert_eq!(names, ["first", "second"]);
    config.training.optimiser = OptimiserChoice::Sgd;
    // What AdamW left is no state of SGD.
    let mut other = Trainer::new(&device, &config, set.clone()).unwrap();
    let refused = other.restore(saved, Path::new("last.safetensors"));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("first and second"), "{message}");
}

/// Trains to the end, and again with a checkpoint in between, through a file; gives the last of
/// those.
fn same_from_any_cut(
    config: &RunConfig,
    fresh: &dyn Fn() -> Trainer,
    cuts: &[(usize, usize, usize)],
) -> Checkpoint {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    let end = Position { round: 2, epoch: 0, batch: 0 };
    let mut whole = fresh();
    finish(&mut whole, Position::default(), config, end);
    let expected = bits(&whole.checkpoint(Standing::default()).unwrap());
    for (round, epoch, batch) in cuts.iter().copied() {
        let cut = Position { round, epoch, batch };
        let mut first = fresh();
        finish(&mut first, Position::default(), config, cut);
        let saved = first.checkpoint(Standing::default()).unwrap();
        saved.save(&path).unwrap();
        let mut second = fresh();
        let loaded = Checkpoint::load(&path).unwrap();
        second.restore(loaded, &path).unwrap();
        finish(&mut second, cut, config, end);
        let got = bits(&second.checkpoint(Standing::default()).unwrap());
        assert!(got == expected, "cut at {cut}");
    }
    Checkpoint::load(&path).unwrap()
}

/// Two runs differ in what a clock told them, which is in one place of the file, and in nothing
/// else.
#[test]
fn identical_runs_write_identical_checkpoints_but_for_the_clock() {
    let config = tiny();
    let data = data(&config);
    let train_once = || {
        let runs = tempfile::tempdir().unwrap();
        let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
        let stop = AtomicBool::new(false);
        train(&Device::cpu(1), &mut dir, &data, &mut |_| {}, &stop).unwrap();
        ["round-0", "round-1", "last"].map(|name| std::fs::read(dir.checkpoint(name)).unwrap())
    };
    for (one, other) in train_once().iter().zip(&train_once()) {
        let clock = 34..258; // docs/formats.md
        assert!(one.len() > 10_000 && one[..clock.start] == other[..clock.start]);
        assert!(one[clock.end..] == other[clock.end..]);
        assert!(one[clock.clone()] != other[clock]);
    }
}

#[test]
fn a_checkpoint_of_other_pictures_or_another_network_is_refused() {
    let config = tiny();
    let set = TrainingSet::of(&data(&config));
    let mut saved = Trainer::new(&Device::cpu(1), &config, set.clone()).unwrap();
    let saved = saved.checkpoint(Standing::default()).unwrap();
    let refusal = |config: &RunConfig| {
        let set = TrainingSet::of(&data(config));
        let mut trainer = Trainer::new(&Device::cpu(1), config, set).unwrap();
        let refused = trainer.restore(saved.clone(), Path::new("last.safetensors"));
        refused.unwrap_err().to_string()
    };
    let mut wider = config.clone();
    wider.network.width = 3;
    let message = refusal(&wider);
    assert!(message.contains("resnet18 width 2") && message.contains("width 3"), "{message}");
    let mut more = config.clone();
    more.data.shapes_train += 1;
    let message = refusal(&more);
    assert!(message.contains("40 pictures") && message.contains("41"), "{message}");
    let mut others = set;
    others.mean[1] += 1e-4;
    let mut trainer = Trainer::new(&Device::cpu(1), &config, others).unwrap();
    let refused = trainer.restore(saved.clone(), Path::new("last.safetensors"));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("not the same"), "{message}");
    // As a supervised run leaves it.
    let mut forgetful = saved;
    forgetful.state = StateDict::default();
    let mut trainer =
        Trainer::new(&Device::cpu(1), &config, TrainingSet::of(&data(&config))).unwrap();
    let refused = trainer.restore(forgetful, Path::new("last.safetensors"));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("no memory"), "{message}");
}
