//! Which pictures become anchors, and when: the sure ones first.

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
pub fn lowest_entropy(
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
    let (last, mut equal) = last_chosen(together, entropy, count)?;
    let mark = |e: &f32| {
        let key = sortable(*e);
        let chosen = key < last || (key == last && equal > 0);
        equal -= usize::from(chosen && key == last);
        chosen
    };
    Ok(entropy.iter().map(mark).collect())
}

/// The greatest [`sortable`] entropy that is among the `count` lowest of all processes, and how
/// many of this process's that have it are.
///
/// Found digit by digit, from the highest on: of the pictures that begin with the digits so far,
/// all processes count together how many have which next one.
fn last_chosen(together: &Communicator, entropy: &[f32], count: usize) -> Result<(u32, usize)> {
    let (mut last, mut left) = (0_u32, count);
    for place in (0..4).rev().map(|byte| 8 * byte) {
        let mut counts = [0.0; 256];
        let begin_alike = |key: &u32| (u64::from(*key) ^ u64::from(last)) >> (place + 8) == 0;
        for key in entropy.iter().map(|e| sortable(*e)).filter(begin_alike) {
            counts[(key >> place) as usize % 256] += 1.0;
        }
        together.sum_f64(&mut counts)?;
        for (digit, count) in (0_u32..).zip(counts) {
            if left <= count as usize {
                last |= digit << place;
                break;
            }
            left -= count as usize;
        }
    }
    // `left` of those that have it are chosen: the first, so those of the first processes.
    let here = entropy.iter().filter(|e| sortable(**e) == last).count();
    let mut of_all = vec![0_u64; together.ranks()];
    together.gather(&[here as u64], &mut of_all)?;
    let before: u64 = of_all[..together.rank()].iter().sum();
    Ok((last, left.saturating_sub(before as usize).min(here)))
}

/// A whole number that is ordered as numbers are; what is no number comes last, with infinity.
fn sortable(value: f32) -> u32 {
    let known = if value.is_nan() { f32::INFINITY } else { value };
    match known.to_bits() {
        negative if negative >> 31 == 1 => !negative,
        positive => positive | 1 << 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_ranks::ThreadRank;

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
