//! Methods that learn by a pretext task learn it, on every network they are for: better than a
//! guess, within seconds, and without collapse; and tell so after every epoch.

use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::{Device, Precision};
use anchorhood_models::Architecture;
use anchorhood_train::{Checkpoint, MethodChoice, Preset, PretextMeasured, RunConfig};

use crate::common::{Run, beside_each_other, data, losses, pretexts};

const NETWORKS: [Architecture; 2] = [Architecture::ResNet18, Architecture::AlexNet];

/// Small pictures, by a method's own recipe.
fn small(method: MethodChoice, network: Architecture) -> RunConfig {
    let mut config = Preset::Quick.config_for("shapes", method);
    config.network.architecture = network;
    config.data.size = Some(16);
    config.training.batch = 20;
    config
}

/// What was told of the task, epoch after epoch, the losses, and what was saved.
fn told(
    device: &Device,
    config: &mut RunConfig,
    (epochs, rate): (usize, f64),
    data: Dataset,
) -> (Vec<PretextMeasured>, Vec<f64>, Checkpoint) {
    (config.training.epochs, config.training.learning_rate) = (epochs, rate);
    config.evaluation.every = epochs;
    let (events, saved) = Run::on(device, config, data).whole();
    let told = pretexts(&events);
    assert_eq!(told.len(), epochs);
    assert_eq!(saved.method, config.method.name.name());
    (told, losses(&events), saved)
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

/// A method that guesses a part of the picture.
fn guessing(method: MethodChoice, network: Architecture) -> (RunConfig, Dataset) {
    let mut config = small(method, network);
    config.network.width = if network == Architecture::AlexNet { 4 } else { 8 };
    if method.colours().is_some() {
        return (config, sky_and_earth());
    }
    // Whole pictures, whose parts are always at the same places.
    config.augmentation.crop_scale = (1.0, 1.0);
    config.augmentation.crop_ratio = (1.0, 1.0);
    (config, suns())
}

/// Guesses become better than by always naming the commonest answer.
fn is_guessed(device: &Device, (method, network): (MethodChoice, Architecture)) {
    let (mut config, data) = guessing(method, network);
    let (epochs, names) = match method {
        MethodChoice::SplitBrain => (3, &["ab", "lightness"][..]),
        MethodChoice::Colour => (3, &["ab"][..]),
        _ => (2, &["arrangement"][..]),
    };
    let (told, _, saved) = told(device, &mut config, (epochs, 0.003), data);
    for name in names {
        let (shares, chances) = figure(&told, name);
        println!("{method}, {network}: {name} {shares:?}, by chance {chances:?}");
        let (first, last) = (shares[0], shares[epochs - 1]);
        assert!(last > chances[epochs - 1] + 0.1 && last > first, "{method}: {shares:?}");
    }
    // What was told of is not counted again.
    let counted = saved.state.words(names[0]).unwrap().1;
    assert!(counted.iter().all(|c| *c == 0), "{counted:?}");
}

/// The discriminator tells pairs apart better than by chance, and those it judges keep it from
/// being always right.
fn pairs_are_told_apart(device: &Device, network: Architecture) {
    let (mut config, data) = guessing(MethodChoice::BiGan, network);
    let (told, _, saved) = told(device, &mut config, (3, 0.003), data);
    let (shares, chances) = figure(&told, "pairs");
    println!("{network}: {shares:?}");
    assert_eq!(chances, [0.5; 3]);
    assert!(shares[0] > 0.6 && shares[2] < 0.999, "{shares:?}");
    let heads: Vec<&str> = saved.heads.iter().map(|h| h.namespace.as_str()).collect();
    let parts = ["pictures", "latents", "pairs"].map(|part| format!("discriminator.{part}"));
    assert_eq!(heads[..2], ["latent", "generator"]);
    assert_eq!(heads[2..], parts);
}

/// A method whose network is given targets.
fn of_targets(
    device: &Device,
    method: MethodChoice,
    network: Architecture,
    how_long: (usize, f64),
) -> (Vec<PretextMeasured>, Vec<f64>) {
    let mut config = small(method, network);
    config.data.shapes_train = 600;
    config.data.shapes_test = 30;
    config.network.width = 4;
    config.method.clusters = 10;
    let data = data(&config);
    let (told, losses, _) = told(device, &mut config, how_long, data);
    (told, losses)
}

/// A classifier that is drawn anew every epoch is right more often than always naming the largest
/// cluster, and clusters neither run together nor are found anew by chance.
fn clusters_are_told_apart(device: &Device, network: Architecture) {
    let (told, _) = of_targets(device, MethodChoice::DeepCluster, network, (8, 0.02));
    // Clusters and classifier are others in every epoch, and so is how hard they are to tell
    // apart: some epochs' mean is steady.
    let (accuracy, chance) = figure(&told, "accuracy");
    let gains: Vec<f64> =
        accuracy.iter().zip(chance).map(|(share, chance)| share - chance).collect();
    let gain = gains[3..].iter().sum::<f64>() / 5.0;
    println!("{network}: {gains:?} over chance");
    assert!(gain > 0.04, "{gain} of {gains:?}");
    let largest = figure(&told, "largest cluster").0;
    assert!(largest.iter().all(|share| *share < 0.5), "{largest:?}");
    let used = figure(&told, "clusters in use").0;
    assert!(used.iter().all(|share| *share > 0.9), "{used:?}");
    let information = figure(&told, "mutual information").0;
    println!("{information:?}, {largest:?}, {used:?}");
    assert_eq!(information[0], 0.0, "nothing was before");
    assert!(information[7] > 0.2, "{information:?}");
}

/// Features are nearer to their own points than those of a network that does not learn, whose
/// pictures are given near points all the same.
fn points_are_reached(device: &Device, networks: &[Architecture]) {
    let reached = |network, rate| {
        let (told, losses) = of_targets(device, MethodChoice::Nat, network, (7, rate));
        let (nearest, chance) = figure(&told, "own point nearest");
        println!("{network} at {rate:e}: {nearest:?}, by chance {chance:?}; {losses:?}");
        assert!(nearest[6] > 3.0 * chance[6], "{nearest:?}");
        -losses[6]
    };
    let still = reached(Architecture::ResNet18, 1e-30);
    for network in networks {
        let learnt = reached(*network, 0.03);
        assert!(learnt > still + 0.03, "{learnt}, without learning {still}");
    }
}

/// Quarters add up to their own picture rather than to another.
fn quarters_add_up(device: &Device, network: Architecture) {
    let (told, _) = of_targets(device, MethodChoice::Counting, network, (6, 0.003));
    let (accuracy, chance) = figure(&told, "accuracy");
    println!("{network}: {accuracy:?}, by chance {chance:?}");
    assert!(accuracy[5] > 0.57, "{accuracy:?}");
}

const GUESSED: [MethodChoice; 4] =
    [MethodChoice::Context, MethodChoice::Jigsaw, MethodChoice::SplitBrain, MethodChoice::Colour];

fn all_are_learnt_on(device: &Device, network: Architecture) {
    GUESSED.into_iter().for_each(|method| is_guessed(device, (method, network)));
    pairs_are_told_apart(device, network);
    clusters_are_told_apart(device, network);
    quarters_add_up(device, network);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn pretext_tasks_are_learnt_on_cuda() {
    for precision in [Precision::F32, Precision::Bf16] {
        let device = Device::cuda(0, precision).unwrap();
        NETWORKS.into_iter().for_each(|network| all_are_learnt_on(&device, network));
        points_are_reached(&device, &NETWORKS);
    }
}

/// A task of tiles and one of colours.
#[test]
fn guesses_become_better_than_chance() {
    let some = [MethodChoice::Context, MethodChoice::Colour];
    beside_each_other(some.map(|method| (method, Architecture::ResNet18)), is_guessed);
}

/// A method that guesses colours from others is refused a network that sees what is to be guessed.
#[test]
fn a_network_that_sees_the_answer_is_refused() {
    let mut config = small(MethodChoice::SplitBrain, Architecture::ResNet18);
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
