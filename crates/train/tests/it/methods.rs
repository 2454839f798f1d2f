//! Every method that can be chosen learns on small pictures, goes on from any step in the same
//! bits, and has the gradient of its own loss.

use std::path::Path;

use anchorhood_data::Dataset;
use anchorhood_engine::{Device, Network, Precision, Role, Tensors};
use anchorhood_models::Architecture;
use anchorhood_train::{
    Checkpoint, MethodChoice, Position, Preset, RunConfig, Standing, Trainer, TrainingSet,
    build_method,
};

use crate::common::beside::beside_each_other;
use crate::common::whole_run::whole_run;

/// Those that compare views, with the heads that a checkpoint of each has.
const OF_VIEWS: [(MethodChoice, &[&str]); 5] = [
    (MethodChoice::Anchorhood, &["projector"]),
    (MethodChoice::SimClr, &["projector"]),
    (MethodChoice::SimSiam, &["projector", "predictor"]),
    (MethodChoice::Byol, &["projector", "predictor", "target", "target.projector"]),
    (MethodChoice::NnClr, &["projector", "predictor"]),
];

/// A few seconds on two cores, for each as long as it needs.
fn small(method: MethodChoice) -> RunConfig {
    let mut config = Preset::Quick.config_for("shapes", method);
    config.network.architecture = Architecture::ResNet18;
    (config.training.batch, config.training.epochs) = match method {
        MethodChoice::Anchorhood => (30, 3),
        MethodChoice::SimClr => (30, 8),
        MethodChoice::SimSiam => (30, 5),
        MethodChoice::Byol => (30, 3),
        MethodChoice::NnClr => (30, 16),
        MethodChoice::And | MethodChoice::Instance | MethodChoice::Supervised => (60, 2),
        MethodChoice::DeepCluster | MethodChoice::Nat | MethodChoice::Counting => (30, 6),
        MethodChoice::SplitBrain
        | MethodChoice::Colour
        | MethodChoice::Jigsaw
        | MethodChoice::Context
        | MethodChoice::BiGan => (20, 2),
    };
    if method == MethodChoice::Byol {
        // Its target must move within so few steps.
        (config.method.views, config.method.momentum) = (4, 0.9);
    }
    config.data.shapes_train = 600;
    config.data.shapes_test = 300;
    config.data.size = Some(16);
    config.network.width = 8;
    config.evaluation.k = 20;
    config.evaluation.every = config.training.epochs;
    config
}

fn open(config: &RunConfig) -> Dataset {
    let options = config.data.load_options(config.seed);
    anchorhood_data::open(&config.data.set, &options).unwrap()
}

/// The loss falls, and features get better where that shows soon; the checkpoint has the method's
/// heads, and as its last layer the map that features are seen through.
fn learns(device: &Device, method: MethodChoice, heads: &[&str]) {
    let config = small(method);
    let (losses, [before, after], saved) = whole_run(device, &config);
    println!("{method}: {before} before, {after} after; {losses:?}");
    let fell = losses[losses.len() - 1] < losses[0] - 0.05;
    assert!(fell, "{method}: {losses:?}");
    // Seconds are too few to see the others gain on every device.
    if matches!(method, MethodChoice::Anchorhood | MethodChoice::SimClr | MethodChoice::NnClr) {
        assert!(after > before + 0.03, "{method}: {before} before, {after} after");
    }
    assert_eq!(saved.method, method.name());
    let namespaces = saved.heads.iter().map(|h| h.namespace.as_str());
    assert_eq!(namespaces.collect::<Vec<_>>(), heads);
    assert_eq!(saved.judged_layer, "normalise");
    assert_eq!(saved.config.network.features, 64);
    let last = &saved.weights[saved.weights.len() - 2..];
    let names: Vec<&str> = last.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["fc.weight", "fc.bias"]);
}

