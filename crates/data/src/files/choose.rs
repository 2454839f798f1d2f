//! Which pictures are taken: what is held out for testing or validation, and what a limit leaves. A
//! function of the seed and of how many there are, so that a folder and its packed copy give the
//! same.

use std::collections::BTreeSet;

use anchorhood_storage::random::{Draws, Stream};

use crate::LoadOptions;

/// For what a random choice is made; the place of an epoch in its draws.
enum Purpose {
    HeldOut = 0,
    Train = 1,
    Test = 2,
    Validation = 3,
}

/// What is there to choose from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// Training pictures.
    pub train: usize,
    /// Test pictures, where the set has a test part.
    pub test: Option<usize>,
    /// Whether to hold out a share for testing.
    pub holds_out: bool,
    /// Whether a limit takes the first ones (the set is in no order) rather than some by the seed
    /// (it is sorted).
    pub shuffled: bool,
}

/// What is taken, as ascending numbers. Held-out pictures are numbered among the training pictures.
#[derive(Debug, PartialEq)]
pub(crate) struct Choice {
    /// Of the training pictures, to train on.
    pub train: Vec<usize>,
    /// To test on: of the test part, or of the training pictures where some are held out.
    pub test: Option<Vec<usize>>,
    /// Whether `test` numbers training pictures.
    pub held_out: bool,
}

impl Offer {
    /// Chooses by the options.
    pub fn choose(self, options: &LoadOptions) -> Choice {
        let holds_out =
            self.holds_out && self.test.is_none() && options.held_out > 0.0 && self.train >= 2;
        let (train, test) = match holds_out {
            true => hold_out(self.train, options),
            false => ((0..self.train).collect(), self.test.map(|n| (0..n).collect())),
        };
        Choice {
            train: self.limited(train, options.seed, Purpose::Train, options.limit),
            test: test
                .filter(|_| options.validation.is_none())
                .map(|test| self.limited(test, options.seed, Purpose::Test, options.test_limit)),
            held_out: holds_out,
        }
    }

    /// As many of them as the limit lets.
    fn limited(
        self,
        all: Vec<usize>,
        seed: u64,
        purpose: Purpose,
        limit: Option<usize>,
    ) -> Vec<usize> {
        match limit.filter(|&limit| limit < all.len()) {
            Some(limit) if self.shuffled => all[..limit].into(),
            Some(limit) => draw(seed, purpose, limit, all.len()).iter().map(|&i| all[i]).collect(),
            None => all,
        }
    }
}

/// A share of `n` pictures goes to a test part; never all, and at least one.
fn hold_out(n: usize, options: &LoadOptions) -> (Vec<usize>, Option<Vec<usize>>) {
    let held = (n as f64 * f64::from(options.held_out)).round() as usize;
    let held = held.clamp(1, n - 1);
    let (train, test) = apart(options.seed, Purpose::HeldOut, held, n);
    (train, Some(test))
}

/// Of `of` training pictures those that remain, and the `n` to validate on.
pub(crate) fn validation(n: usize, of: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    apart(seed, Purpose::Validation, n, of)
}

/// The numbers below `of` without `n` that are drawn, and those.
fn apart(seed: u64, purpose: Purpose, n: usize, of: usize) -> (Vec<usize>, Vec<usize>) {
    let drawn = draw(seed, purpose, n, of);
    (0..of).partition(|i| !drawn.contains(i))
}

/// `n` of `0..of`, by the seed, in ascending order.
fn draw(seed: u64, purpose: Purpose, n: usize, of: usize) -> BTreeSet<usize> {
    let order = Draws::new(seed, Stream::Split, purpose as u64, 0).permutation(of);
    order.into_iter().take(n).map(|i| i as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Offer = Offer { train: 50, test: None, holds_out: true, shuffled: false };

    #[test]
    fn held_out_pictures_and_the_rest_are_everything_once() {
        let choice = OFFER.choose(&LoadOptions::default());
        let mut all = [choice.train, choice.test.unwrap()].concat();
        assert!(choice.held_out);
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }

    /// They are still held out of training, so that a network that was validated can be tested on
    /// them.
    #[test]
    fn where_there_is_validation_test_pictures_are_left_alone() {
        let options = LoadOptions { validation: Some(5), ..LoadOptions::default() };
        let tested = OFFER.choose(&LoadOptions::default());
        let choice = OFFER.choose(&options);
        assert_eq!((&choice.train, choice.test), (&tested.train, None));
    }

    #[test]
    fn a_limit_takes_the_first_of_a_shuffled_set_and_some_of_a_sorted_one() {
        let options =
            LoadOptions { limit: Some(5), test_limit: Some(100), ..LoadOptions::default() };
        let offer = Offer { test: Some(9), ..OFFER };
        let shuffled = Offer { shuffled: true, ..offer };
        assert_eq!(shuffled.choose(&options).train, [0, 1, 2, 3, 4]);
        let drawn = offer.choose(&options);
        assert_eq!((drawn.train.len(), &offer.choose(&options)), (5, &drawn));
        assert!(drawn.train.is_sorted() && drawn.train != [0, 1, 2, 3, 4]);
        assert_ne!(offer.choose(&LoadOptions { seed: 1, ..options }).train, drawn.train);
        assert_eq!(drawn.test.unwrap().len(), 9);
    }
}
