//! Which pictures become anchors, and when: the sure ones first.

use std::cmp::Ordering;

use anchorhood_engine::{Communicator, Result};

/// How the share of anchors grows over the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curriculum {
    /// Eq. 6: S = r / R in round r of R.
    #[default]
    Linear,
    /// Every picture is an anchor from round 1 on: the paper's variant without a curriculum.
    OneOff,
}

impl Curriculum {
    /// The share of pictures that are anchors in `round`; round 0 has none.
    pub fn share(self, round: usize, rounds: usize) -> f64 {
        match self {
            _ if round == 0 => 0.0,
            Curriculum::OneOff => 1.0,
            Curriculum::Linear if round >= rounds => 1.0,
            Curriculum::Linear => round as f64 / rounds as f64,
        }
    }
}

/// Marks the ⌊N · share⌋ pictures of lowest entropy, of N that are shared out among processes; of
/// equal ones those that come first. NaN counts as the highest. Each process has the entropies of
/// its own pictures, and the marks of these: all are the same as one process's.
pub(crate) fn lowest_entropy(
    together: &Communicator,
    entropy: &[f32],
    pictures: usize,
    share: f64,
) -> Result<Vec<bool>> {
    // 100 · 0.29 is a hair less than 29: what division took away is given back before rounding
    // down.
    let count = (pictures as f64 * share.clamp(0.0, 1.0) * (1.0 + 1e-12)).floor() as usize;
    if count == 0 || count >= pictures {
        return Ok(vec![count >= pictures; entropy.len()]);
    }
    let part = together.part(pictures);
    let all = together.gather_parts(entropy, pictures, 1)?;
    let mut order: Vec<u32> = (0..pictures as u32).collect();
    order.select_nth_unstable_by(count, |a, b| surer(&all, *a, *b));
    let mut marks = vec![false; part.len()];
    for i in order[..count].iter().filter(|i| part.contains(&(**i as usize))) {
        marks[*i as usize - part.start] = true;
    }
    Ok(marks)
}

/// Which of two pictures comes first: the one of lower entropy, then of lower number. What is no
/// number comes last, with infinity.
pub(crate) fn surer(entropy: &[f32], a: u32, b: u32) -> Ordering {
    let key = |i: u32| match entropy[i as usize] {
        e if e.is_nan() => f32::INFINITY,
        e => e,
    };
    key(a).total_cmp(&key(b)).then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_distributed::ThreadRank;

    /// The marks that one process sets, which are those that several set.
    fn lowest(entropy: &[f32], share: f64) -> Vec<bool> {
        let of = |ranks: usize| {
            let parts = ThreadRank::run(ranks, |rank| {
                let together = Communicator::of(rank);
                let part = together.part(entropy.len());
                lowest_entropy(&together, &entropy[part], entropy.len(), share).unwrap()
            });
            parts.concat()
        };
        let whole = of(1);
        for ranks in [2, 3, 7] {
            assert_eq!(of(ranks), whole, "{ranks} ranks");
        }
        whole
    }

    #[test]
    fn shares_over_the_rounds() {
        let shares = |c: Curriculum| [0, 1, 2, 3, 4].map(|r| c.share(r, 4));
        assert_eq!(shares(Curriculum::Linear), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(shares(Curriculum::OneOff), [0.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(Curriculum::Linear.share(0, 0), 0.0);
    }

    #[test]
    fn lowest_first_and_ties_by_index() {
        let entropy = [3.0, 1.0, 2.0, 1.0, 1.0];
        assert_eq!(lowest(&entropy, 0.4), [false, true, false, true, false]);
        assert_eq!(lowest(&entropy, 0.0), [false; 5]);
        assert_eq!(lowest(&entropy, 1.0), [true; 5]);
        assert_eq!(lowest(&[], 0.5), [false; 0]);
    }

    #[test]
    fn not_a_number_is_never_sure() {
        let entropy = [f32::NAN, 9.0, -f32::NAN, 1.0];
        assert_eq!(lowest(&entropy, 0.5), [false, true, false, true]);
        assert_eq!(lowest(&entropy, 0.75), [true, true, false, true]);
    }

    #[test]
    fn whole_shares_are_not_lost_to_rounding() {
        for r in 0..=100 {
            let share = Curriculum::Linear.share(r, 100);
            let chosen = lowest(&[0.0; 100], share);
            assert_eq!(chosen.iter().filter(|c| **c).count(), r);
        }
        let odd = lowest(&[0.0; 10], 0.25);
        assert_eq!(odd.iter().filter(|c| **c).count(), 2);
    }

    /// Against the plain way: sort all, mark the first.
    #[test]
    fn many_with_ties_and_signs() {
        let of = |i: u64| match i % 11 {
            0 => f32::NAN,
            1 => -0.0,
            2 => 0.0,
            3 => -1.5e-39,
            rest => ((i * 7919) % 101) as f32 * 0.01 - 0.3 - rest as f32 * 1e-9,
        };
        let entropy: Vec<f32> = (0..500).map(of).collect();
        let key = |i: &usize| {
            if entropy[*i].is_nan() { f32::INFINITY } else { entropy[*i] }
        };
        let mut order: Vec<usize> = (0..entropy.len()).collect();
        order.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.cmp(b)));
        for count in [1, 45, 46, 47, 250, 460, 499] {
            let mut expected = vec![false; entropy.len()];
            order[..count].iter().for_each(|i| expected[*i] = true);
            let found = lowest(&entropy, count as f64 / 500.0);
            assert_eq!(found, expected, "{count}");
        }
    }
}
