//! Every method that can be chosen learns on small pictures, goes on from any step in the same
//! bits, and has the gradient of its own loss; so does every optimiser.

use anchorhood_engine::{Device, Network, Precision, Role, Tensors};
use anchorhood_models::RESNET18;
use anchorhood_train::{MethodSpec, OptimiserChoice, Position, RunConfig, Trainer, methods};

use crate::common::{
    self, Run, beside_each_other, data, heads, judged, losses, methods, on_cuda, same_from_any_cut,
    steps, trainer,
};

/// What is learnt with, by how little the loss falls and how little features gain, if they do so
/// soon, and the heads that a checkpoint of it has.
type Case = (RunConfig, (f64, Option<f64>), &'static [&'static str]);

/// A few seconds on two cores, for each as long as it needs.
fn cases() -> Vec<Case> {
    let of_views = [
        (&methods::ANCHORHOOD, 3, Some(0.03), &["projector"][..]),
        (&methods::SIMCLR, 8, Some(0.03), &["projector"]),
        (&methods::SIMSIAM, 5, None, &["projector", "predictor"]),
        (&methods::BYOL, 3, None, &["projector", "predictor", "target", "target.projector"]),
        (&methods::NNCLR, 16, Some(0.03), &["projector", "predictor"]),
    ];
    let mut all: Vec<Case> = vec![];
    for (method, epochs, gain, heads) in of_views {
        let mut config = small(method, [600, 300], 16, 8);
        (config.training.batch, config.training.epochs) = (30, epochs);
        config.evaluation.every = epochs;
        all.push((config, (0.05, gain), heads));
    }
    all.extend(
        [OptimiserChoice::Sgd, OptimiserChoice::Lars, OptimiserChoice::AdamW].map(supervised),
    );
    all
}

fn supervised(optimiser: OptimiserChoice) -> Case {
    (classifier(optimiser), (0.3, Some(0.1)), &[])
}

fn small(
    method: &'static MethodSpec,
    pictures: [usize; 2],
    size: usize,
    width: usize,
) -> RunConfig {
    let mut config = common::small(method, pictures, size, width);
    config.network.architecture = &RESNET18;
    config.evaluation.k = 20;
    if method == &methods::BYOL {
        // Its target must move within so few steps.
        (config.method.views, config.method.momentum) = (4, 0.9);
    }
    config
}

/// A classifier, which learns within a few epochs.
fn classifier(optimiser: OptimiserChoice) -> RunConfig {
    let mut config = small(&methods::SUPERVISED, [300, 400], 16, 4);
    config.augmentation.crop_scale = (0.7, 1.0);
    config.augmentation.hue = 0.1;
    config.augmentation.grey = 0.0;
    (config.training.batch, config.training.epochs) = (30, 40);
    config.training.milestones = vec![0.9];
    config.evaluation.every = 40;
    config.training.optimiser = optimiser;
    (config.training.learning_rate, config.training.weight_decay) = match optimiser {
        OptimiserChoice::Sgd => (0.1, 5e-4),
        OptimiserChoice::Lars => (2.0, 1e-4),
        OptimiserChoice::AdamW => (5e-3, 1e-2),
    };
    config
}

/// The loss falls, and features get better where that shows soon; the checkpoint has the method's
/// heads, and with any as its last layer the map that features are seen through.
fn learns(device: &Device, (config, (falls, gains), expected_heads): Case) {
    let (method, optimiser) = (config.method.name, config.training.optimiser);
    let (told, saved) = Run::on(device, &config, data(&config)).whole();
    let (losses, judged) = (losses(&told), judged(&told));
    println!("{method} by {optimiser}: {judged:?}; {losses:?}");
    assert!(losses[losses.len() - 1] < losses[0] - falls, "{method}, {optimiser}: {losses:?}");
    if let Some(gain) = gains {
        let [before, after] = [judged[1], judged[judged.len() - 1]];
        assert!(after > before + gain, "{method}, {optimiser}: {before} before, {after} after");
    }
    assert_eq!(saved.method, method.name);
    assert_eq!(heads(&saved), expected_heads);
    if !expected_heads.is_empty() {
        assert_eq!(saved.judged_layer, "normalise");
        assert_eq!(saved.config.network.features, 64);
        let last = &saved.weights[saved.weights.len() - 2..];
        let names: Vec<&str> = last.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["fc.weight", "fc.bias"]);
    }
}

