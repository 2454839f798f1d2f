//! A step with a finite loss may still leave weights that are no numbers. A checkpoint never holds
//! them.

use std::fs;
use std::sync::atomic::AtomicBool;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_train::{Checkpoint, Event, Outcome, RunConfig, RunDir, TrainError, train};

use crate::common::{data, tiny};

/// Two epochs of one step each. The second one's rate is beyond any f32, so its loss is still that
/// of good weights.
fn overflowing() -> (RunConfig, Dataset) {
    let mut config = tiny();
    config.training.batch = 16;
    config.training.rounds = 0;
    config.training.epochs = 2;
    config.training.milestones = vec![0.5];
    config.training.learning_rate = 10.0;
    config.training.decay_factor = 3e38;
    let data = data(&config);
    (config, data)
}

/// Trains, and says what came of it and how many epochs had a finite loss.
fn go(dir: &mut RunDir, data: &Dataset) -> (Result<Outcome, TrainError>, usize) {
    let mut epochs = 0;
    let mut observer = |event: &Event| {
        if let Event::EpochEnded(e) = event {
            assert!(e.loss.is_finite());
            epochs += 1;
        }
    };
    let (device, stop) = (Device::cpu(1), AtomicBool::new(false));
    let outcome = train(&device, dir, data, &mut observer, &stop);
    (outcome, epochs)
}

/// Whether the weights are noticed because nothing can be judged with them, or when they are to be
/// kept.
#[test]
fn the_last_good_checkpoint_stays() {
    let (config, judged) = overflowing();
    let mut blind = judged.clone();
    blind.train.labels = None;
    blind.test = None;
    for data in [judged, blind] {
        stays(&config, &data);
    }
}

fn stays(config: &RunConfig, data: &Dataset) {
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", config).unwrap();
    let last = dir.checkpoint("last");
    let (outcome, epochs) = go(&mut dir, data);
    assert_eq!(epochs, 2, "both losses were finite");
    let error = outcome.unwrap_err();
    let message = error.to_string();
    let rate = match error {
        TrainError::Diverged { rate, .. } => rate,
        other => panic!("{other}"),
    };
    assert!(rate > 1e38, "{rate}");
    for part in ["round 0, epoch 2", "last.safetensors"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let kept = Checkpoint::load(&last).unwrap();
    let values = kept.weights.iter().flat_map(|t| &t.values);
    assert!(values.chain(kept.memory().map_or(&[][..], |(rows, _)| rows)).all(|v| v.is_finite()));
    assert_eq!(kept.standing.position.epoch, 1);
    assert!(!dir.checkpoint("round-0").exists());

    // It is what the run goes on from, to the same end.
    let bytes = fs::read(&last).unwrap();
    let (again, epochs) = go(&mut dir, data);
    assert!(matches!(again, Err(TrainError::Diverged { .. })));
    assert_eq!(epochs, 1);
    assert!(fs::read(&last).unwrap() == bytes);
}

#[test]
fn a_supervised_run_keeps_it_too() {
    let (config, data) = overflowing();
    stays(&config.supervised(10), &data);
}

#[test]
fn of_a_first_epoch_nothing_is_kept() {
    let (mut config, data) = overflowing();
    config.training.learning_rate = 3e38;
    for config in [config.clone(), config.supervised(10)] {
        let runs = tempfile::tempdir().unwrap();
        let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
        let (outcome, epochs) = go(&mut dir, &data);
        assert_eq!(epochs, 1);
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("nothing was saved before"), "{message}");
        assert!(!dir.checkpoint("last").exists());
    }
}
