//! k-means on the sphere: clusters around centres, by cosine similarity.
//!
//! Each vector belongs to the most similar centre, each centre is the mean of its vectors at unit
//! length, in turn until nothing moves. The first centres are drawn as k-means++ draws them: each
//! with a probability that grows with its squared distance from those before, the best of a few
//! draws. A cluster that runs empty is given the vector that its own centre represents worst.
//!
//! Where several processes work together each has some of the vectors, and learns of these alone:
//! sums of clusters are put together in rank order, so all find the same centres, and those of one
//! process but for rounding.

use crate::{Communicator, Device, Error, Scan};
use anchorhood_storage::random::{Draws, Stream};
use rayon::prelude::*;

use crate::vectors::Lists;
use crate::vectors::dot::dot_products;
use crate::vectors::shared_rows::SharedRows;

/// Beyond this, vectors hardly move any more.
const MOST_ROUNDS: usize = 50;
/// k-means++ looks at so many vectors for each centre at most; a sample does as well as all.
const SEEDS_FROM: usize = 200;
/// Candidates for each first centre, as in scikit-learn.
const CANDIDATES: usize = 4;
/// A sum of vectors shorter than this has no direction.
const LEAST_LENGTH: f64 = 1e-12;

/// Why there are no clusters.
#[derive(Debug, thiserror::Error)]
pub enum KmeansError {
    /// So many clusters of so many vectors cannot be.
    #[error("{clusters} clusters of {vectors} pictures cannot be; give between 1 and {vectors}")]
    Count {
        /// Clusters that were asked for.
        clusters: usize,
        /// Vectors, one for each picture.
        vectors: usize,
    },
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] Error),
}

/// A division of vectors into clusters; of several processes, of this one's.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// The cluster of each vector.
    pub of: Vec<u32>,
    /// Each vector's similarity to its centre.
    pub similarity: Vec<f32>,
    /// The centres, of unit length, one after the other.
    pub centres: Vec<f32>,
    /// Rounds it took.
    pub rounds: usize,
}

impl Clusters {
    /// The members of each cluster, the most typical first.
    pub fn members(&self) -> Vec<Vec<usize>> {
        let count = self.of.iter().max().map_or(0, |m| *m as usize + 1);
        let mut members = vec![vec![]; count];
        for (i, cluster) in self.of.iter().enumerate() {
            members[*cluster as usize].push(i);
        }
        for list in &mut members {
            list.sort_by(|a, b| self.similarity[*b].total_cmp(&self.similarity[*a]));
        }
        members
    }
}

/// Divides vectors of unit length into `k` clusters; the seed decides where they begin. `progress`
/// hears of each round.
pub fn kmeans(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    k: usize,
    seed: u64,
    progress: &mut dyn FnMut(usize),
) -> Result<Clusters, KmeansError> {
    kmeans_within(MOST_ROUNDS, device, vectors, dim, k, seed, progress)
}

/// The same in so many rounds at most.
pub fn kmeans_within(
    most_rounds: usize,
    device: &Device,
    vectors: &[f32],
    dim: usize,
    k: usize,
    seed: u64,
    progress: &mut dyn FnMut(usize),
) -> Result<Clusters, KmeansError> {
    let together = device.communicator();
    let all = SharedRows::new(together, vectors, dim)?;
    let n = all.len();
    if k == 0 || k > n {
        return Err(KmeansError::Count { clusters: k, vectors: n });
    }
    let mut centres = first_centres(&all, dim, k, seed)?;
    together.broadcast(&mut centres, 0)?;
    let queries = device.upload(vectors)?;
    let mut of = vec![u32::MAX; vectors.len() / dim];
    for round in 1.. {
        let keys = device.upload(&centres)?;
        let scan = Scan { dim, entropy_temperature: None, k: 1, same: false };
        let found = device.scan(&queries, &keys, &scan, &|_| {})?.neighbours;
        let moved = of.iter().zip(&found.indices).filter(|(a, b)| a != b);
        let mut moved = [moved.count() as f64];
        together.sum_f64(&mut moved)?;
        of = found.indices;
        let similarity = found.similarities;
        progress(round);
        // One in ten thousand that still changes its mind is not worth another look at all.
        if moved[0] as usize <= n / 10_000 || round >= most_rounds {
            return Ok(Clusters { of, similarity, centres, rounds: round });
        }
        let sums = sums(vectors, dim, k, &of);
        centres = means(together, &all, sums, dim, &similarity)?;
    }
    unreachable!("the rounds end")
}

