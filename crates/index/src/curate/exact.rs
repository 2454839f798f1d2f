//! The nearest vectors to one query, by looking at all of them.
//!
//! A device's `scan` is made for many queries at once; for one, reading the vectors is all the
//! work, so they are read once, in blocks, by all threads of the current rayon pool.

use anchorhood_engine::vectors::{dot, dot_products};
use pulp::Arch;
use rayon::prelude::*;

/// Vectors a thread looks at before it takes more.
const BLOCK: usize = 2048;

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Which vector.
    pub index: usize,
    /// Its similarity to the query.
    pub similarity: f32,
}

/// The `k` rows of `vectors` (rows of `dim` values) most similar to `query`, most similar first; of
/// equal ones the lower index first. Fewer where there are fewer.
pub fn nearest(vectors: &[f32], dim: usize, query: &[f32], k: usize) -> Vec<Hit> {
    nearest_where(vectors, dim, query, k, &|_| true)
}

/// The same among the rows that are wanted alone.
pub fn nearest_where(
    vectors: &[f32],
    dim: usize,
    query: &[f32],
    k: usize,
    wanted: &(dyn Fn(usize) -> bool + Sync),
) -> Vec<Hit> {
    assert_eq!(query.len(), dim, "values of the query");
    let blocks = vectors.par_chunks(BLOCK * dim).enumerate();
    let best = blocks.map(|(block, rows)| {
        let mut similarities = vec![0.0; rows.len() / dim];
        dot_products(rows, dim, query, &mut similarities);
        let hits = (block * BLOCK..).zip(similarities);
        let hits = hits.filter(|(index, _)| wanted(*index));
        best_of(hits.map(|(index, similarity)| Hit { index, similarity }), k)
    });
    let all: Vec<Vec<Hit>> = best.collect();
    best_of(all.into_iter().flatten(), k)
}

/// The same among the rows named by `members` alone.
pub(crate) fn nearest_among(
    vectors: &[f32],
    dim: usize,
    query: &[f32],
    members: impl Iterator<Item = u32>,
    k: usize,
) -> Vec<Hit> {
    let arch = Arch::new();
    let hit = |index: u32| {
        let row = &vectors[index as usize * dim..][..dim];
        Hit { index: index as usize, similarity: arch.dispatch(|| dot(row, query)) }
    };
    best_of(members.map(hit), k)
}

/// The first `k` by similarity, then index.
pub(crate) fn best_of(hits: impl Iterator<Item = Hit>, k: usize) -> Vec<Hit> {
    let mut best: Vec<Hit> = Vec::with_capacity(2 * k + 1);
    let mut least = f32::NEG_INFINITY;
    for hit in hits {
        // What is no number must not become a neighbour of everything.
        if k == 0 || hit.similarity.is_nan() || hit.similarity < least {
            continue;
        }
        best.push(hit);
        if best.len() > 2 * k {
            shrink(&mut best, k);
            least = best[k - 1].similarity;
        }
    }
    shrink(&mut best, k);
    best
}

fn shrink(best: &mut Vec<Hit>, k: usize) {
    let order = |a: &Hit, b: &Hit| {
        let similar = b.similarity.total_cmp(&a.similarity);
        similar.then(a.index.cmp(&b.index))
    };
    best.sort_unstable_by(order);
    best.truncate(k);
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::{Device, Scan};
    use anchorhood_storage::random::{Draws, Stream};

    fn drawn(n: usize, dim: usize, item: u64) -> Vec<f32> {
        let mut values = vec![0.0; n * dim];
        Draws::new(3, Stream::Test, 0, item).fill_symmetric(&mut values, 1.0);
        values
    }

    /// The device's scan, tested against plain loops elsewhere, is the judge.
    #[test]
    fn as_the_devices_scan() {
        for (n, dim, k) in [(1, 3, 1), (5000, 37, 20), (4097, 128, 5), (10, 8, 50)] {
            let keys = drawn(n, dim, 0);
            let query = drawn(1, dim, 1);
            let device = Device::cpu(1);
            let upload = |v: &[f32]| device.upload(v).unwrap();
            let scan = Scan { dim, entropy_temperature: None, k, same: false };
            let found = device.scan(&upload(&query), &upload(&keys), &scan, &|_| {}).unwrap();
            let found = found.neighbours;
            let hits = nearest(&keys, dim, &query, k);
            assert_eq!(hits.len(), k.min(n));
            for (i, hit) in hits.iter().enumerate() {
                assert_eq!(hit.index, found.indices[i] as usize);
                assert!((hit.similarity - found.similarities[i]).abs() < 1e-4);
            }
            let all = nearest_among(&keys, dim, &query, 0..n as u32, k);
            assert_eq!(all, hits);
        }
    }

    #[test]
    fn equal_ones_by_index_and_nonsense_never() {
        let vectors = [1.0, 0.5, 1.0, f32::NAN, 1.0];
        let hits = nearest(&vectors, 1, &[1.0], 4);
        let indices: Vec<usize> = hits.iter().map(|h| h.index).collect();
        assert_eq!(indices, [0, 2, 4, 1]);
        assert!(nearest(&vectors, 1, &[1.0], 0).is_empty());
        let odd = nearest_where(&vectors, 1, &[1.0], 4, &|i| i != 0);
        let indices: Vec<usize> = odd.iter().map(|h| h.index).collect();
        assert_eq!(indices, [2, 4, 1]);
    }
}
