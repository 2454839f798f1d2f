//! Did it work? Told without labels, while a run trains: how often it is asked, which checkpoint
//! the answers prefer, and when they say that training has gone wrong. Figures are those of
//! [`LabelFree`](crate::evaluation::LabelFree).
//!
//! Everything here is counted in pictures and evaluations, never in seconds: a run that was stopped
//! and goes on, on whatever machine, decides as it would have.

use serde::{Deserialize, Serialize};

use crate::{Position, TrainingConfig};

/// What a verdict takes of a run's time, at most: a hundredth is worth knowing whether the others
/// are.
const SHARE: f64 = 0.03;
/// A step takes a view forwards, and backwards twice.
const PASSES_OF_A_STEP: f64 = 3.0;

/// Evaluations from one verdict to the next, where a verdict looks at `seen` pictures and a run
/// trains on `trained` between two evaluations, all views counted.
pub(crate) fn evaluations_between(seen: usize, trained: usize) -> usize {
    let most = SHARE * PASSES_OF_A_STEP * trained.max(1) as f64;
    ((seen as f64 / most).ceil() as usize).max(1)
}

/// Whether a run may end after this epoch because of verdicts. Not in its first half, where
/// features may be worse for a while than those of a network that has just begun; and where the
/// learning rate rises again with every round, only with a round, when it is low as it was at the
/// end of those before.
pub(crate) fn may_stop(training: &TrainingConfig, at: Position) -> bool {
    let (rounds, epochs) = (training.rounds, training.epochs);
    let (done, all) = (at.epochs_before(epochs) + 1, (rounds + 1) * epochs);
    let anneals = training.one_schedule || rounds == 0 || at.epoch + 1 == epochs;
    2 * done >= all && done < all && anneals
}

/// The checkpoint that verdicts prefer: the last one that was not clearly worse than the best.
///
/// Between two that are about as good the later one is taken, since figures without labels tell a
/// wrong way from a right one, and not the better of two right ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// After which epoch, and that epoch's round.
    pub round: usize,
    /// The epoch, from 0.
    pub epoch: usize,
    /// The best score of any verdict so far.
    pub best: f64,
    /// Verdicts since, in a row, that were clearly worse than the best.
    pub worse: usize,
}

impl Chosen {
    /// How much worse than the best is clearly worse, as a share of it.
    pub const CLEARLY: f64 = 0.05;

    /// Takes up a verdict after an epoch; whether that epoch is preferred to all before.
    pub(crate) fn hear(chosen: &mut Option<Chosen>, at: Position, score: f64) -> bool {
        let best = chosen.map_or(score, |c| c.best.max(score));
        if let Some(c) = chosen
            && score < best - Chosen::CLEARLY * best.abs()
        {
            c.worse += 1;
            return false;
        }
        *chosen = Some(Chosen { round: at.round, epoch: at.epoch, best, worse: 0 });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Preset, methods};

    #[test]
    fn a_verdict_is_asked_for_as_often_as_it_costs_little() {
        // 512 pictures with two copies each: of an epoch of 50,000, and of five epochs of 2,000.
        assert_eq!(evaluations_between(1536, 50_000), 1);
        assert_eq!(evaluations_between(1536, 10_000), 2);
        assert_eq!(evaluations_between(48, 16), 34);
        assert_eq!(evaluations_between(9, 0), 100);
    }

    #[test]
    fn a_run_stops_late_and_where_its_learning_rate_is_low() {
        let mut training = Preset::Quick.config_for("cifar10", &methods::AND).training;
        (training.rounds, training.epochs) = (2, 4);
        let stops = |training: &TrainingConfig| {
            let mut at = Position::default();
            let mut found = vec![];
            while at.round <= training.rounds {
                found.extend(may_stop(training, at).then_some((at.round, at.epoch)));
                at = at.next_epoch(training.epochs);
            }
            found
        };
        assert_eq!(stops(&training), [(1, 3)]);
        training.rounds = 0;
        assert_eq!(stops(&training), [(0, 1), (0, 2)]);
        (training.rounds, training.one_schedule) = (1, true);
        assert_eq!(stops(&training), [(0, 3), (1, 0), (1, 1), (1, 2)]);
    }

    #[test]
    fn the_later_of_two_is_preferred_and_a_clear_fall_is_counted() {
        let mut chosen = None;
        let scores = [0.1, 0.5, 0.49, 0.4, 0.3, 0.48, 0.47, 0.6];
        let preferred = [true, true, true, false, false, true, false, true];
        let worse = [0, 0, 0, 1, 2, 0, 1, 0];
        for (i, score) in scores.into_iter().enumerate() {
            let at = Position { round: 1, epoch: i, batch: 0 };
            assert_eq!(Chosen::hear(&mut chosen, at, score), preferred[i], "{i}");
            let now = chosen.unwrap();
            assert_eq!(now.worse, worse[i], "{i}");
            let last = (0..=i).rev().find(|j| preferred[*j]).unwrap();
            assert_eq!((now.round, now.epoch), (1, last));
        }
        assert_eq!(chosen.unwrap().best, 0.6);
    }
}
