//! Which pictures become anchors, and when: the sure ones first.

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

/// Marks the ⌊N · share⌋ pictures of lowest entropy; of equal ones those that come first. NaN counts as the highest.
pub fn lowest_entropy(entropy: &[f32], share: f64) -> Vec<bool> {
    let n = entropy.len();
    // 100 · 0.29 is a hair less than 29: what division took away is given back before rounding down.
    let count = (n as f64 * share.clamp(0.0, 1.0) * (1.0 + 1e-12)).floor() as usize;
    let mut chosen = vec![count >= n; n];
    if count == 0 || count >= n {
        return chosen;
    }
    let known = |i: u32| Some(entropy[i as usize]).filter(|e| !e.is_nan());
    let key = |i: &u32| (known(*i).unwrap_or(f32::INFINITY), *i);
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.select_nth_unstable_by(count - 1, |a, b| {
        let ((a, i), (b, j)) = (key(a), key(b));
        a.total_cmp(&b).then(i.cmp(&j))
    });
    for i in &order[..count] {
        chosen[*i as usize] = true;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            lowest_entropy(&entropy, 0.4),
            [false, true, false, true, false]
        );
        assert_eq!(lowest_entropy(&entropy, 0.0), [false; 5]);
        assert_eq!(lowest_entropy(&entropy, 1.0), [true; 5]);
        assert_eq!(lowest_entropy(&[], 0.5), [false; 0]);
    }

    #[test]
    fn not_a_number_is_never_sure() {
        let entropy = [f32::NAN, 9.0, -f32::NAN, 1.0];
        assert_eq!(lowest_entropy(&entropy, 0.5), [false, true, false, true]);
        assert_eq!(lowest_entropy(&entropy, 0.75), [true, true, false, true]);
    }

    #[test]
    fn whole_shares_are_not_lost_to_rounding() {
        for r in 0..=100 {
            let share = Curriculum::Linear.share(r, 100);
            let chosen = lowest_entropy(&[0.0; 100], share);
            assert_eq!(chosen.iter().filter(|c| **c).count(), r);
        }
        let odd = lowest_entropy(&[0.0; 10], 0.25);
        assert_eq!(odd.iter().filter(|c| **c).count(), 2);
    }
}
