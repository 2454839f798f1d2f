//! The learning rate's scheduler, over the epochs of a round: constant, then multiplied down at milestones. Every round begins anew.

use crate::{Position, TrainingConfig};

impl TrainingConfig {
    /// The learning rate in an epoch (from 0) of any round.
    ///
    /// A milestone is a share of the round's epochs, so that 0.6 and 0.8 are the authors' epochs 120 and 160 of 200
    /// however long a round is.
    pub fn rate_in(&self, epoch: usize) -> f64 {
        let passed = |m: &&f64| epoch as f64 >= (*m * self.epochs as f64 - 1e-9).ceil();
        let passed = self.milestones.iter().filter(passed).count();
        self.learning_rate * self.decay_factor.powi(passed as i32)
    }
}

impl TrainingConfig {
    /// The learning rate of every step of a position's epoch.
    pub(crate) fn rates(&self, at: Position, steps: usize) -> Vec<f32> {
        vec![self.rate_in(at.epoch) as f32; steps]
    }
}

#[cfg(test)]
mod tests {
    use crate::Preset;

    #[test]
    fn two_hundred_epochs_fall_at_120_and_160() {
        let training = Preset::Paper.config("cifar10").training;
        let close = |epoch, rate: f64| (training.rate_in(epoch) - rate).abs() < 1e-12;
        assert!(close(0, 0.03) && close(119, 0.03));
        assert!(close(120, 0.003) && close(159, 0.003));
        assert!(close(160, 0.0003) && close(199, 0.0003));
    }

    #[test]
    fn milestones_scale_with_the_epochs() {
        let mut training = Preset::Paper.config("cifar10").training;
        training.epochs = 5;
        let falls: Vec<bool> = (1..5)
            .map(|e| training.rate_in(e) < training.rate_in(e - 1))
            .collect();
        assert_eq!(falls, [false, false, true, true]);
    }

    #[test]
    fn no_milestones_no_falls() {
        let mut training = Preset::Paper.config("cifar10").training;
        training.milestones.clear();
        assert_eq!(training.rate_in(0), training.rate_in(199));
    }
}
