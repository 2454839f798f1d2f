//! Features are judged and used through a map that has their directions count alike; what learns
//! knows nothing of it.

use std::path::Path;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_train::{
    Checkpoint, ConfigError, RunConfig, RunDir, Standing, TrainError, Trainer, TrainingSet, judge,
    methods, train,
};

use crate::common::{Run, data, judged, small, trainer, unlabelled};

fn config(whiten: f64) -> RunConfig {
    let mut config = small(&methods::SIMCLR, [240, 200], 16, 4);
    (config.training.batch, config.training.epochs) = (30, 3);
    config.evaluation.k = 9;
    config.method.whiten = whiten;
    config
}

fn run(data: &Dataset, config: &RunConfig) -> (Checkpoint, Option<f64>) {
    let (told, saved) = Run::on(&Device::cpu(1), config, data.clone()).whole();
    (saved, judged(&told).last().copied())
}

#[test]
fn the_checkpoint_is_judged_as_its_run_was_and_learns_the_same_without() {
    let with = config(0.5);
    let data = data(&with);
    let (whitened, told) = run(&data, &with);
    let (plain, told_plain) = run(&data, &config(0.0));
    let learnt = plain.weights.len();
    assert_eq!(whitened.weights[..learnt], plain.weights[..]);
    assert_eq!(whitened.weights.len(), learnt + 2);
    assert_eq!((&whitened.heads, &whitened.state), (&plain.heads, &plain.state));
    for (checkpoint, told, layer) in
        [(&whitened, told, "normalise"), (&plain, told_plain, "avgpool")]
    {
        assert_eq!(checkpoint.judged_layer, layer);
        let of = &checkpoint.config;
        let judged = judge(&Device::cpu(1), checkpoint, Path::new("last"), of, &data).unwrap();
        // A network sums in another order than the examiner.
        let apart = (judged.trained.top1 - told.unwrap()).abs();
        assert!(apart <= 0.011, "{layer}: {judged:?} and {told:?}");
    }
    assert_ne!(told, told_plain);
}

/// Without labels nothing is judged, and features are whitened all the same.
#[test]
fn pictures_without_labels_are_whitened_too() {
    let config = config(0.5);
    let labelled = data(&config);
    let (with, _) = run(&labelled, &config);
    let (without, _) = run(&unlabelled(&labelled), &config);
    assert!(with.weights == without.weights);
}

/// Features cannot be left as they are because nobody asked the pictures how many there are.
#[test]
fn a_configuration_that_does_not_know_its_features_is_refused() {
    let config = config(0.5);
    let data = data(&config);
    let folder = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(folder.path(), "run", &config).unwrap();
    let device = Device::cpu(1);
    let refused = train(&device, &mut dir, &data, &mut |_| {}, &false.into()).unwrap_err();
    let TrainError::Config(ConfigError::Setting { setting, .. }) = &refused else {
        panic!("{refused}");
    };
    assert_eq!(*setting, "network.features");
    assert!(refused.is_usage());
    assert!(!dir.checkpoint("last").exists(), "nothing was learnt");
    let mut trainer = Trainer::new(&device, &config, TrainingSet::of(&data)).unwrap();
    trainer.whiten().unwrap_err();
}

#[test]
fn it_is_kept_where_a_run_goes_on() {
    let config = config(0.5);
    let data = data(&config);
    let fresh = || trainer(&Device::cpu(1), &config, &data);
    let mut first = fresh();
    let before = first.checkpoint(Standing::default()).unwrap();
    assert_eq!(before.judged_layer, "avgpool");
    first.whiten().unwrap();
    let saved = first.checkpoint(Standing::default()).unwrap();
    let mut second = fresh();
    second.restore(saved.clone(), Path::new("last")).unwrap();
    assert!(second.checkpoint(Standing::default()).unwrap() == saved);
    second.restore(before.clone(), Path::new("last")).unwrap();
    assert!(second.checkpoint(Standing::default()).unwrap() == before);
}
