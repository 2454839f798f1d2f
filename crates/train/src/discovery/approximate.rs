//! Neighbourhoods of very many pictures, looked for in a few clusters of the memory instead of all
//! of it.
//!
//! Rows are divided into about √n [`Lists`]. The pictures of a cluster look for their neighbours
//! together, among the rows of the clusters whose centres are nearest to its own, and among a
//! sample of all others. Entropy (Eq. 5) is over both, the sample weighted so that it stands for
//! all that was not looked at: Σ e^s is then right in expectation. How many of the true neighbours
//! are found is measured on some pictures.
//!
//! Several processes do it as they discover exactly: parts of the rows pass round, each with its
//! lists, and every process looks for its own.

use anchorhood_engine::{Communicator, Device, Error, Result, Scan, merge_softmax};

use crate::discovery::MemoryBank;
use anchorhood_engine::vectors::{KmeansError, Lists, kmeans};

/// How neighbourhoods are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoverBy {
    /// Exactly up to [`EXACT_UP_TO`] pictures, approximately beyond.
    Auto,
    /// Among all rows.
    Exact,
    /// Among the rows of a few clusters.
    Approximate,
}

/// Pictures up to which nothing is left out unless that is asked for.
pub const EXACT_UP_TO: usize = 2_000_000;
/// Rows of the whole memory that stand for what is not looked at.
const SAMPLE: usize = 4096;
/// Pictures that the search is tried with.
const TRIED: usize = 256;

impl DiscoverBy {
    /// Whether something is left out of so many pictures.
    pub fn approximates(self, pictures: usize) -> bool {
        match self {
            DiscoverBy::Auto => pictures > EXACT_UP_TO,
            DiscoverBy::Exact => false,
            DiscoverBy::Approximate => true,
        }
    }
}

/// What is found of this process's pictures.
pub(crate) struct Approximation {
    /// k for each.
    pub(crate) neighbours: Vec<u32>,
    pub(crate) entropy: Vec<f32>,
    /// The share of the true neighbours that are among them.
    pub(crate) recall: f64,
}

