//! The learning rate's scheduler: by steps, multiplied down at milestones, or a cosine down to
//! zero; after a warm-up in which it rises, if there is one. A schedule belongs to a round, and
//! every round begins anew, or one spans the whole run.

use crate::{Position, ScheduleChoice, TrainingConfig};

/// The share of a schedule that a warm-up takes at most, where the epochs are not the user's own.
const WARM_UP: f64 = 0.1;

impl TrainingConfig {
    /// Sets the epochs of a round, and shortens a warm-up that would take more than a tenth of its
    /// schedule then, and a time in which a model is frozen to the end.
    pub fn set_epochs(&mut self, epochs: usize) {
        self.epochs = epochs;
        let (_, all) = self.place(Position::default());
        self.warm_up = self.warm_up.min(WARM_UP * all as f64);
        let whole_run = (self.rounds + 1) * epochs;
        self.freeze_epochs = self.freeze_epochs.min(whole_run - 1);
    }

    /// The learning rate in an epoch (from 0) of a round, as events tell it: that of the epoch's
    /// middle, since a warm-up begins at 0.
    pub fn rate_at(&self, at: Position) -> f64 {
        let (epoch, epochs) = self.place(at);
        self.rate_in(epoch as f64 + 0.5, epochs)
    }

    /// The learning rate of every step of a position's epoch.
    pub(crate) fn rates(&self, at: Position, steps: usize) -> Vec<f32> {
        let (epoch, epochs) = self.place(at);
        let within = |step| epoch as f64 + step as f64 / steps as f64;
        let rate = |step| self.rate_in(within(step), epochs) as f32;
        (0..steps).map(rate).collect()
    }

    /// The epoch in its schedule, and how many that has.
    fn place(&self, at: Position) -> (usize, usize) {
        if self.one_schedule {
            (at.epochs_before(self.epochs), (self.rounds + 1) * self.epochs)
        } else {
            (at.epoch, self.epochs)
        }
    }

    /// The learning rate after so many epochs of a schedule, whole or begun.
    ///
    /// A milestone is a share of the epochs, so that 0.6 and 0.8 are the authors' epochs 120 and
    /// 160 of 200 however long a schedule is, and it is passed at the beginning of an epoch.
    fn rate_in(&self, epoch: f64, epochs: usize) -> f64 {
        if epoch < self.warm_up {
            return self.learning_rate * epoch / self.warm_up;
        }
        match self.schedule {
            ScheduleChoice::Steps => {
                let passed = |m: &&f64| epoch.floor() >= (*m * epochs as f64 - 1e-9).ceil();
                let passed = self.milestones.iter().filter(passed).count();
                self.learning_rate * self.decay_factor.powi(passed as i32)
            }
            ScheduleChoice::Cosine => {
                let falling = (epochs as f64 - self.warm_up).max(f64::MIN_POSITIVE);
                let share = ((epoch - self.warm_up) / falling).min(1.0);
                self.learning_rate * 0.5 * (1.0 + (std::f64::consts::PI * share).cos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Position, Preset, ScheduleChoice, TrainingConfig};

    fn rate(training: &TrainingConfig, epoch: usize) -> f64 {
        training.rate_at(Position { epoch, ..Position::default() })
    }

    #[test]
    fn rates_fall_at_milestones_however_many_epochs_there_are() {
        let mut training = Preset::Paper.config("cifar10").training;
        for (epoch, expected) in
            [(0, 0.03), (119, 0.03), (120, 0.003), (159, 0.003), (160, 0.0003), (199, 0.0003)]
        {
            assert!((rate(&training, epoch) - expected).abs() < 1e-12, "{epoch}");
        }
        training.epochs = 5;
        let falls: Vec<bool> =
            (1..5).map(|e| rate(&training, e) < rate(&training, e - 1)).collect();
        assert_eq!(falls, [false, false, true, true]);
        training.milestones.clear();
        assert_eq!(rate(&training, 0), rate(&training, 4));
    }

    #[test]
    fn a_cosine_rises_then_falls_to_zero_step_by_step() {
        let mut training = Preset::Paper.config("cifar10").training;
        training.schedule = ScheduleChoice::Cosine;
        (training.rounds, training.epochs, training.warm_up) = (0, 10, 2.0);
        let at = |epoch| Position { epoch, ..Position::default() };
        let all: Vec<f32> = (0..10).flat_map(|e| training.rates(at(e), 4)).collect();
        assert_eq!(all[0], 0.0);
        assert!((all[4] - 0.015).abs() < 1e-8, "half way up after one epoch");
        assert!((all[8] - 0.03).abs() < 1e-8);
        assert!((all[24] - 0.015).abs() < 1e-8, "half way down");
        assert!(all[..8].is_sorted() && all[8..].is_sorted_by(|a, b| a >= b));
        assert!(all[39] > 0.0 && all[39] < 1e-4);
        assert_eq!(training.rate_at(at(0)) as f32, all[2], "what is told");
    }

    #[test]
    fn a_warm_up_is_a_tenth_of_a_short_schedule() {
        let mut training = Preset::Paper.config("cifar10").training;
        (training.rounds, training.warm_up) = (4, 10.0);
        training.set_epochs(200);
        assert_eq!((training.epochs, training.warm_up), (200, 10.0));
        training.set_epochs(50);
        assert_eq!(training.warm_up, 5.0);
        (training.warm_up, training.one_schedule) = (10.0, true);
        training.set_epochs(50);
        assert_eq!(training.warm_up, 10.0, "of 250 epochs");
    }

    #[test]
    fn one_schedule_spans_the_rounds() {
        let mut training = Preset::Paper.config("cifar10").training;
        (training.rounds, training.epochs, training.one_schedule) = (4, 2, true);
        let at = |round| Position { round, ..Position::default() };
        assert_eq!(training.rate_at(at(2)), 0.03);
        assert!((training.rate_at(at(3)) - 0.003).abs() < 1e-12);
        training.one_schedule = false;
        assert_eq!(training.rate_at(at(4)), 0.03);
    }
}
