//! The k best keys of one query, from keys that come in the order of their index.

use std::cmp::Ordering;

/// Keeps up to 2k candidates and prunes to the best k when full: constant work per candidate, for
/// any k.
pub(super) struct Best {
    k: usize,
    found: Vec<(f32, u32)>,
    threshold: f32,
}

impl Best {
    pub(super) fn new(k: usize) -> Self {
        Best {
            k,
            found: Vec::with_capacity((2 * k).min(1024)),
            threshold: if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY },
        }
    }

    /// Only a greater similarity can still be among the best; an equal one has a higher index.
    pub(super) fn threshold(&self) -> f32 {
        self.threshold
    }

    /// Takes a key above the threshold.
    pub(super) fn push(&mut self, similarity: f32, key: u32) {
        self.found.push((similarity, key));
        if self.found.len() == self.k {
            let worst = self.found.iter().fold(similarity, |w, f| w.min(f.0));
            self.threshold = self.threshold.max(worst);
        } else if self.found.len() == 2 * self.k {
            self.prune();
        }
    }

    /// Passes over keys that are worse than k others known elsewhere: those below `least`.
    pub(super) fn expect(&mut self, least: f32) {
        self.threshold = self.threshold.max(least.next_down());
    }

    /// Takes in the best of keys that all come later.
    pub(super) fn add(&mut self, later: Best) {
        for (similarity, key) in later.sorted() {
            if similarity > self.threshold {
                self.push(similarity, key);
            }
        }
    }

    fn prune(&mut self) {
        if self.found.len() <= self.k {
            return;
        }
        let (_, last, _) = self.found.select_nth_unstable_by(self.k - 1, order);
        self.threshold = last.0;
        self.found.truncate(self.k);
    }

    /// The best, best first; of equal ones the lower index first.
    pub(super) fn sorted(mut self) -> Vec<(f32, u32)> {
        self.prune();
        self.found.sort_unstable_by(order);
        self.found
    }
}

/// Nothing that passed a threshold is NaN; 0 and −0 are equal, as `total_cmp` would not have it.
fn order(a: &(f32, u32), b: &(f32, u32)) -> Ordering {
    let similarity = b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal);
    similarity.then(a.1.cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_sorting_everything() {
        let values: Vec<f32> = (0..500u32).map(|i| (i * 7919 % 97) as f32).collect();
        for k in [0, 1, 2, 3, 50, 499, 500] {
            let mut best = Best::new(k);
            for (i, v) in values.iter().enumerate() {
                if *v > best.threshold() {
                    best.push(*v, i as u32);
                }
            }
            let mut parts = Best::new(k);
            for (p, part) in values.chunks(30).enumerate() {
                let mut best = Best::new(k);
                for (v, i) in part.iter().zip(30 * p as u32..) {
                    if *v > best.threshold() {
                        best.push(*v, i);
                    }
                }
                parts.add(best);
            }
            let mut all: Vec<(f32, u32)> = values.iter().copied().zip(0..).collect();
            all.sort_by(order);
            all.truncate(k);
            assert_eq!(best.sorted(), all, "k = {k}");
            assert_eq!(parts.sorted(), all, "k = {k}, in parts");
        }
    }
}
