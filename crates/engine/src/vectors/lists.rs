//! Vectors by cluster (an inverted file, IVF, as faiss calls it): whoever looks for those near a
//! vector looks at a few clusters.
//!
//! Kept by hand: k-means and the scan of rows are here already, and an index keeps its lists in a
//! mapped file; crates for nearest neighbours keep an index of their own in memory, or bind C++.

use crate::{Device, Result, Scan};
use anchorhood_storage::random::{Draws, Stream};

use crate::vectors::{KmeansError, kmeans};

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

impl Lists {
    /// About √n clusters for n vectors.
    pub fn clusters_for(n: usize) -> usize {
        ((n as f64).sqrt() as usize).clamp(1, 4096)
    }

    /// How many of n vectors their centres are made from.
    pub fn learns_from(n: usize) -> usize {
        (LEARN_FROM * Lists::clusters_for(n)).min(n)
    }

    /// Divides vectors of unit length into about √n clusters.
    pub fn build(
        device: &Device,
        vectors: &[f32],
        dim: usize,
        seed: u64,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Lists, KmeansError> {
        let n = vectors.len() / dim;
        let draws = Draws::new(seed, Stream::Search, 0, 2);
        let mut sample = draws.permutation(n);
        sample.truncate(Lists::learns_from(n));
        let rows: Vec<f32> = sample
            .iter()
            .flat_map(|i| vectors[*i as usize * dim..][..dim].iter().copied())
            .collect();
        let count = Lists::clusters_for(n);
        let centres = kmeans(device, &rows, dim, count, seed, progress)?.centres;
        Ok(Lists::around(device, centres, vectors, dim)?)
    }

    /// Vectors, each with the centre most similar to it.
    pub fn around(
        device: &Device,
        centres: Vec<f32>,
        vectors: &[f32],
        dim: usize,
    ) -> Result<Lists> {
        let scan = Scan { dim, entropy_temperature: None, k: 1, same: false };
        let (queries, keys) = (device.upload(vectors)?, device.upload(&centres)?);
        let of = device.scan(&queries, &keys, &scan, &|_| {})?;
        let count = centres.len() / dim;
        Ok(Lists::from_parts(centres, count, &of.neighbours.indices))
    }

    /// Each cluster's vectors in their order, from the cluster of each.
    pub(crate) fn from_parts(centres: Vec<f32>, count: usize, of: &[u32]) -> Lists {
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
        Lists { centres, starts, members }
    }

    /// How many clusters.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vectors of a cluster.
    pub fn members_of(&self, cluster: usize) -> &[u32] {
        &self.members[self.starts[cluster] as usize..self.starts[cluster + 1] as usize]
    }

    /// Clusters looked at unless told otherwise: one in thirty-two, at least sixteen.
    pub fn default_probes(&self) -> usize {
        (self.len() / 32).max(16).min(self.len())
    }

    /// Whether the parts fit each other and `n` vectors of `dim` values: what a file may claim
    /// otherwise.
    pub fn fits(&self, n: usize, dim: usize) -> bool {
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
