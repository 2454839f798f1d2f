//! Methods that guess a part of the picture learn to guess better than by always naming the
//! commonest answer, on every network they are for, and tell so after every epoch.

use std::sync::atomic::AtomicBool;

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::{Device, Precision};
use anchorhood_models::Architecture;
use anchorhood_train::{
    Checkpoint, Event, MethodChoice, Preset, PretextShare, RunConfig, RunDir, train,
};

use crate::common::beside::beside_each_other;

/// The methods, and what each guesses.
const ALL: [(MethodChoice, &[&str]); 4] = [
    (MethodChoice::Context, &["arrangement"]),
    (MethodChoice::Jigsaw, &["arrangement"]),
    (MethodChoice::SplitBrain, &["ab", "lightness"]),
    (MethodChoice::Colour, &["ab"]),
];

/// A few seconds on two cores.
fn small(method: MethodChoice, architecture: Architecture) -> RunConfig {
    let mut config = Preset::Quick.config_for("shapes", method);
    config.network.architecture = architecture;
    config.network.width = match architecture {
        Architecture::AlexNet => 4,
        _ => 8,
    };
    (config.training.batch, config.training.epochs) = match method {
        MethodChoice::Context | MethodChoice::Jigsaw => (20, 2),
        _ => (20, 3),
    };
    if method.colours().is_none() {
        // Whole pictures, whose parts are always at the same places.
        config.augmentation.crop_scale = (1.0, 1.0);
        config.augmentation.crop_ratio = (1.0, 1.0);
    }
    config.training.learning_rate = 0.003;
    config.data.size = Some(16);
    config.evaluation.every = config.training.epochs;
    config
}

/// Pictures of two areas, each dark and blue, red, or bright and yellow: what colour goes with
/// which lightness can be learnt. That of `shapes` cannot, whose tints are drawn without a look at
/// lightness.
fn sky_and_earth() -> Dataset {
    let pictures = Pictures::from_fn(16, 16, 400, |number, bytes| {
        let horizon = 4 + number % 9;
        let colours = [[30, 30, 120], [200, 60, 60], [240, 230, 90]];
        for (place, rgb) in bytes.chunks_exact_mut(3).enumerate() {
            let area = number / 9 / if place / 16 < horizon { 1 } else { 3 };
            rgb.copy_from_slice(&colours[area % 3]);
        }
    });
    Dataset::new("sky and earth", pictures.unwrap())
}

/// Pictures of a bright disc in the middle, of any colours: every part of it looks in a direction
/// of its own. `shapes` are patterns whose parts are all alike.
fn suns() -> Dataset {
    let pictures = Pictures::from_fn(16, 16, 400, |number, bytes| {
        let any = |k: usize| (number * 97 + k * 61) * 37 % 101;
        for (place, rgb) in bytes.chunks_exact_mut(3).enumerate() {
            let [y, x] = [place / 16, place % 16].map(|at| at as f32 - 7.5);
            let inside = (1.5 - (y * y + x * x).sqrt() / 6.0).clamp(0.0, 1.0);
            for (c, value) in rgb.iter_mut().enumerate() {
                let (dark, bright) = (any(c) as f32 * 0.6, 150.0 + any(c + 3) as f32);
                let noise = any(place * 3 + c + 7) as f32 * 0.1;
                *value = (dark + inside * (bright - dark) + noise).min(255.0) as u8;
            }
        }
    });
    Dataset::new("suns", pictures.unwrap())
}

/// What was told of the pretext task in each epoch, and what was saved.
fn told(device: &Device, config: &RunConfig) -> (Vec<Vec<PretextShare>>, Checkpoint) {
    let data = match config.method.name.colours() {
        Some(_) => sky_and_earth(),
        None => suns(),
    };
    let config = config.fitted(&data).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(runs.path(), "a", &config).unwrap();
    let mut told = vec![];
    let mut observer = |event: &Event| {
        if let Event::Pretext(p) = event {
            told.push(p.figures.clone());
        }
    };
    let stop = AtomicBool::new(false);
    train(device, &mut dir, &data, &mut observer, &stop).unwrap();
    let saved = Checkpoint::load(&dir.checkpoint("last")).unwrap();
    (told, saved)
}

fn learns(device: &Device, method: MethodChoice, names: &[&str], architecture: Architecture) {
    let config = small(method, architecture);
    let (told, saved) = told(device, &config);
    assert_eq!(told.len(), config.training.epochs);
    for (i, name) in names.iter().enumerate() {
        let (first, last) = (&told[0][i], &told[told.len() - 1][i]);
        println!("{method}, {architecture}: {first:?}, then {last:?}");
        assert_eq!(last.name, *name);
        let chance = last.chance.unwrap();
        assert!(last.share > chance + 0.1, "{method}: {last:?}");
        assert!(last.share > first.share, "{method}: {first:?}, {last:?}");
    }
    assert_eq!(saved.method, method.name());
    // What was told of is not counted again.
    let counted = saved.state.words(names[0]).unwrap().1;
    assert!(counted.iter().all(|c| *c == 0), "{counted:?}");
}

fn learns_by_all(device: &Device, method: MethodChoice, names: &[&str]) {
    for architecture in [Architecture::ResNet18, Architecture::AlexNet] {
        learns(device, method, names, architecture);
    }
}

#[test]
fn guesses_become_better_than_chance() {
    beside_each_other(ALL, |device, (method, names)| {
        learns_by_all(device, method, names);
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn guesses_become_better_than_chance_on_cuda() {
    for precision in [Precision::F32, Precision::Bf16] {
        let device = Device::cuda(0, precision).unwrap();
        for (method, names) in ALL {
            learns_by_all(&device, method, names);
        }
    }
}

/// The discriminator tells pairs apart better than by chance, and those it judges keep it from
/// being always right.
fn pairs_are_told_apart(device: &Device) {
    for architecture in [Architecture::ResNet18, Architecture::AlexNet] {
        let config = small(MethodChoice::BiGan, architecture);
        let (told, saved) = told(device, &config);
        let shares: Vec<f64> = told.iter().map(|epoch| epoch[0].share).collect();
        println!("{architecture}: {shares:?}");
        assert!(told.iter().all(|epoch| epoch[0].name == "pairs"));
        assert!(told.iter().all(|epoch| epoch[0].chance == Some(0.5)));
        let last = shares[shares.len() - 1];
        assert!(shares[0] > 0.6 && last < 0.999, "{shares:?}");
        let heads: Vec<&str> = saved.heads.iter().map(|h| h.namespace.as_str()).collect();
        let parts = ["pictures", "latents", "pairs"].map(|part| format!("discriminator.{part}"));
        assert_eq!(heads[..2], ["latent", "generator"]);
        assert_eq!(heads[2..], parts);
    }
}

#[test]
fn pairs_are_told_apart_on_the_cpu() {
    pairs_are_told_apart(&Device::cpu(1));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn pairs_are_told_apart_on_cuda() {
    for precision in [Precision::F32, Precision::Bf16] {
        pairs_are_told_apart(&Device::cuda(0, precision).unwrap());
    }
}

/// A method that guesses colours from others is refused a network that sees what is to be guessed.
#[test]
fn a_network_that_sees_the_answer_is_refused() {
    let mut config = small(MethodChoice::SplitBrain, Architecture::ResNet18);
    config.set("network.colours", "rgb").unwrap();
    let refused = config.check().unwrap_err().to_string();
    assert!(refused.starts_with("network.colours: split-brain"), "{refused}");
}
