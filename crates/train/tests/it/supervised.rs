//! The supervised method in the one loop: it learns, resumes to the bit, and refuses what it must.

use std::sync::atomic::{AtomicBool, Ordering};

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_train::{
    Checkpoint, EpochEnded, Event, Outcome, Preset, RunConfig, RunDir, TrainError, build_method,
    train,
};

fn small() -> (RunConfig, Dataset) {
    let mut config = Preset::Quick.config("shapes");
    config.data.shapes_train = 96;
    config.data.size = Some(16);
    config.network.width = 4;
    config.training.batch = 16;
    config.training.rounds = 0;
    config.training.epochs = 20;
    // So few pictures are learnt by heart, and quickly if they always look the same.
    config.augmentation = anchorhood_train::AugmentationConfig {
        crop_scale: (1.0, 1.0),
        crop_ratio: (1.0, 1.0),
        brightness: 0.0,
        contrast: 0.0,
        saturation: 0.0,
        hue: 0.0,
        jitter: 1.0,
        grey: 0.0,
        blur: 0.0,
        blur_sigma: (0.1, 2.0),
        solarise: 0.0,
        flip: 0.0,
    };
    let data = anchorhood_data::open("shapes", &config.data.load_options(0)).unwrap();
    (config.supervised(10), data)
}

fn bits(checkpoint: &Checkpoint) -> Vec<u32> {
    let tensors = checkpoint.weights.iter().chain(checkpoint.slots.iter().flat_map(|s| &s.tensors));
    tensors.flat_map(|t| t.values.iter().map(|v| v.to_bits())).collect()
}

/// The loss falls from about that of a guess (ln 10), and a run that was stopped ends in the same
/// bits.
#[test]
fn it_learns_and_resumes_to_the_bit() {
    let (config, data) = small();
    let runs = tempfile::tempdir().unwrap();
    let device = Device::cpu(1);
    let no = AtomicBool::new(false);

    let mut dir = RunDir::create(runs.path(), "whole", &config).unwrap();
    let mut losses = vec![];
    let mut observer = |event: &Event| {
        if let Event::EpochEnded(e) = event {
            losses.push(e.loss);
        }
    };
    let whole = train(&device, &mut dir, &data, &mut observer, &no).unwrap();
    assert!(matches!(whole, Outcome::Finished(e) if e.loss.is_finite()));
    assert_eq!(losses.len(), 20);
    assert!(losses[0] > 1.5 && losses[19] < 1.0, "{losses:?}");
    let expected = Checkpoint::load(&dir.checkpoint("last")).unwrap();

    let mut dir = RunDir::create(runs.path(), "parts", &config).unwrap();
    let stop = AtomicBool::new(false);
    let mut observer = |event: &Event| {
        if matches!(event, Event::EpochEnded(e) if e.epoch == 2) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let part = train(&device, &mut dir, &data, &mut observer, &stop).unwrap();
    assert!(matches!(part, Outcome::Stopped(p) if p.epoch == 3));
    let mut quiet = |_: &Event| {};
    train(&device, &mut dir, &data, &mut quiet, &no).unwrap();
    let resumed = Checkpoint::load(&dir.checkpoint("last")).unwrap();
    assert_eq!(bits(&resumed), bits(&expected));
}

/// A run that has taken a step does not go on with fewer pictures, nor with others in their places.
#[test]
fn it_does_not_go_on_with_other_pictures() {
    let (config, data) = small();
    let runs = tempfile::tempdir().unwrap();
    let device = Device::cpu(1);
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let stop = AtomicBool::new(false);
    let mut go = |data: &Dataset, until_epoch: Option<usize>| {
        stop.store(false, Ordering::Relaxed);
        let mut observer = |event: &Event| {
            let ended = |e: &EpochEnded| until_epoch == Some(e.epoch);
            if matches!(event, Event::EpochEnded(e) if ended(e)) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        train(&device, &mut dir, data, &mut observer, &stop)
    };
    go(&data, Some(0)).unwrap();
    let fewer = Dataset { train: data.train.clone().take(Some(95)), ..data.clone() };
    let message = go(&fewer, None).unwrap_err().to_string();
    assert!(message.contains("96 pictures") && message.contains("95"));
    let mut others = data.clone();
    others.mean[2] -= 1e-4;
    let message = go(&others, None).unwrap_err().to_string();
    assert!(message.contains("not the same"), "{message}");
    let went_on = go(&data, Some(1)).unwrap();
    assert!(matches!(went_on, Outcome::Stopped(p) if p.epoch == 2));
}

#[test]
fn pictures_without_labels_are_refused() {
    let (config, mut data) = small();
    data.train.labels = None;
    let built = build_method(&Device::cpu(1), &config, &data);
    assert!(matches!(built.err(), Some(TrainError::NoLabels { .. })));
}
