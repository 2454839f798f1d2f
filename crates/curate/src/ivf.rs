//! Approximate search for very many vectors: they are divided into clusters, and only the clusters
//! nearest to a query are looked at (an inverted file, IVF, as faiss calls it).
//!
//! Chosen over graphs (HNSW) by measurement, see `docs/benchmarks.md`: it is built in a small
//! fraction of the time, keeps nothing but the centres and an order beside the vectors, and what it
//! misses is told beforehand.

use anchorhood_discover::Lists;
use anchorhood_random::{Draws, Stream};
use rayon::prelude::*;

use crate::Hit;
use crate::exact::{nearest, nearest_among};

/// How much of the truth an approximate search finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recall {
    /// Share of the true nearest that were found.
    pub share: f64,
    /// Neighbours asked for.
    pub k: usize,
    /// Queries tried.
    pub queries: usize,
    /// Clusters looked at for each.
    pub probes: usize,
}

/// The `k` most similar vectors in the `probes` clusters nearest to the query.
pub fn nearest_in_lists(
    lists: &Lists,
    vectors: &[f32],
    dim: usize,
    query: &[f32],
    k: usize,
    probes: usize,
) -> Vec<Hit> {
    let clusters = nearest(&lists.centres, dim, query, probes);
    let found: Vec<Vec<Hit>> = clusters
        .par_iter()
        .map(|c| {
            let members = lists.members_of(c.index).iter().copied();
            nearest_among(vectors, dim, query, members, k)
        })
        .collect();
    let mut all = found.concat();
    let order = |a: &Hit, b: &Hit| {
        let similar = b.similarity.total_cmp(&a.similarity);
        similar.then(a.index.cmp(&b.index))
    };
    all.sort_unstable_by(order);
    all.truncate(k);
    all
}

/// Tries `queries` of the vectors themselves, by the seed, against a search of all.
pub fn measure_recall(
    lists: &Lists,
    vectors: &[f32],
    dim: usize,
    k: usize,
    queries: usize,
    probes: usize,
    seed: u64,
) -> Recall {
    let n = vectors.len() / dim;
    let draws = Draws::new(seed, Stream::Search, 0, 3);
    let sample = draws.permutation(n);
    let (mut hits, mut asked, mut tried) = (0, 0, 0);
    for i in sample.into_iter().take(queries) {
        let query = &vectors[i as usize * dim..][..dim];
        let truth = nearest(vectors, dim, query, k);
        let found = nearest_in_lists(lists, vectors, dim, query, k, probes);
        let has = |hit: &&Hit| found.iter().any(|f| f.index == hit.index);
        hits += truth.iter().filter(has).count();
        asked += truth.len();
        tried += 1;
    }
    Recall { share: hits as f64 / asked.max(1) as f64, k, queries: tried, probes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::Device;

    fn clustered(n: usize, dim: usize) -> Vec<f32> {
        let mut vectors = vec![0.0; n * dim];
        Draws::new(1, Stream::Test, 0, 0).fill_symmetric(&mut vectors, 0.2);
        for (i, row) in vectors.chunks_exact_mut(dim).enumerate() {
            row[i % dim] += 1.0;
            let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
            row.iter_mut().for_each(|v| *v /= length);
        }
        vectors
    }

    #[test]
    fn all_clusters_are_the_truth_and_a_few_find_most_of_it() {
        let (n, dim) = (4000, 32);
        let vectors = clustered(n, dim);
        let lists = Lists::build(&Device::cpu(1), &vectors, dim, 0, &mut |_| {}).unwrap();
        assert!(lists.fits(n, dim) && !lists.fits(n - 1, dim) && !lists.fits(n, dim + 1));
        assert_eq!(lists.len(), 63);
        let all = measure_recall(&lists, &vectors, dim, 10, 50, lists.len(), 0);
        assert_eq!(all.share, 1.0);
        let some = measure_recall(&lists, &vectors, dim, 10, 50, lists.default_probes(), 0);
        assert!(some.share > 0.8, "{some:?}");
        let few = measure_recall(&lists, &vectors, dim, 10, 50, 1, 0);
        assert!(few.share < some.share, "{few:?}");
    }
}