/// k-means++ on a sample.
fn first_centres(all: &SharedRows, dim: usize, k: usize, seed: u64) -> Result<Vec<f32>, Error> {
    let draws = Draws::new(seed, Stream::Search, 0, 0);
    let mut sample = draws.permutation(all.len());
    sample.truncate((SEEDS_FROM * k).clamp(10_000, 50_000).max(k));
    let rows = all.some(sample.iter().map(|i| *i as usize))?;
    let luck = Draws::new(seed, Stream::Search, 0, 1);
    let mut centres = rows[..dim].to_vec();
    let mut apart = vec![f32::INFINITY; sample.len()];
    closer(&mut apart, &rows, dim, 0);
    for number in 1..k {
        let total: f64 = apart.iter().map(|a| f64::from(*a)).sum();
        let drawn = (0..CANDIDATES).map(|try_| {
            let word = luck.word((number * CANDIDATES + try_) as u64);
            let mut left = f64::from(word) / 2f64.powi(32) * total;
            let at = apart.iter().position(|a| {
                left -= f64::from(*a);
                left < 0.0
            });
            let at = at.unwrap_or(number % sample.len());
            let mut then = apart.clone();
            closer(&mut then, &rows, dim, at);
            let total: f64 = then.iter().map(|a| f64::from(*a)).sum();
            (total, at, then)
        });
        // Of a few, the one after which all vectors are nearest to some centre: a bad draw would
        // not be undone later.
        let best = drawn.min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, at, then)) = best {
            centres.extend_from_slice(&rows[at * dim..][..dim]);
            apart = then;
        }
    }
    Ok(centres)
}

/// How far each row is from the nearest centre, once row `at` is one too: half the squared
/// distance.
fn closer(apart: &mut [f32], rows: &[f32], dim: usize, at: usize) {
    let centre = &rows[at * dim..][..dim];
    let blocks = apart.par_chunks_mut(1024).zip(rows.par_chunks(1024 * dim));
    blocks.for_each(|(apart, rows)| {
        let mut similar = vec![0.0; apart.len()];
        dot_products(rows, dim, centre, &mut similar);
        for (a, s) in apart.iter_mut().zip(similar) {
            *a = a.min((1.0 - s).max(0.0));
        }
    });
}

/// The sum of each cluster's vectors, and after it how many they are. Each is added up in the
/// vectors' order, by whichever thread.
fn sums(vectors: &[f32], dim: usize, k: usize, of: &[u32]) -> Vec<f64> {
    let lists = Lists::from_parts(vec![], k, of);
    let mut sums = vec![0.0; k * (dim + 1)];
    let clusters = sums.par_chunks_exact_mut(dim + 1).enumerate();
    clusters.for_each(|(cluster, sum)| {
        let members = lists.members_of(cluster);
        for i in members {
            let row = &vectors[*i as usize * dim..][..dim];
            for (sum, v) in sum.iter_mut().zip(row) {
                *sum += f64::from(*v);
            }
        }
        sum[dim] = members.len() as f64;
    });
    sums
}

/// The mean of each cluster's vectors at unit length, from each process's [`sums`]; clusters
/// without one, empty or cancelling out, are given the vectors that their centres represent worst.
fn means(
    together: &Communicator,
    all: &SharedRows,
    mut sums: Vec<f64>,
    dim: usize,
    similarity: &[f32],
) -> Result<Vec<f32>, Error> {
    together.sum_f64(&mut sums)?;
    let clusters = || sums.chunks_exact(dim + 1);
    let length = |sum: &[f64]| sum[..dim].iter().map(|v| v * v).sum::<f64>().sqrt();
    let lengths: Vec<f64> = clusters().map(length).collect();
    let has_mean = |(sum, length): (&[f64], &f64)| sum[dim] > 0.0 && *length >= LEAST_LENGTH;
    let with = clusters().zip(&lengths).map(has_mean);
    let without = with.clone().filter(|has| !has).count();
    let worst = worst_represented(together, all.first(), similarity, without)?;
    let worst = all.some(worst.into_iter())?;
    let mut worst = worst.chunks_exact(dim);
    let mut centres = Vec::with_capacity(lengths.len() * dim);
    for ((sum, length), has_mean) in clusters().zip(&lengths).zip(with) {
        match has_mean {
            true => centres.extend(sum[..dim].iter().map(|v| (v / length) as f32)),
            false => centres.extend(worst.next().into_iter().flatten()),
        }
    }
    Ok(centres)
}

