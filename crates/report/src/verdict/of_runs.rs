//! A run without labels says whether it was worth it, at the end of its events and on top of its
//! page.

use std::f32::consts::PI;
use std::sync::atomic::AtomicBool;

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::Device;
use anchorhood_train::{MethodChoice, Preset, RunConfig, RunDir, train};

use crate::{RunRecord, Summary, report_html};

/// Noise, in each picture louder in some colours than in others.
fn noise() -> Dataset {
    let make = |i: usize, pixels: &mut [u8]| {
        let loud = [37, 61, 89].map(|step| (20 + i * step % 100) as i32);
        for (at, pixel) in pixels.chunks_exact_mut(3).enumerate() {
            let sign = if coin(i, at) { 1 } else { -1 };
            for (value, loud) in pixel.iter_mut().zip(loud) {
                *value = (128 + sign * loud) as u8;
            }
        }
    };
    Dataset::new("noise", Pictures::from_fn(16, 16, 96, make).unwrap())
}

fn coin(i: usize, at: usize) -> bool {
    let mut h =
        (i as u32 + 1).wrapping_mul(0x9E37_79B1) ^ (at as u32 + 7).wrapping_mul(0x85EB_CA77);
    for _ in 0..2 {
        h = (h ^ (h >> 15)).wrapping_mul(0x9E37_79B1);
    }
    h >> 31 == 1
}

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

fn verdict(data: &Dataset, config: &RunConfig) -> (Summary, String) {
    let config = config.fitted(data).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let stop = AtomicBool::new(false);
    train(&Device::cpu(2), &mut dir, data, &mut |_| {}, &stop).unwrap();
    let record = RunRecord::read(dir.path()).unwrap();
    let summary = Summary::of(&record.events);
    let sentence = summary.verdict().unwrap().to_string();
    let page = report_html(&record, Ok(&data.train)).unwrap();
    assert_eq!(page.matches(&sentence).count(), 1, "on top of the page");
    (summary, sentence)
}

/// Weights that decay to nothing make all pictures alike.
#[test]
fn what_has_collapsed_is_not_better_than_raw_pixels() {
    let mut config = Preset::Quick.config_for("noise", MethodChoice::Instance);
    config.network.width = 4;
    config.network.features = 16;
    config.training.batch = 16;
    config.training.epochs = 6;
    config.training.weight_decay = 10.0;
    let (summary, sentence) = verdict(&noise(), &config);
    assert!(
        sentence
            .starts_with("Not better than raw pixels: train longer, or start from a trained model"),
        "{sentence}: {:?}",
        summary.label_free
    );
}

#[test]
fn what_has_learnt_is_better_than_raw_pixels_without_a_label() {
    let mut config = Preset::Quick.config_for("stripes", MethodChoice::SimClr);
    config.network.width = 4;
    config.training.batch = 32;
    config.training.epochs = 20;
    let (summary, sentence) = verdict(&stripes(), &config);
    assert!(
        sentence.starts_with("Better than raw pixels by ") && sentence.contains("without labels"),
        "{sentence}: {:?}",
        summary.label_free
    );
}
