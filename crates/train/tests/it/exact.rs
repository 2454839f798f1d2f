//! Training as a library: labels decide nothing, a run taken up anywhere goes on in the same bits,
//! and not with other pictures.

use std::path::Path;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_train::methods::StateDict;
use anchorhood_train::{
    Checkpoint, OptimiserChoice, RunConfig, Standing, TrainError, Trainer, build_method, judge,
    methods,
};

use crate::common::{self, Run, data, judged, same_from_any_cut, trainer, unlabelled};

fn tiny() -> RunConfig {
    let mut config = common::tiny_by(&methods::AND, [40, 10]);
    config.training.epochs = 2;
    config
}

fn fresh(config: &RunConfig, data: &Dataset) -> Trainer {
    trainer(&Device::cpu(1), config, data)
}

fn refusal(trainer: &mut Trainer, saved: Checkpoint) -> String {
    trainer.restore(saved, Path::new("last.safetensors")).unwrap_err().to_string()
}

#[test]
fn labels_decide_nothing() {
    let config = tiny();
    let labelled = Run::new(&config);
    let blind = Run::on(&Device::cpu(1), &config, unlabelled(&labelled.data));
    let [(told, with), (untold, without)] = [labelled, blind].map(Run::whole);
    assert_eq!(
        (with.weights, with.slots, with.state),
        (without.weights, without.slots, without.state)
    );
    assert!(!judged(&told).is_empty() && judged(&untold).is_empty());
}

/// A network is shown other pictures as it was shown its own, whatever their mean and deviation.
#[test]
fn a_checkpoint_knows_how_to_look() {
    let mut config = tiny();
    config.data.shapes_test = 300;
    config.evaluation.k = 3;
    let run = Run::new(&config);
    let data = run.data.clone();
    let (_, mut checkpoint) = run.whole();
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

#[test]
fn taken_up_at_any_step_it_ends_in_the_same_bits() {
    let config = tiny();
    let data = data(&config);
    let fresh = || fresh(&config, &data);
    let cuts = [(0, 0, 1), (0, 1, 0), (0, 1, 4), (1, 0, 0), (1, 0, 3), (1, 1, 2)];
    same_from_any_cut(&fresh, &fresh, 2, &cuts, (2, 0, 0));
}

/// An optimiser that measures tensors, and one with two slots that counts its steps.
#[test]
fn lars_and_adam_w_are_taken_up_too() {
    let mut config = tiny();
    let data = data(&config);
    let mut saved_by = |optimiser| {
        config.training.optimiser = optimiser;
        let fresh = || fresh(&config, &data);
        let saved = same_from_any_cut(&fresh, &fresh, 2, &[(0, 1, 2), (1, 1, 0)], (2, 0, 0));
        let names: Vec<String> = saved.slots.iter().map(|slot| slot.name.clone()).collect();
        (saved, names)
    };
    assert_eq!(saved_by(OptimiserChoice::Lars).1, ["momentum"]);
    let (saved, names) = saved_by(OptimiserChoice::AdamW);
    assert_eq!(names, ["first", "second"]);
    config.training.optimiser = OptimiserChoice::Sgd;
    // What AdamW left is no state of SGD.
    let message = refusal(&mut fresh(&config, &data), saved);
    assert!(message.contains("first and second"), "{message}");
}

/// Two runs differ in what a clock told them, which is in one place of the file, and in nothing
/// else.
#[test]
fn identical_runs_write_identical_checkpoints_but_for_the_clock() {
    let train_once = || {
        let mut run = Run::new(&tiny());
        run.go_on().unwrap();
        ["round-0", "round-1", "last"].map(|name| std::fs::read(run.dir.checkpoint(name)).unwrap())
    };
    for (one, other) in train_once().iter().zip(&train_once()) {
        let clock = 34..258; // docs/reference/formats.md
        assert!(one.len() > 10_000 && one[..clock.start] == other[..clock.start]);
        assert!(one[clock.end..] == other[clock.end..]);
        assert!(one[clock.clone()] != other[clock]);
    }
}

/// Whether a memory tells how many there are or, as by supervision, nothing but the checkpoint.
#[test]
fn a_checkpoint_of_other_pictures_is_refused() {
    let device = Device::cpu(1);
    for config in [tiny(), tiny().supervised(10)] {
        let data = data(&config);
        let saved = trainer(&device, &config, &data).checkpoint(Standing::default()).unwrap();
        let fewer =
            Dataset { train: data.train.clone().subset(&Vec::from_iter(0..39)), ..data.clone() };
        let message = refusal(&mut trainer(&device, &config, &fewer), saved.clone());
        assert!(message.contains("40 pictures") && message.contains("39"), "{message}");
        let mut others = data.clone();
        others.mean[1] += 1e-4;
        let message = refusal(&mut trainer(&device, &config, &others), saved.clone());
        assert!(message.contains("not the same"), "{message}");
        fresh(&config, &data).restore(saved, Path::new("last.safetensors")).unwrap();
    }
}

#[test]
fn a_checkpoint_of_another_network_or_method_is_refused() {
    let config = tiny();
    let data = data(&config);
    let saved = fresh(&config, &data).checkpoint(Standing::default()).unwrap();
    let mut wider = config.clone();
    wider.network.width = 3;
    let message = refusal(&mut fresh(&wider, &data), saved.clone());
    assert!(message.contains("resnet18 width 2") && message.contains("width 3"), "{message}");
    // As a supervised run leaves it.
    let forgetful = Checkpoint { state: StateDict::default(), ..saved };
    let message = refusal(&mut fresh(&config, &data), forgetful);
    assert!(message.contains("no memory"), "{message}");
}

#[test]
fn supervision_of_pictures_without_labels_is_refused() {
    let config = tiny().supervised(10);
    let data = unlabelled(&data(&config));
    let built = build_method(&Device::cpu(1), &config, &data).map(|_| ());
    for refused in [config.fitted(&data).map(|_| ()), built] {
        assert!(matches!(refused, Err(TrainError::NoLabels { .. })));
    }
}
