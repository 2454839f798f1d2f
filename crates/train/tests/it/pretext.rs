//! Methods that learn by a pretext task learn it, on every network they are for: better than a
//! guess, within seconds, and without collapse; and tell so after every epoch.

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::Device;
use anchorhood_models::{ALEXNET, Backbone, RESNET18};
use anchorhood_train::{Checkpoint, MethodSpec, PretextMeasured, RunConfig, methods};

use crate::common::{Run, beside_each_other, data, heads, losses, on_cuda, pretexts, small};

const NETWORKS: [&Backbone; 2] = [&RESNET18, &ALEXNET];

/// Whether what is to be is true of a figure of every epoch, and of what a guess would reach.
type Holds = fn(&[f64], &[f64]) -> bool;

/// How a pretext task goes: by which method, for how many epochs at which rate, and what must be
/// true of the figures that it tells.
type Task = (&'static MethodSpec, (usize, f64), &'static [(&'static str, Holds)]);

const CONTEXT: Task = (&methods::CONTEXT, (2, 0.003), &[("arrangement", is_guessed)]);
const COLOUR: Task = (&methods::COLOUR, (3, 0.003), &[("ab", is_guessed)]);
const TASKS: [Task; 7] = [
    CONTEXT,
    COLOUR,
    (&methods::JIGSAW, (2, 0.003), &[("arrangement", is_guessed)]),
    (&methods::SPLIT_BRAIN, (3, 0.003), &[("ab", is_guessed), ("lightness", is_guessed)]),
    // The discriminator tells pairs apart better than by chance, and those it judges keep it from
    // being always right.
    (&methods::BIGAN, (3, 0.003), &[("pairs", are_told_apart)]),
    // Quarters add up to their own picture rather than to another.
    (&methods::COUNTING, (6, 0.003), &[("accuracy", |right, _| right[5] > 0.57)]),
    // A classifier that is drawn anew every epoch is right more often than always naming the
    // largest cluster, and clusters neither run together nor are found anew by chance.
    (
        &methods::DEEPCLUSTER,
        (8, 0.02),
        &[
            ("accuracy", gains),
            ("largest cluster", |share, _| share.iter().all(|share| *share < 0.5)),
            ("clusters in use", |share, _| share.iter().all(|share| *share > 0.9)),
            // Of the first clusters there are none before.
            ("mutual information", |share, _| share[0] == 0.0 && share[7] > 0.2),
        ],
    ),
];

/// Guesses become better than by always naming the commonest answer.
fn is_guessed(right: &[f64], chance: &[f64]) -> bool {
    let last = right.len() - 1;
    right[last] > chance[last] + 0.1 && right[last] > right[0]
}

fn are_told_apart(right: &[f64], chance: &[f64]) -> bool {
    chance == [0.5; 3] && right[0] > 0.6 && right[2] < 0.999
}

/// Clusters and classifier are others in every epoch, and so is how hard they are to tell apart:
/// some epochs' mean is steady.
fn gains(right: &[f64], chance: &[f64]) -> bool {
    let gains = right.iter().zip(chance).skip(3).map(|(right, chance)| right - chance);
    gains.sum::<f64>() / 5.0 > 0.04
}

/// A figure of every epoch, and what a guess would reach in each, where that can be said.
fn figure(told: &[PretextMeasured], name: &str) -> (Vec<f64>, Vec<f64>) {
    let own: Vec<_> = told.iter().flat_map(|p| &p.figures).filter(|f| f.name == name).collect();
    assert_eq!(own.len(), told.len(), "{name}: {told:?}");
    (own.iter().map(|f| f.share).collect(), own.iter().filter_map(|f| f.chance).collect())
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

/// A method's own recipe for a network, and what its task can be learnt from.
fn of_method(method: &'static MethodSpec, network: &'static Backbone) -> (RunConfig, Dataset) {
    let mut config = small(method, [600, 30], 16, 4);
    config.network.architecture = network;
    config.training.batch = 20;
    config.method.clusters = 10;
    if method.kind == methods::MethodKind::Targets {
        let data = data(&config);
        return (config, data);
    }
    config.network.width = if network == &ALEXNET { 4 } else { 8 };
    if method.colours.is_some() {
        return (config, sky_and_earth());
    }
    // Whole pictures, whose parts are always at the same places.
    config.augmentation.crop_scale = (1.0, 1.0);
    config.augmentation.crop_ratio = (1.0, 1.0);
    (config, suns())
}

/// What was told of the task, epoch after epoch, the losses, and what was saved.
fn told(
    device: &Device,
    method: &'static MethodSpec,
    network: &'static Backbone,
    (epochs, rate): (usize, f64),
) -> (Vec<PretextMeasured>, Vec<f64>, Checkpoint) {
    let (mut config, data) = of_method(method, network);
    (config.training.epochs, config.training.learning_rate) = (epochs, rate);
    config.evaluation.every = epochs;
    let (events, saved) = Run::on(device, &config, data).whole();
    let told = pretexts(&events);
    assert_eq!(told.len(), epochs);
    assert_eq!(saved.method, method.name);
    (told, losses(&events), saved)
}

fn is_learnt(device: &Device, ((method, how_long, figures), network): (Task, &'static Backbone)) {
    let (told, _, saved) = told(device, method, network, how_long);
    for (name, holds) in figures {
        let (shares, chances) = figure(&told, name);
        let said = format!("{method}, {network}: {name} {shares:?}, by chance {chances:?}");
        println!("{said}");
        assert!(holds(&shares, &chances), "{said}");
        // What was told of is not counted again.
        let counted = saved.state.words(name).map_or(&[][..], |(_, counted)| counted);
        assert!(counted.iter().all(|c| *c == 0), "{counted:?}");
    }
    if method == &methods::BIGAN {
        let parts = ["pictures", "latents", "pairs"].map(|part| format!("discriminator.{part}"));
        let heads = heads(&saved);
        assert!(heads[..2] == ["latent", "generator"] && heads[2..] == parts, "{heads:?}");
    }
}

/// Features are nearer to their own points than those of a network that does not learn, whose
/// pictures are given near points all the same.
fn points_are_reached(device: &Device, networks: &[&'static Backbone]) {
    let reached = |network, rate| {
        let (told, losses, _) = told(device, &methods::NAT, network, (7, rate));
        let (nearest, chance) = figure(&told, "own point nearest");
        println!("{network} at {rate:e}: {nearest:?}, by chance {chance:?}; {losses:?}");
        assert!(nearest[6] > 3.0 * chance[6], "{nearest:?}");
        -losses[6]
    };
    let still = reached(&RESNET18, 1e-30);
    for network in networks {
        let learnt = reached(*network, 0.03);
        assert!(learnt > still + 0.03, "{learnt}, without learning {still}");
    }
}

fn all_are_learnt_on(device: &Device, network: &'static Backbone) {
    TASKS.into_iter().for_each(|task| is_learnt(device, (task, network)));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn pretext_tasks_are_learnt_on_cuda() {
    on_cuda(|device| {
        NETWORKS.into_iter().for_each(|network| all_are_learnt_on(device, network));
        points_are_reached(device, &NETWORKS);
    });
}

/// A task of tiles and one of colours.
#[test]
fn guesses_become_better_than_chance() {
    let some = [CONTEXT, COLOUR];
    beside_each_other(some.map(|task| (task, &RESNET18)), is_learnt);
}

/// A method that guesses colours from others is refused a network that sees what is to be guessed.
#[test]
fn a_network_that_sees_the_answer_is_refused() {
    let (mut config, _) = of_method(&methods::SPLIT_BRAIN, &RESNET18);
    config.set("network.colours", "rgb").unwrap();
    let refused = config.check().unwrap_err().to_string();
    assert!(refused.starts_with("network.colours: split-brain"), "{refused}");
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: trains by every pretext task"]
    fn pretext_tasks_are_learnt() {
        beside_each_other(NETWORKS, all_are_learnt_on);
    }

    #[test]
    #[ignore = "long: trains three networks by noise as targets"]
    fn nat_reaches_its_points() {
        points_are_reached(&Device::cpu(1), &NETWORKS);
    }
}
