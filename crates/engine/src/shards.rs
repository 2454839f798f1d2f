//! A scan of keys that lie in parts on several processes.
//!
//! The parts come round, one process's after the other's, and each process compares its own queries
//! with them: no process ever has more than two parts. What a query learns of each part is put
//! together in rank order. With L the logarithm of a part's Σ e^s and H its entropy, the mean of s
//! under the part's softmax is L − H, so of all parts, with weights w = e^(L − ln Σ e^L): H = ln Σ
//! e^L − Σ w·(L − H).

use std::cmp::Ordering;

use crate::similarity::{Neighbours, Scan, ScanResult, rows};
use crate::{Buffer, Device, Error, Result, Shard};

/// See the module. `same`: the queries are this process's part of the keys.
pub(crate) fn scan_shards(
    device: &Device,
    [queries, keys]: [&Buffer; 2],
    shard: Shard,
    scan: &Scan,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<ScanResult> {
    let communicator = device.communicator();
    check(scan, [queries, keys], shard)?;
    let count = rows("queries", queries.len(), scan.dim)?;
    let ranks = communicator.ranks();
    let mut merged = Merged::new(count, scan);
    for rank in 0..ranks {
        let part = communicator.part_of(rank, shard.rows);
        let here = rank == communicator.rank();
        let mut values = match here {
            true => device.download(keys)?,
            false => vec![0.0; part.len() * scan.dim],
        };
        communicator.broadcast(&mut values, rank)?;
        if part.is_empty() || count == 0 {
            continue;
        }
        let tell = |done: usize| progress((rank * count + done) / ranks);
        let found = match here {
            true => device.scan_whole([queries, keys], scan, &tell)?,
            false => {
                let other = Scan { same: false, ..*scan };
                let keys = device.hand_over(values)?;
                device.scan_whole([queries, &keys], &other, &tell)?
            }
        };
        merged.add(found, part.start)?;
    }
    merged.result(shard.rows)
}

/// What is checked of a whole matrix, and that queries which are the keys are this process's part
/// of them.
fn check(scan: &Scan, [queries, keys]: [&Buffer; 2], shard: Shard) -> Result<()> {
    let other = Scan { same: false, ..*scan };
    other.check(queries.len(), shard.rows * scan.dim)?;
    match scan.same {
        true => Error::check_length("queries that are the keys", keys.len(), queries.len()),
        false => Ok(()),
    }
}

/// What queries learned of some parts.
struct Merged {
    k: usize,
    same: bool,
    entropies: bool,
    /// ln Σ e^s and entropy of each query over the parts so far.
    sums: Vec<(f64, f64)>,
    /// The best of each query, best first.
    best: Vec<Vec<(f32, u32)>>,
}

impl Merged {
    fn new(count: usize, scan: &Scan) -> Self {
        Merged {
            k: scan.k,
            same: scan.same,
            entropies: scan.entropy_temperature.is_some(),
            sums: vec![(f64::NEG_INFINITY, 0.0); count],
            best: vec![vec![]; count],
        }
    }

    /// Takes in what was found among keys from `first` on, which all come after those before.
    fn add(&mut self, found: ScanResult, first: usize) -> Result<()> {
        if self.entropies && found.log_sum.len() != self.sums.len() {
            let why = "this device cannot discover neighbourhoods with other processes yet";
            return Err(Error::Device(why.into()));
        }
        let parts = found.log_sum.iter().zip(&found.entropy);
        for (sums, (log_sum, entropy)) in self.sums.iter_mut().zip(parts) {
            *sums = merge_softmax(*sums, (*log_sum, f64::from(*entropy)));
        }
        for (query, best) in self.best.iter_mut().enumerate() {
            let indices = found.neighbours.of(query).iter();
            let later = indices.zip(found.neighbours.similarities_of(query));
            best.extend(later.map(|(i, s)| (*s, first as u32 + i)));
            // Stable: of equal ones the earlier stays first.
            best.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
            best.truncate(self.k);
        }
        Ok(())
    }

    fn result(self, rows: usize) -> Result<ScanResult> {
        let k = self.k.min(rows.saturating_sub(usize::from(self.same)));
        let mut neighbours = Neighbours { k, ..Neighbours::default() };
        for best in &self.best {
            Error::check_length("neighbours of a query", k, best.len())?;
            neighbours.indices.extend(best.iter().map(|b| b.1));
            neighbours.similarities.extend(best.iter().map(|b| b.0));
        }
        let sums = self.sums.into_iter().filter(|_| self.entropies);
        let (log_sum, entropy) = sums.map(|(l, h)| (l, h as f32)).unzip();
        Ok(ScanResult { entropy, log_sum, neighbours })
    }
}

/// ln Σ e^s and entropy over two parts of what a softmax is over, from those of each; a part with
/// nothing in it has −∞ and 0.
pub fn merge_softmax(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let max = a.0.max(b.0);
    let log_sum = max + ((a.0 - max).exp() + (b.0 - max).exp()).ln();
    let mean = |(l, h): (f64, f64)| match l {
        f64::NEG_INFINITY => 0.0, // nothing in it
        l => (l - log_sum).exp() * (l - h),
    };
    (log_sum, log_sum - mean(a) - mean(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_parts_are_one_whole() {
        let of = |s: &[f64]| {
            let sum: f64 = s.iter().map(|s| s.exp()).sum();
            let p = s.iter().map(|s| s.exp() / sum);
            (sum.ln(), -p.map(|p| p * p.ln()).sum::<f64>())
        };
        let (a, b) = ([0.3, -2.0, 5.0], [1.5, 4.9]);
        let nothing = (f64::NEG_INFINITY, 0.0);
        let parts = merge_softmax(merge_softmax(nothing, of(&a)), of(&b));
        let whole = of(&[0.3, -2.0, 5.0, 1.5, 4.9]);
        assert!((parts.0 - whole.0).abs() < 1e-12 && (parts.1 - whole.1).abs() < 1e-12);
    }
}
