//! A step with a finite loss may still leave weights that are no numbers. A checkpoint never holds
//! them.

use anchorhood_engine::Device;
use anchorhood_train::{Checkpoint, Event, RunConfig, TrainError};

use crate::common::{Run, data, tiny, unlabelled};

/// Two epochs of one step each. The second one's rate is beyond any f32, so its loss is still that
/// of good weights.
fn overflowing() -> RunConfig {
    let mut config = tiny();
    (config.training.batch, config.training.rounds, config.training.epochs) = (16, 0, 2);
    config.training.milestones = vec![0.5];
    config.training.learning_rate = 10.0;
    config.training.decay_factor = 3e38;
    config
}

/// Trains until it cannot go on; why, and how many epochs ended, all with a finite loss.
fn diverges(run: &mut Run) -> (TrainError, usize) {
    let epochs = std::sync::atomic::AtomicUsize::new(0);
    let outcome = run.go_on_until(|event| {
        if let Event::EpochEnded(e) = event {
            assert!(e.loss.is_finite());
            epochs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        false
    });
    (outcome.unwrap_err(), epochs.into_inner())
}

/// Whether the weights are noticed because nothing can be judged with them, or when they are to be
/// kept; and by a method without a memory.
#[test]
fn the_last_good_checkpoint_stays() {
    let config = overflowing();
    let labelled = data(&config);
    for (config, data) in [
        (config.clone(), labelled.clone()),
        (config.clone(), unlabelled(&labelled)),
        (config.supervised(10), labelled),
    ] {
        let mut run = Run::on(&Device::cpu(1), &config, data);
        let last = run.dir.checkpoint("last");
        let (error, epochs) = diverges(&mut run);
        assert_eq!(epochs, 2, "both losses were finite");
        let message = error.to_string();
        assert!(matches!(error, TrainError::Diverged { rate, .. } if rate > 1e38), "{message}");
        for part in ["round 0, epoch 2", "last.safetensors"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let kept = Checkpoint::load(&last).unwrap(); // or it would say which number is none
        assert_eq!(kept.standing.position.epoch, 1);
        assert!(!run.dir.checkpoint("round-0").exists());

        // It is what the run goes on from, to the same end.
        let bytes = std::fs::read(&last).unwrap();
        let (again, epochs) = diverges(&mut run);
        assert!(matches!(again, TrainError::Diverged { .. }));
        assert_eq!(epochs, 1);
        assert!(std::fs::read(&last).unwrap() == bytes);
    }
}

#[test]
fn of_a_first_epoch_nothing_is_kept() {
    let mut config = overflowing();
    config.training.learning_rate = 3e38;
    for config in [config.clone(), config.supervised(10)] {
        let mut run = Run::new(&config);
        let (error, epochs) = diverges(&mut run);
        assert_eq!(epochs, 1);
        let message = error.to_string();
        assert!(message.contains("nothing was saved before"), "{message}");
        assert!(!run.dir.checkpoint("last").exists());
    }
}