#[test]
fn supervision_learns() {
    learns(&Device::cpu(1), supervised(OptimiserChoice::Sgd));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn all_methods_learn_on_cuda() {
    on_cuda(|device| cases().into_iter().for_each(|case| learns(device, case)));
}

/// With LARS and AdamW, biases and norms have no weight decay: a decay that leaves nothing of any
/// weight leaves them.
#[test]
fn biases_and_norms_do_not_decay_with_lars_and_adam_w() {
    for optimiser in [OptimiserChoice::Lars, OptimiserChoice::AdamW] {
        let mut config = classifier(optimiser);
        config.method.name = &methods::AND;
        config.data.shapes_train = 50;
        (config.training.learning_rate, config.training.weight_decay) = (1e-6, 1e6);
        let mut trainer = trainer(&Device::cpu(1), &config, &data(&config));
        trainer.begin().unwrap();
        trainer.advance(Position::default(), 1).unwrap();
        let network = trainer.network();
        let place = network.graph().parameters().iter().position(|p| p.name == "bn1.weight");
        let norm = network.read(Tensors::Values, place.unwrap()).unwrap();
        assert!(norm.iter().all(|w| (w - 1.0).abs() < 1e-2), "{optimiser}: {norm:?}");
    }
}

/// Instance discrimination never looks for neighbours, and in round 0 is what Anchor Neighbourhood
/// Discovery is.
#[test]
fn instance_is_round_0_of_and_in_every_round() {
    let of = |method, rounds| {
        let mut config = tiny(method);
        config.training.rounds = rounds;
        Run::new(&config).whole().1
    };
    let (and, instance) = (of(&methods::AND, 0), of(&methods::INSTANCE, 0));
    assert_eq!((and.weights, and.state), (instance.weights, instance.state));
    assert_eq!(instance.method, "instance");
    let longer = of(&methods::INSTANCE, 1);
    assert!(longer.neighbourhoods().is_none());
    assert_eq!(longer.standing.position.round, 2);
}

/// Few pictures, few epochs.
fn tiny(method: &'static MethodSpec) -> RunConfig {
    let mut config = small(method, [24, 8], 8, 2);
    (config.training.batch, config.training.rounds, config.training.epochs) = (8, 1, 2);
    config
}

/// Anchorhood with a momentum encoder, a predictor and a memory that is filled first.
fn with_all_parts() -> RunConfig {
    let mut config = tiny(&methods::ANCHORHOOD);
    config.method.momentum_rows = true;
    config.method.predictor = true;
    config.discovery.fill = true;
    config
}

fn resumes_to_the_bit(device: &Device, config: &RunConfig) {
    println!("{}", config.method.name);
    let data = data(config);
    let fresh = || trainer(device, config, &data);
    same_from_any_cut(&fresh, &fresh, 2, &[(0, 1, 2), (1, 0, 0)], (2, 0, 0));
}

fn every_one() -> Vec<RunConfig> {
    methods().map(tiny).chain([with_all_parts()]).collect()
}

#[test]
fn every_method_resumes_to_the_bit() {
    // No more at once than there are cores, most likely.
    for some in every_one().chunks(2) {
        beside_each_other(some, resumes_to_the_bit);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn every_method_resumes_to_the_bit_on_cuda() {
    let device = Device::cuda(0, Precision::Bf16).unwrap();
    every_one().iter().for_each(|config| resumes_to_the_bit(&device, config));
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
fn slope_of_the_loss(device: &Device, mut config: RunConfig, part: &str) -> f64 {
    // A task is set before an epoch: it is looked at in its midst.
    let task = !config.method.name.compares_views();
    config.training.batch = if task { 12 } else { 24 };
    // Nothing moves by itself.
    config.training.learning_rate = 1e-30;
    config.training.warm_up = 0.0;
    config.training.weight_decay = 0.0;
    config.method.momentum = 1.0;
    config.discovery.memory_rate = 1e-30;
    let mut trainer = trainer(device, &config, &data(&config));
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
    let slope = |device: &Device, (name, config, part): (String, RunConfig, &str)| {
        let slope = slope_of_the_loss(device, config, part);
        println!("{name} {part}: {slope}");
        assert!((slope - 1.0).abs() < 0.05, "{name} {part}: {slope}");
    };
    let parts = ["", "projector", "predictor"];
    let all = parts.map(|part| ("anchorhood with all parts".into(), with_all_parts(), part));
    let others = [
        (&methods::ANCHORHOOD, &["", "projector"][..]),
        (&methods::SIMCLR, &["", "projector"]),
        (&methods::SIMSIAM, &["predictor"]),
        (&methods::BYOL, &["", "projector", "predictor"]),
        (&methods::NNCLR, &["predictor"]),
        (&methods::DEEPCLUSTER, &["", "classifier"]),
        (&methods::NAT, &[""]),
        (&methods::COUNTING, &[""]),
        (&methods::SPLIT_BRAIN, &["", "ab", "lightness"]),
        (&methods::COLOUR, &[""]),
        (&methods::JIGSAW, &["", "arrangement"]),
        (&methods::CONTEXT, &[""]),
    ];
    let others = others.into_iter().flat_map(|(method, parts)| {
        parts.iter().map(move |part| (method.to_string(), tiny(method), *part))
    });
    let cases: Vec<_> = all.into_iter().chain(others).collect();
    for some in cases.chunks(2) {
        beside_each_other(some.to_vec(), slope);
    }
}

/// DeepCluster's classifier is drawn anew for each epoch, and AdamW begins anew with it: the first
/// step moves every value by the learning rate in every epoch.
#[test]
fn adamw_begins_anew_with_a_classifier_that_is_drawn_anew() {
    let mut config = tiny(&methods::DEEPCLUSTER);
    config.set("training.optimiser", "adamw").unwrap();
    (config.training.learning_rate, config.training.weight_decay) = (0.125, 0.0);
    let (data, device, second) = (data(&config), Device::cpu(1), Position::default().next_epoch(2));
    let weights = |trainer: &mut Trainer, drawn: Option<u64>| {
        let (_, classifier) = trainer.method().networks().swap_remove(1);
        if let Some(seed) = drawn {
            classifier.initialise(seed).unwrap();
        }
        let layer = classifier.graph().find("2").unwrap();
        let weight = classifier.graph().node(layer).parameters[0];
        classifier.read(Tensors::Values, weight).unwrap()
    };
    let mut before = trainer(&device, &config, &data);
    let before = weights(&mut before, Some(config.seed + 1 + 1));
    let mut after = trainer(&device, &config, &data);
    after.begin().unwrap();
    steps(&mut after, Position::default(), second, 2);
    after.advance(second, 1).unwrap();
    let moved = before.iter().zip(weights(&mut after, None)).map(|(old, new)| new - old);
    let moved: Vec<f32> = moved.filter(|moved| *moved != 0.0).collect();
    assert!(moved.len() > 10, "{moved:?}");
    for moved in moved {
        assert!((moved.abs() / 0.125 - 1.0).abs() < 1e-3, "{moved}");
    }
    resumes_to_the_bit(&device, &config);
}

mod long {
    use super::{beside_each_other, cases, learns};

    #[test]
    #[ignore = "long: trains by every method of views and every optimiser"]
    fn all_methods_learn() {
        beside_each_other(cases(), learns);
    }
}
