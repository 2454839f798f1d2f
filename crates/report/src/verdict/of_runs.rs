//! A run without labels says whether it was worth it, at the end of its events and on top of its
//! page.

use std::f32::consts::PI;
use std::sync::atomic::AtomicBool;

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::Device;
use anchorhood_train::{MethodSpec, Preset, RunDir, TrainingConfig, methods, train};

use crate::{RunRecord, Summary, report_html};

/// Stripes of some angle and distance, which begin anywhere: a texture that is seen in any part of
/// a picture, and of which pixels know little.
fn stripes() -> Dataset {
    let make = |i: usize, pixels: &mut [u8]| {
        let (angle, distance) = ((i % 16) as f32 * PI / 16.0, 2.5 + (i / 16) as f32 / 2.0);
        let begin = (i * 7 % 11) as f32;
        for (at, pixel) in pixels.chunks_exact_mut(3).enumerate() {
            let along = (at % 16) as f32 * angle.cos() + (at / 16) as f32 * angle.sin();
            pixel.fill((128.0 + 100.0 * (2.0 * PI * along / distance + begin).sin()) as u8);
        }
    };
    Dataset::new("stripes", Pictures::from_fn(16, 16, 192, make).unwrap())
}

/// Trains on stripes and gives the run's verdict, if it begins so.
fn verdict_begins(
    method: &'static MethodSpec,
    settings: fn(&mut TrainingConfig),
    begin: &str,
) -> String {
    let data = stripes();
    let mut config = Preset::Quick.config_for("stripes", method);
    config.network.width = 4;
    settings(&mut config.training);
    let config = config.fitted(&data).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let stop = AtomicBool::new(false);
    train(&Device::cpu(2), &mut dir, &data, &mut |_| {}, &stop).unwrap();
    let record = RunRecord::read(dir.path()).unwrap();
    let summary = Summary::of(&record.events);
    let sentence = summary.verdict().unwrap().to_string();
    let page = report_html(&record, Ok(&data.train)).unwrap();
    assert_eq!(page.matches(&sentence).count(), 1, "on top of the page");
    assert!(sentence.starts_with(begin), "{sentence}: {:?}", summary.label_free);
    sentence
}

/// Weights that decay to nothing make all pictures alike.
#[test]
fn what_has_collapsed_is_not_better_than_raw_pixels() {
    let collapse = |training: &mut TrainingConfig| {
        (training.batch, training.epochs, training.weight_decay) = (16, 6, 10.0);
    };
    let worse = "Not better than raw pixels: train longer, or start from a trained model";
    verdict_begins(&methods::INSTANCE, collapse, worse);
}

#[test]
fn what_has_learnt_is_better_than_raw_pixels_without_a_label() {
    let learn = |training: &mut TrainingConfig| (training.batch, training.epochs) = (32, 20);
    let better = verdict_begins(&methods::SIMCLR, learn, "Better than raw pixels by ");
    assert!(better.contains("without labels"), "{better}");
}