#[test]
fn methods_of_views_learn_on_the_cpu() {
    beside_each_other(OF_VIEWS, |device, (method, heads)| {
        learns(device, method, heads);
    });
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn methods_of_views_learn_on_cuda() {
    for precision in [Precision::F32, Precision::Bf16] {
        let device = Device::cuda(0, precision).unwrap();
        for (method, heads) in OF_VIEWS {
            learns(&device, method, heads);
        }
    }
}

/// Instance discrimination never looks for neighbours, and in round 0 is what Anchor Neighbourhood
/// Discovery is.
#[test]
fn instance_is_round_0_of_and_in_every_round() {
    let of = |method, rounds| {
        let mut config = tiny(method);
        config.training.rounds = rounds;
        whole_run(&Device::cpu(1), &config).2
    };
    let (and, instance) = (of(MethodChoice::And, 0), of(MethodChoice::Instance, 0));
    assert_eq!((and.weights, and.state), (instance.weights, instance.state));
    assert_eq!(instance.method, "instance");
    let longer = of(MethodChoice::Instance, 1);
    assert!(longer.neighbourhoods().is_none());
    assert_eq!(longer.standing.position.round, 2);
}

/// Few pictures, few epochs.
fn tiny(method: MethodChoice) -> RunConfig {
    let mut config = small(method);
    config.data.shapes_train = 24;
    config.data.shapes_test = 8;
    config.data.size = Some(8);
    config.network.width = 2;
    config.training.batch = 8;
    config.training.rounds = 1;
    config.training.epochs = 2;
    config
}

fn fresh(device: &Device, config: &RunConfig) -> Trainer {
    let data = open(config);
    let config = config.fitted(&data).unwrap();
    let method = build_method(device, &config, &data).unwrap();
    Trainer::with(device, &config, TrainingSet::of(&data), method).unwrap()
}

/// Trains step by step, from a position to another.
fn advance(trainer: &mut Trainer, config: &RunConfig, from: Position, until: Position) {
    trainer.begin().unwrap();
    let mut at = from;
    while at < until {
        if at.epoch == 0 && at.batch == 0 {
            trainer.before_round(at.round, &|_| {}).unwrap();
        }
        trainer.advance(at, 1).unwrap();
        at.batch += 1;
        if at.batch == trainer.batches() {
            at = at.next_epoch(config.training.epochs);
        }
    }
}

fn resumes_to_the_bit(device: &Device, config: &RunConfig) {
    let method = config.method.name;
    let at = |round, epoch, batch| Position { round, epoch, batch };
    let end = at(2, 0, 0);
    let mut whole = fresh(device, config);
    advance(&mut whole, config, Position::default(), end);
    let expected = whole.checkpoint(Standing::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    for cut in [at(0, 1, 2), at(1, 0, 0)] {
        let mut first = fresh(device, config);
        advance(&mut first, config, Position::default(), cut);
        let saved = first.checkpoint(Standing::default()).unwrap();
        saved.save(&path).unwrap();
        let mut second = fresh(device, config);
        let loaded = Checkpoint::load(&path).unwrap();
        second.restore(loaded, Path::new(&path)).unwrap();
        advance(&mut second, config, cut, end);
        let got = second.checkpoint(Standing::default()).unwrap();
        assert!(got == expected, "{method}: cut at {cut}");
    }
}

#[test]
fn every_method_resumes_to_the_bit() {
    every_method_resumes_on(&Device::cpu(1));
}

fn every_method_resumes_on(device: &Device) {
    for name in MethodChoice::NAMES {
        resumes_to_the_bit(device, &tiny(name.parse().unwrap()));
    }
    resumes_to_the_bit(device, &with_all_parts());
}

/// Anchorhood with a momentum encoder, a predictor and a memory that is filled first.
fn with_all_parts() -> RunConfig {
    let mut config = tiny(MethodChoice::Anchorhood);
    config.method.momentum_rows = true;
    config.method.predictor = true;
    config.discovery.fill = true;
    config
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn every_method_resumes_to_the_bit_on_cuda() {
    every_method_resumes_on(&Device::cuda(0, Precision::Bf16).unwrap());
}

/// Every weight of a network and its gradient.
fn weights(network: &Network) -> Vec<(usize, Vec<f32>, Vec<f32>)> {
    let parameters = network.graph().parameters().iter().enumerate();
    let trained = parameters.filter(|(_, p)| p.role == Role::Weight);
    let read = |which, i| network.read(which, i).unwrap();
    let both = |(i, _)| (i, read(Tensors::Values, i), read(Tensors::Gradients, i));
    trained.map(both).collect()
}

/// How far a loss goes along its own gradient, over what the gradient says: 1. `part` is the
/// network whose weights move, of those that no target is made with.
fn slope_of_the_loss(mut config: RunConfig, part: &str) -> f64 {
    // A task is set before an epoch: it is looked at in its midst.
    let task = !config.method.name.compares_views();
    config.training.batch = if task { 12 } else { 24 };
    // Nothing moves by itself.
    config.training.learning_rate = 1e-30;
    config.training.warm_up = 0.0;
    config.training.weight_decay = 0.0;
    config.method.momentum = 1.0;
    config.discovery.memory_rate = 1e-30;
    let mut trainer = fresh(&Device::cpu(1), &config);
    // In a round with neighbours, for those who look for any.
    let at = Position { round: 1, ..Position::default() };
    trainer.before_round(at.round, &|_| {}).unwrap();
    trainer.begin().unwrap();
    trainer.advance(at, 1).unwrap();
    let at = Position { batch: usize::from(task), ..at };
    let loss = |trainer: &mut Trainer| {
        trainer.begin().unwrap();
        trainer.advance(at, 1).unwrap()[0]
    };
    // Once for what a step remembers, once for its gradients.
    loss(&mut trainer);
    loss(&mut trainer);
    let networks = trainer.method().networks();
    let place = networks.iter().position(|(name, _)| *name == part).unwrap();
    let all = weights(networks[place].1);
    let squares = (all.iter()).flat_map(|(_, _, g)| g.iter().map(|g| f64::from(*g).powi(2)));
    let length = squares.sum::<f64>().sqrt();
    let reach = if task { 1e-4 } else { 3e-4 };
    let [up, down] = [1.0, -1.0].map(|sign| {
        let (_, network) = trainer.method().networks().swap_remove(place);
        let step = (sign * reach / length) as f32;
        for (i, values, gradient) in &all {
            let moved = values.iter().zip(gradient).map(|(w, g)| w + step * g);
            let moved: Vec<f32> = moved.collect();
            network.write(Tensors::Values, *i, &moved).unwrap();
        }
        loss(&mut trainer)
    });
    (up - down) / (2.0 * reach * length)
}

/// Finite differences through the whole step, with views, heads and loss. Where a target is held
/// constant (stop-gradient) only networks are moved that it does not come from.
#[test]
fn steps_have_the_gradients_of_their_losses() {
    for part in ["", "projector", "predictor"] {
        let slope = slope_of_the_loss(with_all_parts(), part);
        println!("anchorhood with all parts, {part}: {slope}");
        assert!((slope - 1.0).abs() < 0.05, "{part}: {slope}");
    }
    for (method, part) in [
        (MethodChoice::Anchorhood, ""),
        (MethodChoice::Anchorhood, "projector"),
        (MethodChoice::SimClr, ""),
        (MethodChoice::SimClr, "projector"),
        (MethodChoice::SimSiam, "predictor"),
        (MethodChoice::Byol, ""),
        (MethodChoice::Byol, "projector"),
        (MethodChoice::Byol, "predictor"),
        (MethodChoice::NnClr, "predictor"),
        (MethodChoice::DeepCluster, ""),
        (MethodChoice::DeepCluster, "classifier"),
        (MethodChoice::Nat, ""),
        (MethodChoice::Counting, ""),
        (MethodChoice::SplitBrain, ""),
        (MethodChoice::SplitBrain, "ab"),
        (MethodChoice::SplitBrain, "lightness"),
        (MethodChoice::Colour, ""),
        (MethodChoice::Jigsaw, ""),
        (MethodChoice::Jigsaw, "arrangement"),
        (MethodChoice::Context, ""),
    ] {
        let slope = slope_of_the_loss(tiny(method), part);
        println!("{method} {part}: {slope}");
        assert!((slope - 1.0).abs() < 0.05, "{method} {part}: {slope}");
    }
}
