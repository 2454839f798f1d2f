//! The first fifty losses of a training run from fresh weights, in bf16 against f32, at the width
//! people train. (f32 on a GPU follows the CPU for fifty steps in the test of the golden
//! trajectory. From fresh weights rounding grows quickly in narrow networks: at width 16 even two
//! f32 devices part by 2e-2.)

use anchorhood_data::{LoadOptions, open};
use anchorhood_engine::{Device, Precision};
use anchorhood_train::{Position, Preset, Trainer, TrainingSet};

const STEPS: usize = 50;
/// Of the mean over all steps: what rounding parts grows from step to step (on an H200 to 2e-2 at
/// the end, 4e-3 in the mean).
const TOLERANCE: f64 = 1e-2;

fn losses(precision: Precision, seed: u64) -> Vec<f64> {
    let mut config = Preset::Paper.config("shapes");
    config.seed = seed;
    let options = LoadOptions {
        shapes_train: STEPS * config.training.batch,
        shapes_test: 10,
        ..config.data.load_options(seed)
    };
    let set = TrainingSet::of(&open("shapes", &options).unwrap());
    let device = Device::cuda(0, precision).unwrap();
    let mut trainer = Trainer::new(&device, &config, set).unwrap();
    trainer.begin().unwrap();
    let mut losses = vec![];
    while losses.len() < STEPS {
        let at = Position { batch: losses.len(), ..Position::default() };
        losses.extend(trainer.advance(at, STEPS).unwrap());
    }
    losses
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn bf16_follows_f32_on_cuda() {
    for seed in [0, 1] {
        let expected = losses(Precision::F32, seed);
        let found = losses(Precision::Bf16, seed);
        let off: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / b).collect();
        let mean = off.iter().sum::<f64>() / STEPS as f64;
        assert!(mean <= TOLERANCE, "seed {seed}: off by {mean:.1e} in the mean, {off:.3?}");
    }
}
