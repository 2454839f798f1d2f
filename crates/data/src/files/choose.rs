//! Which pictures are taken: what is held out for testing, and what a limit leaves. A function of the seed and of how many
//! there are, so that a folder and its packed copy give the same.

use std::collections::BTreeSet;

use anchorhood_random::{Draws, Stream};

use crate::LoadOptions;

/// For what a random choice is made; the place of an epoch in its draws.
enum Purpose {
    HeldOut = 0,
    Train = 1,
    Test = 2,
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
    /// Whether a limit takes the first ones (the set is in no order) rather than some by the seed (it is sorted).
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
            false => (
                (0..self.train).collect(),
                self.test.map(|n| (0..n).collect()),
            ),
        };
        let limited = |all, purpose, limit| match self.shuffled {
            true => first(all, limit),
            false => some(all, options.seed, purpose, limit),
        };
        Choice {
            train: limited(train, Purpose::Train, options.limit),
            test: test.map(|test| limited(test, Purpose::Test, options.test_limit)),
            held_out: holds_out,
        }
    }
}

/// A share of `n` pictures goes to a test part; never all, and at least one.
fn hold_out(n: usize, options: &LoadOptions) -> (Vec<usize>, Option<Vec<usize>>) {
    let held = (n as f64 * f64::from(options.held_out)).round() as usize;
    let held = draw(options.seed, Purpose::HeldOut, held.clamp(1, n - 1), n);
    let (test, train) = (0..n).partition(|i| held.contains(i));
    (train, Some(test))
}

fn first(mut all: Vec<usize>, limit: Option<usize>) -> Vec<usize> {
    all.truncate(limit.unwrap_or(usize::MAX));
    all
}

fn some(all: Vec<usize>, seed: u64, purpose: Purpose, limit: Option<usize>) -> Vec<usize> {
    match limit.filter(|&limit| limit < all.len()) {
        Some(limit) => {
            let kept = draw(seed, purpose, limit, all.len());
            kept.into_iter().map(|i| all[i]).collect()
        }
        None => all,
    }
}

/// `n` of `0..of`, by the seed, in ascending order.
fn draw(seed: u64, purpose: Purpose, n: usize, of: usize) -> BTreeSet<usize> {
    let order = Draws::new(seed, Stream::Split, purpose as u64, 0).permutation(of);
    order.into_iter().take(n).map(|i| i as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Offer = Offer {
        train: 50,
        test: None,
        holds_out: true,
        shuffled: false,
    };

    #[test]
    fn held_out_pictures_and_the_rest_are_everything_once() {
        let choice = OFFER.choose(&LoadOptions::default());
        let mut all = [choice.train, choice.test.unwrap()].concat();
        assert!(choice.held_out);
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn a_limit_takes_the_first_of_a_shuffled_set_and_some_of_a_sorted_one() {
        let options = LoadOptions {
            limit: Some(5),
            test_limit: Some(100),
            ..LoadOptions::default()
        };
        let offer = Offer {
            test: Some(9),
            ..OFFER
        };
        let shuffled = Offer {
            shuffled: true,
            ..offer
        };
        assert_eq!(shuffled.choose(&options).train, [0, 1, 2, 3, 4]);
        let drawn = offer.choose(&options);
        assert_eq!(drawn.train.len(), 5);
        assert!(drawn.train.is_sorted() && drawn.train != [0, 1, 2, 3, 4]);
        assert_eq!(drawn.test.unwrap().len(), 9);
    }
}
