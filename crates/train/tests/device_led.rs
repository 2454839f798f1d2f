//! A device that leads its steps trains as the host would lead them, wherever the pictures lie. Skipped, saying so, where
//! there is no GPU.

use anchorhood_data::{LoadOptions, open};
use anchorhood_engine::{Cpu, Cuda, Device, Precision, Sgd};
use anchorhood_train::{Lead, Position, Preset, RunConfig, Trainer, TrainingSet};

fn config() -> RunConfig {
    let mut config = Preset::Quick.config("shapes");
    config.network.width = 8;
    config.network.features = 32;
    config.training.batch = 32;
    config.seed = 3;
    config
}

fn set(config: &RunConfig) -> TrainingSet {
    let options = LoadOptions {
        shapes_train: 230,
        shapes_test: 10,
        ..config.data.load_options(config.seed)
    };
    TrainingSet::of(&open("shapes", &options).unwrap())
}

/// The losses of three epochs, a discovery before the last, and the memory after.
fn losses<D: Device>(device: &D, lead: Lead, at_once: usize) -> (Vec<f64>, Vec<f32>) {
    let config = config();
    let mut trainer = Trainer::new(device, &config, set(&config)).unwrap();
    trainer.begin_led(Position::default(), lead).unwrap();
    let batches = trainer.batches();
    let mut all = vec![];
    for epoch in 0..3 {
        if epoch == 2 {
            trainer.discover(1, &|_| {}).unwrap();
        }
        let mut batch = 0;
        while batch < batches {
            let some = trainer
                .advance((epoch, batch), at_once, &Sgd::new(0.01))
                .unwrap();
            batch += some.len();
            all.extend(some);
        }
    }
    let memory = trainer.features().1.values(device).unwrap();
    (all, memory)
}

fn gpu(precision: Precision) -> Option<Cuda> {
    if !Cuda::available() {
        eprintln!("skipped: no GPU");
        return None;
    }
    Some(Cuda::new(0, precision).unwrap())
}

#[test]
fn the_device_leads_as_the_host_does() {
    for precision in [Precision::F32, Precision::Bf16] {
        let Some(cuda) = gpu(precision) else { return };
        let (led, memory) = losses(&cuda, Lead::Any, 5);
        let (by_host, host_memory) = losses(&cuda, Lead::Host, 1);
        assert_eq!(led.len(), 21);
        assert_eq!(led.len(), by_host.len());
        for (step, (a, b)) in led.iter().zip(&by_host).enumerate() {
            assert!(
                (a - b).abs() <= 1e-6 * b.abs(),
                "{precision}, step {step}: {a}, {b}"
            );
        }
        assert!(memory == host_memory, "{precision}: the memory differs");
    }
}

#[test]
fn how_many_steps_at_once_and_where_pictures_lie_changes_nothing() {
    let Some(cuda) = gpu(Precision::Bf16) else {
        return;
    };
    let expected = losses(&cuda, Lead::Any, 1);
    assert!(losses(&cuda, Lead::Any, 100) == expected);
    assert!(losses(&cuda, Lead::Within(0), 3) == expected);
}

/// The first batch and its loss. From fresh weights rounding grows too fast to compare more; trained weights are followed
/// for fifty steps by the test of the golden trajectory.
#[test]
fn the_first_loss_is_the_cpus() {
    for (precision, tolerance) in [(Precision::F32, 1e-5), (Precision::Bf16, 1e-2)] {
        let Some(cuda) = gpu(precision) else { return };
        let (on_gpu, _) = losses(&cuda, Lead::Any, 7);
        let (on_cpu, _) = losses(&Cpu::new(2), Lead::Any, 1);
        for (step, (a, b)) in on_gpu.iter().zip(&on_cpu).take(1).enumerate() {
            assert!(
                (a - b).abs() <= tolerance * b.abs(),
                "{precision}, step {step}: {a}, {b}"
            );
        }
    }
}
