//! How much one division of pictures into clusters says of another.
//!
//! ```text
//! NMI(A, B) = I(A; B) / √(H(A) · H(B))
//! ```
//!
//! 1 where each is the other under other names, 0 where one says nothing of the other, or is a
//! single cluster.

use std::collections::BTreeMap;

/// The normalised mutual information of two divisions: for each picture its cluster in one and in
/// the other.
pub fn mutual_information(a: &[u32], b: &[u32]) -> f64 {
    let pairs = || a.iter().zip(b);
    let of_both = entropy(pairs());
    let (of_a, of_b) = (entropy(pairs().map(|(a, _)| a)), entropy(pairs().map(|(_, b)| b)));
    match of_a > 0.0 && of_b > 0.0 {
        true => ((of_a + of_b - of_both) / (of_a * of_b).sqrt()).clamp(0.0, 1.0),
        false => 0.0,
    }
}

/// The entropy of how often each thing is there.
fn entropy<T: Ord>(things: impl Iterator<Item = T>) -> f64 {
    let (mut counts, mut n) = (BTreeMap::new(), 0.0);
    for thing in things {
        *counts.entry(thing).or_insert(0.0) += 1.0;
        n += 1.0;
    }
    let part = |count: &f64| -count / n * (count / n).ln();
    counts.values().map(part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third is scikit-learn's normalized_mutual_info_score(…, average_method="geometric").
    #[test]
    fn the_same_nothing_and_something() {
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got}");
        close(mutual_information(&[0, 0, 1, 2], &[5, 5, 3, 0]), 1.0);
        close(mutual_information(&[0, 0, 1, 1], &[0, 1, 0, 1]), 0.0);
        let (a, b) = ([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]);
        close(mutual_information(&a, &b), 0.521_110_519_64);
        close(mutual_information(&a, &[0; 6]), 0.0);
        close(mutual_information(&[], &[]), 0.0);
    }
}
