//! Approximate search for very many vectors: they are divided into clusters, and only the clusters nearest to a query are
//! looked at (an inverted file, IVF, as faiss calls it).
//!
//! Chosen over graphs (HNSW) by measurement, see `docs/benchmarks.md`: it is built in a small fraction of the time, keeps
//! nothing but the centres and an order beside the vectors, and what it misses is told beforehand.

use anchorhood_discover::kmeans;
use anchorhood_engine::Device;
use anchorhood_random::{Draws, Stream};
use rayon::prelude::*;

use crate::exact::{nearest, nearest_among};
use crate::{Hit, SearchError};

/// Clusters are made from so many vectors for each; more change little.
const LEARN_FROM: usize = 64;

/// Vectors by cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Lists {
    /// The clusters' centres, one after the other.
    pub centres: Vec<f32>,
    /// Where each cluster begins among the members, and the end.
    pub starts: Vec<u32>,
    /// Which vectors, cluster after cluster.
    pub members: Vec<u32>,
}

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

impl Lists {
    /// Divides vectors of unit length into about √n clusters.
    pub fn build(
        device: &Device,
        vectors: &[f32],
        dim: usize,
        seed: u64,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Lists, SearchError> {
        let n = vectors.len() / dim;
        let count = ((n as f64).sqrt() as usize).clamp(1, 4096);
        let draws = Draws::new(seed, Stream::Search, 0, 2);
        let mut sample = draws.permutation(n);
        sample.truncate(LEARN_FROM * count);
        let rows: Vec<f32> = sample
            .iter()
            .flat_map(|i| vectors[*i as usize * dim..][..dim].iter().copied())
            .collect();
        let centres = kmeans(device, &rows, dim, count, seed, progress)?.centres;
        let scan = anchorhood_engine::Scan {
            dim,
            entropy_temperature: None,
            k: 1,
            same: false,
        };
        let (queries, keys) = (device.upload(vectors)?, device.upload(&centres)?);
        let of = device.scan(&queries, &keys, &scan, &|_| {})?;
        Ok(Lists::from_parts(centres, count, &of.neighbours.indices))
    }

    fn from_parts(centres: Vec<f32>, count: usize, of: &[u32]) -> Lists {
        let mut starts = vec![0_u32; count + 1];
        for cluster in of {
            starts[*cluster as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut members = vec![0; of.len()];
        for (i, cluster) in of.iter().enumerate() {
            let place = &mut next[*cluster as usize];
            members[*place as usize] = i as u32;
            *place += 1;
        }
        Lists {
            centres,
            starts,
            members,
        }
    }

    /// How many clusters.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Clusters looked at unless told otherwise: one in thirty-two, at least sixteen.
    pub fn default_probes(&self) -> usize {
        (self.len() / 32).max(16).min(self.len())
    }

    /// The `k` most similar vectors in the `probes` clusters nearest to the query.
    pub fn nearest(
        &self,
        vectors: &[f32],
        dim: usize,
        query: &[f32],
        k: usize,
        probes: usize,
    ) -> Vec<Hit> {
        let clusters = nearest(&self.centres, dim, query, probes);
        let found: Vec<Vec<Hit>> = clusters
            .par_iter()
            .map(|c| {
                let range = self.starts[c.index] as usize..self.starts[c.index + 1] as usize;
                let members = self.members[range].iter().copied();
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
    pub fn measure(
        &self,
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
            let found = self.nearest(vectors, dim, query, k, probes);
            let has = |hit: &&Hit| found.iter().any(|f| f.index == hit.index);
            hits += truth.iter().filter(has).count();
            asked += truth.len();
            tried += 1;
        }
        Recall {
            share: hits as f64 / asked.max(1) as f64,
            k,
            queries: tried,
            probes,
        }
    }

    /// Whether the parts fit each other and `n` vectors of `dim` values: what a file may claim otherwise.
    pub(crate) fn fits(&self, n: usize, dim: usize) -> bool {
        let count = self.starts.len().saturating_sub(1);
        count > 0
            && self.centres.len() == count * dim
            && self.members.len() == n
            && self.starts[0] == 0
            && self.starts.is_sorted()
            && self.starts[count] as usize == n
            && self.members.iter().all(|m| (*m as usize) < n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let all = lists.measure(&vectors, dim, 10, 50, lists.len(), 0);
        assert_eq!(all.share, 1.0);
        let some = lists.measure(&vectors, dim, 10, 50, lists.default_probes(), 0);
        assert!(some.share > 0.8, "{some:?}");
        let few = lists.measure(&vectors, dim, 10, 50, 1, 0);
        assert!(few.share < some.share, "{few:?}");
    }
}