/// The numbers of the `count` vectors least similar to their centres, the worst first; those that
/// are here have numbers from `first` on.
fn worst_represented(
    together: &Communicator,
    first: usize,
    similarity: &[f32],
    count: usize,
) -> Result<Vec<usize>, Error> {
    if count == 0 {
        return Ok(vec![]);
    }
    let worse = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let mut own: Vec<(f32, u32)> = similarity.iter().copied().zip(first as u32..).collect();
    own.sort_by(worse);
    // As many of each process: the worst of all are among them.
    own.resize(count, (f32::INFINITY, u32::MAX));
    let own: Vec<[u32; 2]> = own.iter().map(|(s, i)| [s.to_bits(), *i]).collect();
    let mut all = vec![[0; 2]; count * together.ranks()];
    together.gather(&own, &mut all)?;
    let mut all: Vec<(f32, u32)> = all.iter().map(|[s, i]| (f32::from_bits(*s), *i)).collect();
    all.sort_by(worse);
    all.truncate(count);
    Ok(all.iter().map(|(_, number)| *number as usize).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::to_unit_length;
    use anchorhood_distributed::ThreadRank;

    /// Vectors near four directions, in turn.
    pub(crate) fn four_groups(n: usize) -> Vec<f32> {
        let mut vectors = vec![0.0; n * 8];
        Draws::new(1, Stream::Test, 0, 0).fill_symmetric(&mut vectors, 0.1);
        vectors.chunks_exact_mut(8).enumerate().for_each(|(i, row)| row[i % 4] += 1.0);
        to_unit_length(&mut vectors, 8);
        vectors
    }

    /// New centres of vectors of two values, by one process and by two.
    fn means_of(vectors: &[f32], k: usize, of: &[u32], similarity: &[f32]) -> Vec<f32> {
        let mut found = [1, 2].map(|ranks| {
            let mut all = ThreadRank::run(ranks, |rank| {
                let together = Communicator::of(rank);
                let part = together.part(of.len());
                let own = &vectors[2 * part.start..2 * part.end];
                let all = SharedRows::new(&together, own, 2).unwrap();
                let sums = sums(own, 2, k, &of[part.clone()]);
                means(&together, &all, sums, 2, &similarity[part]).unwrap()
            });
            all.swap_remove(0)
        });
        assert_eq!(found[0], found[1]);
        std::mem::take(&mut found[0])
    }

    #[test]
    fn several_processes_find_the_clusters_of_one() {
        let vectors = four_groups(403);
        let of = |ranks: usize| {
            let parts = ThreadRank::run(ranks, |rank| {
                let device = Device::cpu(1).among(Communicator::of(rank));
                let part = device.communicator().part(403);
                let own = &vectors[8 * part.start..8 * part.end];
                kmeans(&device, own, 8, 9, 5, &mut |_| {}).unwrap()
            });
            assert!(parts.iter().all(|p| p.centres == parts[0].centres));
            let of: Vec<u32> = parts.iter().flat_map(|p| p.of.clone()).collect();
            (of, parts[0].centres.clone(), parts[0].rounds)
        };
        let (whole, centres, rounds) = of(1);
        for ranks in [2, 4] {
            let found = of(ranks);
            assert_eq!((&found.0, found.2), (&whole, rounds), "{ranks} ranks");
            let apart = found.1.iter().zip(&centres).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f32::max) < 1e-6, "{ranks} ranks");
        }
    }

    #[test]
    fn groups_are_found_whatever_the_seed() {
        let vectors = four_groups(400);
        for seed in 0..5 {
            let found = kmeans(&Device::cpu(1), &vectors, 8, 4, seed, &mut |_| {}).unwrap();
            for i in 4..400 {
                assert_eq!(found.of[i], found.of[i % 4], "seed {seed}");
            }
            let members = found.members();
            assert_eq!(members.len(), 4);
            let first = &members[0];
            assert!(found.similarity[first[0]] >= found.similarity[first[99]]);
        }
    }

    #[test]
    fn as_many_clusters_as_vectors_and_no_more() {
        let vectors = four_groups(6);
        let found = kmeans(&Device::cpu(1), &vectors, 8, 6, 0, &mut |_| {}).unwrap();
        let mut of = found.of.clone();
        of.sort();
        of.dedup();
        assert_eq!(of.len(), 6);
        let error = kmeans(&Device::cpu(1), &vectors, 8, 7, 0, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("7 clusters of 6 pictures"), "{error}");
    }

    /// Cluster 0 has two vectors, clusters 1 and 3 none, and cluster 2 two that cancel out: those
    /// three are given the worst represented vectors, the worst first, and no other cluster takes
    /// one away.
    #[test]
    fn clusters_without_a_mean_are_given_the_worst_vectors() {
        let vectors = [1.0, 0.0, 0.8, 0.6, 0.0, 1.0, 0.0, -1.0];
        let (of, similarity) = ([0, 0, 2, 2], [0.9, 0.2, 0.4, 0.3]);
        let centres = means_of(&vectors, 4, &of, &similarity);
        let length = (1.8_f32 * 1.8 + 0.6 * 0.6).sqrt();
        for (got, want) in centres[..2].iter().zip([1.8 / length, 0.6 / length]) {
            assert!((got - want).abs() < 1e-6, "{centres:?}");
        }
        assert_eq!(centres[2..], [0.8, 0.6, 0.0, -1.0, 0.0, 1.0]);
    }

    /// Nothing is empty, but one cluster's vectors cancel out.
    #[test]
    fn a_cluster_that_cancels_out_is_given_the_worst_vector() {
        let vectors = [1.0, 0.0, 0.0, 1.0, 0.0, -1.0];
        let centres = means_of(&vectors, 2, &[0, 1, 1], &[0.9, 0.5, 0.1]);
        assert_eq!(centres, [1.0, 0.0, 0.0, -1.0]);
    }

    #[test]
    fn vectors_that_are_all_alike() {
        let vectors = [1.0, 0.0].repeat(10);
        let found = kmeans(&Device::cpu(1), &vectors, 2, 3, 0, &mut |_| {}).unwrap();
        assert_eq!(found.of.len(), 10);
    }
}
