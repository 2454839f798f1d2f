//! Approximate search for very many vectors: they are divided into clusters, and only the clusters
//! nearest to a query are looked at (an inverted file, IVF, as faiss calls it).
//!
//! Chosen over graphs (HNSW) by measurement, see `docs/lab/search-serve.md`: it is built in a small
//! fraction of the time, keeps nothing but the centres and an order beside the vectors, and what it
//! misses is told beforehand.

use anchorhood_engine::vectors::Lists;
use anchorhood_storage::random::{Draws, Stream};
use rayon::prelude::*;

use crate::curate::Hit;
use crate::curate::exact::{best_of, nearest, nearest_among};

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
    best_of(found.into_iter().flatten(), k)
}

/// The share of the `k` true nearest that a search in `probes` clusters finds, tried with `queries`
/// of the vectors themselves, by the seed.
pub fn measure_recall(
    lists: &Lists,
    vectors: &[f32],
    dim: usize,
    k: usize,
    queries: usize,
    probes: usize,
    seed: u64,
) -> f64 {
    let n = vectors.len() / dim;
    let draws = Draws::new(seed, Stream::Search, 0, 3);
    let sample = draws.permutation(n);
    let (mut hits, mut asked) = (0, 0);
    for i in sample.into_iter().take(queries) {
        let query = &vectors[i as usize * dim..][..dim];
        let truth = nearest(vectors, dim, query, k);
        let found = nearest_in_lists(lists, vectors, dim, query, k, probes);
        let has = |hit: &&Hit| found.iter().any(|f| f.index == hit.index);
        hits += truth.iter().filter(has).count();
        asked += truth.len();
    }
    hits as f64 / asked.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::Device;
    use anchorhood_engine::vectors::to_unit_length;

    fn clustered(n: usize, dim: usize) -> Vec<f32> {
        let mut vectors = vec![0.0; n * dim];
        Draws::new(1, Stream::Test, 0, 0).fill_symmetric(&mut vectors, 0.2);
        for (i, row) in vectors.chunks_exact_mut(dim).enumerate() {
            row[i % dim] += 1.0;
        }
        to_unit_length(&mut vectors, dim);
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
        assert_eq!(all, 1.0);
        let some = measure_recall(&lists, &vectors, dim, 10, 50, lists.default_probes(), 0);
        assert!(some > 0.8, "{some}");
        let few = measure_recall(&lists, &vectors, dim, 10, 50, 1, 0);
        assert!(few < some, "{few}");
    }
}