/// See the module.
pub(crate) fn approximate(
    device: &Device,
    bank: &MemoryBank,
    k: usize,
    tau: f32,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Approximation> {
    let (n, dim, together) = (bank.len(), bank.dim(), device.communicator());
    let (alone, own) = (device.alone(), device.download(bank.buffer())?);
    let centres = centres(device, n, &own, dim)?;
    let lists = Lists::around(&alone, centres, &own, dim)?;
    let probed = probed(&alone, &lists, dim)?;
    let mut found = Found {
        k,
        first: together.part(n).start,
        sums: vec![(f64::NEG_INFINITY, 0.0); own.len() / dim],
        best: vec![vec![]; own.len() / dim],
    };
    for rank in 0..together.ranks() {
        let part = Part::of(together, rank, n, dim, &own, &lists)?;
        let told = |done| progress((rank * own.len() / dim + done) / together.ranks());
        found.look(&alone, &own, (&lists, &probed), &part, tau, &told)?;
    }
    let (neighbours, entropy) = found.result()?;
    let recall = recall(device, bank, &own, k, &neighbours)?;
    Ok(Approximation { neighbours, entropy, recall })
}

/// Evenly spread ones of n things: those of a part, as places in the part.
fn spread(n: usize, count: usize, part: std::ops::Range<usize>) -> Vec<u32> {
    let count = count.min(n).max(1);
    let all = (0..count).map(|i| (i as u128 * n as u128 / count as u128) as usize);
    all.filter(|row| part.contains(row)).map(|row| (row - part.start) as u32).collect()
}

/// Rows by their places, one after the other.
fn copied(rows: &[f32], dim: usize, which: impl Iterator<Item = u32>) -> Vec<f32> {
    which.flat_map(|i| rows[i as usize * dim..][..dim].iter().copied()).collect()
}

/// The clusters' centres, from some rows of each process.
fn centres(device: &Device, n: usize, own: &[f32], dim: usize) -> Result<Vec<f32>> {
    let which = spread(n, Lists::learns_from(n), device.communicator().part(n));
    let rows = copied(own, dim, which.into_iter());
    let found = kmeans(device, &rows, dim, Lists::clusters_for(n), 0, &mut |_| {});
    Ok(found.map_err(of_kmeans)?.centres)
}

fn of_kmeans(error: KmeansError) -> Error {
    match error {
        KmeansError::Engine(error) => error,
        KmeansError::Count { .. } => Error::Plan(error.to_string()),
    }
}

/// The clusters that each cluster's pictures look into, the nearest first: their own among them.
fn probed(device: &Device, lists: &Lists, dim: usize) -> Result<Vec<Vec<u32>>> {
    let centres = device.upload(&lists.centres)?;
    let scan = Scan { dim, entropy_temperature: None, k: lists.default_probes(), same: false };
    let found = device.scan(&centres, &centres, &scan, &|_| {})?.neighbours;
    Ok((0..lists.len()).map(|c| found.of(c).to_vec()).collect())
}

/// A process's rows on their way round.
struct Part {
    /// The number of its first row.
    first: usize,
    dim: usize,
    rows: Vec<f32>,
    lists: Lists,
    /// Some of its rows, and the cluster of each.
    sample: Vec<(u32, u32)>,
}

impl Part {
    fn of(
        together: &Communicator,
        rank: usize,
        n: usize,
        dim: usize,
        own: &[f32],
        own_lists: &Lists,
    ) -> Result<Part> {
        let part = together.part_of(rank, n);
        let here = rank == together.rank();
        let mut rows = if here { own.to_vec() } else { vec![0.0; part.len() * dim] };
        let mut lists = if here {
            own_lists.clone()
        } else {
            Lists {
                centres: vec![],
                starts: vec![0; own_lists.starts.len()],
                members: vec![0; part.len()],
            }
        };
        together.broadcast(&mut rows, rank)?;
        together.broadcast(&mut lists.starts, rank)?;
        together.broadcast(&mut lists.members, rank)?;
        let mut cluster = vec![0; part.len()];
        for c in 0..lists.len() {
            let members = lists.members_of(c).iter();
            members.for_each(|m| cluster[*m as usize] = c as u32);
        }
        let sample = spread(n, SAMPLE, part.clone()).into_iter();
        Ok(Part {
            first: part.start,
            dim,
            rows,
            lists,
            sample: sample.map(|row| (row, cluster[row as usize])).collect(),
        })
    }

    /// The rows of some clusters, and how many the others have; and those of the sample that are in
    /// the others.
    fn split(&self, probed: &[u32]) -> ([Vec<u32>; 2], usize) {
        let near = probed.iter().flat_map(|c| self.lists.members_of(*c as usize));
        let near: Vec<u32> = near.copied().collect();
        let far = self.sample.iter().filter(|(_, c)| !probed.contains(c));
        let far: Vec<u32> = far.map(|(row, _)| *row).collect();
        let others = self.lists.members.len() - near.len();
        ([near, far], others)
    }
}

/// What is known of this process's pictures so far.
struct Found {
    k: usize,
    /// The number of the first of them.
    first: usize,
    sums: Vec<(f64, f64)>,
    /// The best of each, by similarity and then number.
    best: Vec<Vec<(f32, u32)>>,
}

impl Found {
    /// Looks for this process's pictures in a part.
    fn look(
        &mut self,
        device: &Device,
        own: &[f32],
        (lists, probed): (&Lists, &[Vec<u32>]),
        part: &Part,
        tau: f32,
        progress: &dyn Fn(usize),
    ) -> Result<()> {
        let mut done = 0;
        for (cluster, probed) in probed.iter().enumerate() {
            let pictures = lists.members_of(cluster);
            if pictures.is_empty() {
                continue;
            }
            let queries = copied(own, part.dim, pictures.iter().copied());
            let queries = device.hand_over(queries)?;
            let ([near, far], others) = part.split(probed);
            for (keys, stands_for) in [(&near, near.len()), (&far, others)] {
                if keys.is_empty() {
                    continue;
                }
                let rows = copied(&part.rows, part.dim, keys.iter().copied());
                let rows = device.hand_over(rows)?;
                let scan = Scan {
                    dim: part.dim,
                    entropy_temperature: Some(tau),
                    k: self.k + 1, // itself may be among them
                    same: false,
                };
                let found = device.scan(&queries, &rows, &scan, &|_| {})?;
                if found.log_sum.len() != pictures.len() {
                    let why = "this device cannot discover approximately yet";
                    return Err(Error::Device(why.into()));
                }
                // Each key counts as so many: both ln Σ e^s and the entropy grow by the logarithm.
                let log_weight = (stands_for as f64 / keys.len() as f64).ln();
                for (place, picture) in pictures.iter().enumerate() {
                    let sum = (
                        found.log_sum[place] + log_weight,
                        f64::from(found.entropy[place]) + log_weight,
                    );
                    let hits = found.neighbours.of(place).iter();
                    let hits = hits.map(|key| part.first as u32 + keys[*key as usize]);
                    let hits = found.neighbours.similarities_of(place).iter().copied().zip(hits);
                    self.add(*picture as usize, sum, hits);
                }
            }
            done += pictures.len();
            progress(done);
        }
        Ok(())
    }

    fn add(&mut self, picture: usize, sum: (f64, f64), hits: impl Iterator<Item = (f32, u32)>) {
        self.sums[picture] = merge_softmax(self.sums[picture], sum);
        let (best, itself) = (&mut self.best[picture], (self.first + picture) as u32);
        best.extend(hits.filter(|(_, row)| *row != itself));
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        best.truncate(self.k);
    }

    /// k neighbours and the entropy of each picture.
    fn result(self) -> Result<(Vec<u32>, Vec<f32>)> {
        let mut neighbours = Vec::with_capacity(self.best.len() * self.k);
        for best in &self.best {
            Error::check_length("neighbours of a picture", self.k, best.len())?;
            neighbours.extend(best.iter().map(|b| b.1));
        }
        Ok((neighbours, self.sums.iter().map(|s| s.1 as f32).collect()))
    }
}

/// The share of the true neighbours that were found, of some pictures of all processes.
fn recall(
    device: &Device,
    bank: &MemoryBank,
    own: &[f32],
    k: usize,
    neighbours: &[u32],
) -> Result<f64> {
    let (together, n, dim) = (device.communicator(), bank.len(), bank.dim());
    let part = together.part(n);
    let tried = spread(n, TRIED, part.clone());
    let queries = device.hand_over(copied(own, dim, tried.iter().copied()))?;
    let scan = Scan { dim, entropy_temperature: None, k: k + 1, same: false };
    let truth = device.scan(&queries, bank.buffer(), &scan, &|_| {})?.neighbours;
    let mut counts = [0.0, 0.0]; // found, and all there are
    for (place, picture) in tried.iter().enumerate() {
        let itself = part.start as u32 + picture;
        let found = &neighbours[*picture as usize * k..][..k];
        let truth = truth.of(place).iter().filter(|row| **row != itself).take(k);
        counts[0] += truth.clone().filter(|row| found.contains(row)).count() as f64;
        counts[1] += truth.count() as f64;
    }
    together.sum_f64(&mut counts)?;
    Ok(counts[0] / counts[1].max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Neighbourhoods;
    use anchorhood_engine::vectors::to_unit_length;
    use anchorhood_storage::random::{Draws, Stream};

    /// Pictures of some kinds, as features have them: rows of unit length around few directions.
    fn clustered(n: usize, dim: usize) -> Vec<f32> {
        let mut rows = vec![0.0; n * dim];
        Draws::new(1, Stream::Test, 0, 0).fill_symmetric(&mut rows, 0.35);
        rows.chunks_exact_mut(dim).enumerate().for_each(|(i, row)| row[(i * 7) % dim] += 1.0);
        to_unit_length(&mut rows, dim);
        rows
    }

    fn both_ways(device: &Device, bank: &MemoryBank, k: usize, tau: f32) -> [Neighbourhoods; 2] {
        [DiscoverBy::Exact, DiscoverBy::Approximate]
            .map(|by| Neighbourhoods::discover(device, bank, by, k, tau, 0.5, &|_| {}).unwrap())
    }

    #[test]
    fn evenly_spread_ones_are_shared_out() {
        assert_eq!(spread(10, 5, 0..10), [0, 2, 4, 6, 8]);
        assert_eq!(spread(10, 20, 3..5), [0, 1]);
        for (n, count, parts) in [(10, 4, 3), (1000, 7, 4), (5, 5, 2), (3, 256, 2)] {
            let mut all = vec![];
            for p in 0..parts {
                let part = p * n / parts..(p + 1) * n / parts;
                let of = spread(n, count, part.clone());
                all.extend(of.into_iter().map(|row| row as usize + part.start));
            }
            let whole = spread(n, count, 0..n);
            assert_eq!(all, whole.iter().map(|r| *r as usize).collect::<Vec<_>>());
            assert_eq!(whole.len(), count.min(n));
        }
    }

    #[test]
    fn most_neighbours_are_found_and_entropies_are_close() {
        let (n, dim, k, tau) = (9000, 24, 5, 0.1);
        let device = Device::cpu(2);
        let bank = MemoryBank::from_values(&device, &clustered(n, dim), dim).unwrap();
        let [exact, found] = both_ways(&device, &bank, k, tau);
        assert_eq!((found.k(), found.len(), exact.recall()), (k, n, None));
        let same = |i: usize| {
            let truth = exact.neighbours_of(i).iter();
            truth.filter(|row| found.neighbours_of(i).contains(row)).count()
        };
        let share = (0..n).map(same).sum::<usize>() as f64 / (n * k) as f64;
        let told = found.recall().unwrap();
        assert!(share > 0.8 && (told - share).abs() < 0.08, "{share} {told}");
        let off = found.entropy().iter().zip(exact.entropy()).map(|(a, b)| (a - b).abs());
        let worst = off.fold(0.0, f32::max);
        assert!(worst < 0.3, "{worst}");
        let both = found.anchors().iter().zip(exact.anchors()).filter(|(a, b)| **a && **b);
        let anchors = both.count() as f64 / exact.anchor_count() as f64;
        println!(
            "recall {share:.3}, told {told:.3}; entropies off by {worst:.3} at most; {anchors:.3} \
             of the anchors"
        );
        assert!(anchors > 0.9, "{anchors}");
    }

    #[test]
    fn few_rows_are_all_looked_at() {
        let (n, dim, k) = (300, 16, 3);
        let device = Device::cpu(1);
        let bank = MemoryBank::from_values(&device, &clustered(n, dim), dim).unwrap();
        let [exact, found] = both_ways(&device, &bank, k, 0.1);
        assert_eq!(found.neighbours(), exact.neighbours());
        assert_eq!(found.recall(), Some(1.0));
    }

    #[test]
    fn nothing_is_left_out_unless_there_are_very_many() {
        assert!(!DiscoverBy::Auto.approximates(EXACT_UP_TO));
        assert!(DiscoverBy::Auto.approximates(EXACT_UP_TO + 1));
        assert!(!DiscoverBy::Exact.approximates(usize::MAX));
        assert!(DiscoverBy::Approximate.approximates(2));
    }
}
