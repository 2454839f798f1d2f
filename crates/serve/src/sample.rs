//! Some of many pictures, taken evenly: what takes too long for all of them is done for these.

use std::borrow::Cow;

/// Products of numbers, at most, where all are compared with all: 62,500 pictures with vectors of
/// 128.
const MOST_PRODUCTS: usize = 500_000_000_000;

/// How many vectors of this length may be compared with each other.
pub(crate) fn most_compared(dim: usize) -> usize {
    (MOST_PRODUCTS / dim.max(1)).isqrt()
}

/// At most `most` of `n` numbers, ascending.
pub(crate) fn evenly(n: usize, most: usize) -> Vec<usize> {
    let count = n.min(most);
    (0..count).map(|i| i * n / count).collect()
}

/// The vectors of some pictures: where they lie, where it is all of them.
pub(crate) fn rows_of<'a>(vectors: &'a [f32], dim: usize, chosen: &[usize]) -> Cow<'a, [f32]> {
    if chosen.len() * dim == vectors.len() {
        return Cow::Borrowed(vectors);
    }
    let rows = chosen.iter().flat_map(|i| &vectors[i * dim..][..dim]);
    rows.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_some_are_taken_evenly() {
        assert_eq!(most_compared(128), 62_500);
        assert_eq!(evenly(3, 5), [0, 1, 2]);
        assert_eq!(evenly(10, 4), [0, 2, 5, 7]);
        assert!(evenly(0, 4).is_empty());
        let vectors = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(*rows_of(&vectors, 1, &evenly(4, 2)), [1.0, 3.0]);
        assert!(matches!(rows_of(&vectors, 2, &[0, 1]), Cow::Borrowed(_)));
    }
}
