//! Which groups do pictures form? Around so many centres, or wherever pictures are each other's
//! neighbours. Either way a group has its most typical pictures first.

use anchorhood_engine::vectors::kmeans;
use anchorhood_engine::{Device, Scan};

use crate::SearchError;
use crate::curate::graph::Sets;

/// A group of pictures, the most typical first, each with its similarity to the group's centre.
pub type Cluster = Vec<(usize, f32)>;

/// Which pictures are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphOptions {
    /// Neighbours of each picture.
    pub neighbours: usize,
    /// Least similarity of two that are joined.
    pub above: f32,
    /// Smaller groups are left out.
    pub least: usize,
}

impl Default for GraphOptions {
    fn default() -> Self {
        GraphOptions { neighbours: 10, above: 0.8, least: 3 }
    }
}

/// Every vector of unit length (rows of `dim` values) in one of `k` clusters, the largest first.
pub fn kmeans_clusters(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    k: usize,
    seed: u64,
) -> Result<Vec<Cluster>, SearchError> {
    let found = kmeans(device, vectors, dim, k, seed, &mut |_| {})?;
    let members = found.members().into_iter().filter(|g| !g.is_empty());
    let with_similarity =
        |group: Vec<usize>| group.iter().map(|i| (*i, found.similarity[*i])).collect();
    let mut clusters: Vec<Cluster> = members.map(with_similarity).collect();
    clusters.sort_by(|a, b| b.len().cmp(&a.len()).then(a[0].0.cmp(&b[0].0)));
    Ok(clusters)
}

/// The connected components of a graph of vectors of unit length: two are joined where each is among
/// the other's nearest and they are similar enough. The largest group first; the rest is left alone.
/// `progress` is told how many are compared.
pub fn graph_clusters(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    options: &GraphOptions,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Cluster>, SearchError> {
    let n = vectors.len() / dim;
    let k = options.neighbours.min(n.saturating_sub(1));
    let scan = Scan { dim, entropy_temperature: None, k, same: true };
    let rows = device.upload(vectors)?;
    let found = device.scan(&rows, &rows, &scan, progress)?.neighbours;
    let mut sets = Sets::new(n);
    for i in 0..n {
        for (j, similarity) in found.of(i).iter().zip(found.similarities_of(i)) {
            let j = *j as usize;
            if *similarity >= options.above && found.of(j).contains(&(i as u32)) {
                sets.join(i, j);
            }
        }
    }
    let around = |group| around_centre(vectors, dim, group);
    Ok(sets.groups(options.least).into_iter().map(around).collect())
}

/// A group's members by their similarity to its mean.
fn around_centre(vectors: &[f32], dim: usize, group: Vec<usize>) -> Cluster {
    let mut centre = vec![0.0; dim];
    let row = |i: usize| &vectors[i * dim..][..dim];
    for i in &group {
        centre.iter_mut().zip(row(*i)).for_each(|(c, v)| *c += v);
    }
    let length = centre.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
    let similarity = |i: usize| -> f32 {
        let products = row(i).iter().zip(&centre).map(|(a, b)| a * b);
        products.sum::<f32>() / length
    };
    let mut group: Cluster = group.into_iter().map(|i| (i, similarity(i))).collect();
    group.sort_by(|a, b| b.1.total_cmp(&a.1));
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_hold_together_and_the_lonely_are_alone() {
        // Angles: a chain of small steps, a pair, a loner.
        let angles = [0.0_f32, 0.1, 0.2, 0.3, 2.0, 2.05, 4.0];
        let vectors: Vec<f32> = angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect();
        let groups = |least| {
            let options = GraphOptions { neighbours: 2, above: 0.99, least };
            let found = graph_clusters(&Device::cpu(1), &vectors, 2, &options, &|_| {}).unwrap();
            let members = |mut group: Cluster| {
                group.sort_by_key(|(i, _)| *i);
                group.into_iter().map(|(i, _)| i).collect::<Vec<_>>()
            };
            found.into_iter().map(members).collect::<Vec<_>>()
        };
        assert_eq!(groups(1), [vec![0, 1, 2, 3], vec![4, 5], vec![6]]);
        assert_eq!(groups(2).len(), 2);
    }
}
