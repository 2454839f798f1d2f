//! Each optimiser that can be chosen learns, with the parameter groups of its paper.

use anchorhood_engine::{Device, Precision, Tensors};
use anchorhood_models::Architecture;
use anchorhood_train::{MethodChoice, OptimiserChoice, Preset, RunConfig, Trainer, TrainingSet};

use crate::common::beside::beside_each_other;
use crate::common::whole_run::whole_run;

/// A classifier, which learns within a few epochs.
fn small(optimiser: OptimiserChoice) -> RunConfig {
    let mut config = Preset::Quick.config("shapes");
    config.network.architecture = Architecture::ResNet18;
    config.method.name = MethodChoice::Supervised;
    config.data.shapes_train = 300;
    config.data.shapes_test = 400;
    config.data.size = Some(16);
    config.augmentation.crop_scale = (0.7, 1.0);
    config.augmentation.hue = 0.1;
    config.augmentation.grey = 0.0;
    config.network.width = 4;
    config.training.batch = 30;
    config.training.rounds = 0;
    config.training.epochs = 40;
    config.training.milestones = vec![0.9];
    config.evaluation.every = 40;
    config.training.optimiser = optimiser;
    (config.training.learning_rate, config.training.weight_decay) = match optimiser {
        OptimiserChoice::Sgd => (0.1, 5e-4),
        OptimiserChoice::Lars => (2.0, 1e-4),
        OptimiserChoice::AdamW => (5e-3, 1e-2),
    };
    config.evaluation.k = 20;
    config
}

/// The loss falls, and features are better than the untrained network's.
fn learns(device: &Device, optimiser: OptimiserChoice) {
    let (losses, [untrained, trained], _) = whole_run(device, &small(optimiser));
    println!("{optimiser}: {untrained} before, {trained} after; {losses:?}");
    assert!(losses[39] < losses[0] - 0.3, "{optimiser}: {losses:?}");
    assert!(trained > untrained + 0.1, "{optimiser}: {untrained} before, {trained} after");
}

const ALL: [OptimiserChoice; 3] =
    [OptimiserChoice::Sgd, OptimiserChoice::Lars, OptimiserChoice::AdamW];

#[test]
fn all_learn_on_the_cpu() {
    beside_each_other(ALL, learns);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn all_learn_on_cuda() {
    let device = Device::cuda(0, Precision::Bf16).unwrap();
    for optimiser in ALL {
        learns(&device, optimiser);
    }
}

/// With LARS and AdamW, biases and norms have no weight decay: a decay that leaves nothing of any
/// weight leaves them.
#[test]
fn biases_and_norms_do_not_decay_with_lars_and_adam_w() {
    let device = Device::cpu(1);
    for optimiser in [OptimiserChoice::Lars, OptimiserChoice::AdamW] {
        let mut config = small(optimiser);
        config.method.name = MethodChoice::And;
        config.data.shapes_train = 50;
        (config.training.learning_rate, config.training.weight_decay) = (1e-6, 1e6);
        let data = anchorhood_data::open("shapes", &config.data.load_options(0)).unwrap();
        let set = TrainingSet::of(&data);
        let mut trainer = Trainer::new(&device, &config, set).unwrap();
        trainer.begin().unwrap();
        trainer.advance(Default::default(), 1).unwrap();
        let network = trainer.network();
        let parameters = network.graph().parameters().to_vec();
        let place = parameters.iter().position(|p| p.name == "bn1.weight");
        let norm = network.read(Tensors::Values, place.unwrap()).unwrap();
        assert!(norm.iter().all(|w| (w - 1.0).abs() < 1e-2), "{optimiser}: {norm:?}");
    }
}
