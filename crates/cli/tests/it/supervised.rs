//! `train --method supervised`: learning from labels, as a user asks for it.

use anchorhood::train::{FeatureSource, MethodChoice, RunConfig};

use crate::common::{self, Sandbox, TINY};

/// The tiny settings, less those that supervision decides.
fn supervised(sandbox: &Sandbox, more: &[&str]) -> common::Ran {
    let decided = ["--method", "--rounds", "--features"]; // one round is its recipe
    let tiny = TINY.chunks(2).filter(|pair| !decided.contains(&pair[0]));
    let args = ["train", "--method", "supervised"].iter().chain(more);
    let args: Vec<&str> = args.chain(tiny.flatten()).copied().collect();
    sandbox.run(&args)
}

#[test]
fn the_classes_are_the_data_sets_and_the_run_goes_on() {
    let sandbox = Sandbox::new();
    supervised(&sandbox, &["--name", "a"]).succeeded();
    let text = std::fs::read_to_string(sandbox.path("runs/a/config.toml")).unwrap();
    let config = RunConfig::from_toml(&text, "a").unwrap();
    assert_eq!(config.method.name, MethodChoice::Supervised);
    assert_eq!((config.network.features, config.training.rounds), (10, 0));
    assert_eq!(config.evaluation.features, FeatureSource::Recomputed);
    sandbox.run(&["train", "--resume", "a"]).succeeded();
    let file = ["train", "--config", "runs/a/config.toml", "--name", "b"];
    sandbox.run(&file).succeeded();
    let again = std::fs::read_to_string(sandbox.path("runs/b/config.toml")).unwrap();
    assert_eq!(again, text);
}

#[test]
fn what_supervision_decides_cannot_be_asked_for() {
    let sandbox = Sandbox::new();
    supervised(&sandbox, &["--features", "8"]).failed(2, &["--features", "leave"]);
    assert!(!sandbox.path("runs").exists());
}

#[test]
fn pictures_without_labels_cannot_be_supervised() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("plain");
    std::fs::create_dir(&folder).unwrap();
    for i in 0..3u8 {
        let picture = image::RgbImage::from_pixel(16, 16, image::Rgb([i, 2, 3]));
        picture.save(folder.join(format!("{i}.png"))).unwrap();
    }
    supervised(&sandbox, &["plain"]).failed(2, &["plain", "label"]);
    assert!(!sandbox.path("runs").exists());
}
