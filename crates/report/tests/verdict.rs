//! A run without labels says whether it was worth it, at the end of its events and on top of its page.

use std::sync::atomic::AtomicBool;

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::Device;
use anchorhood_report::{RunRecord, Summary, report_html};
use anchorhood_train::{MethodChoice, Preset, RunDir, train};

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

fn verdict(decay: f64) -> (Summary, String) {
    let data = noise();
    let mut config = Preset::Quick.config_for("noise", MethodChoice::Instance);
    config.network.width = 4;
    config.network.features = 16;
    config.training.batch = 16;
    config.training.epochs = 6;
    config.training.weight_decay = decay;
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let stop = AtomicBool::new(false);
    train(&Device::cpu(1), &mut dir, &data, &mut |_| {}, &stop).unwrap();
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
    let (summary, sentence) = verdict(10.0);
    assert!(
        sentence
            .starts_with("Not better than raw pixels: train longer, or start from a trained model"),
        "{sentence}: {:?}",
        summary.label_free
    );
}
