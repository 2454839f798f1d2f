//! The softmax over a sample of the keys, which stands for all of them.
//!
//! With U the positives of all queries of the step and S rows drawn evenly among all others: Σ over
//! all keys of e^s is estimated by Σ_U e^s + w · Σ_S e^s, with w = (keys − |U|) / |S|. This is
//! right in expectation; its logarithm, and with it loss and gradient, is so in the limit of many
//! rows, and biased by something like their inverse. Positives are all in U, so what draws towards
//! them is exact.
//!
//! The two sums are put together as those of two parts of the keys are ([`super::shard`]), with ln
//! w added to the second.

use pulp::Arch;
use rayon::prelude::*;

use super::loss::{SoftmaxCall, SoftmaxScratch};
use super::shard::{ShardScratch, ShardSums};
use crate::RowSample;

/// Which rows a step looks at, and their copies. The memory is kept, so that a step allocates none
/// once it has its size.
#[derive(Default)]
pub(crate) struct SampledScratch {
    /// U, sorted.
    listed: Vec<u32>,
    /// S.
    drawn: Vec<u32>,
    rows: Vec<f32>,
    softmax: SoftmaxScratch,
    means: Vec<f32>,
    sums: Vec<f64>,
}

impl SampledScratch {
    /// Draws a step's rows among so many keys, and gives ln w.
    pub(crate) fn draw(
        &mut self,
        sample: RowSample,
        step: u64,
        keys: usize,
        call: &SoftmaxCall,
    ) -> f64 {
        let queries = call.queries.len() / call.dim;
        self.listed.clear();
        for query in 0..queries {
            let of = call.positives.of(call.row_of(query));
            self.listed.extend_from_slice(of);
        }
        self.listed.sort_unstable();
        self.listed.dedup();
        self.drawn.clear();
        let listed = &self.listed;
        let others = sample.draw(step, keys);
        self.drawn.extend(others.filter(|row| listed.binary_search(row).is_err()));
        let others = keys - self.listed.len();
        // Where only positives are drawn, no row has this weight; it must be finite all the same.
        (others as f64 / self.drawn.len().max(1) as f64).ln()
    }

    /// As [`ShardScratch::look`] over all keys of a part, by the rows that were drawn.
    pub(crate) fn look(
        &mut self,
        arch: Arch,
        shard: &mut ShardScratch,
        call: &SoftmaxCall,
        (first, log_weight): (usize, f64),
        sums: &mut [ShardSums],
        means: &mut [f32],
    ) {
        let dim = call.dim;
        let here = first..first + call.keys.len() / dim;
        let copy = |which: &[u32], rows: &mut Vec<f32>| {
            rows.clear();
            let which = which.iter().map(|row| *row as usize);
            for row in which.filter(|row| here.contains(row)) {
                rows.extend_from_slice(&call.keys[(row - first) * dim..][..dim]);
            }
        };
        // The drawn ones first: their sums are put aside.
        copy(&self.drawn, &mut self.rows);
        self.means.resize(means.len(), 0.0);
        self.sums.resize(sums.len(), 0.0);
        let drawn = SoftmaxCall { keys: &self.rows, ..*call };
        let of_drawn = self.softmax.sum_over(arch, &drawn);
        let each = self.sums.par_iter_mut().with_min_len(8);
        each.zip(self.means.par_chunks_mut(dim))
            .enumerate()
            .for_each(|(query, (sum, mean))| *sum = of_drawn.merge(query, mean) + log_weight);
        copy(&self.listed, &mut self.rows);
        let listed = SoftmaxCall { keys: &self.rows, ..*call };
        shard.look_at(arch, &listed, call, first, sums, means);
        let drawn = self.sums.par_iter().zip(self.means.par_chunks(dim));
        let each = sums.par_iter_mut().with_min_len(8);
        each.zip(means.par_chunks_mut(dim)).zip(drawn).for_each(
            |((sums, mean), (drawn, drawn_mean))| {
                sums[0] = add(sums[0], mean, *drawn, drawn_mean);
            },
        );
    }
}

/// ln (e^a + e^b) of two parts' sums; the first one's mean becomes that of both.
fn add(a: f64, mean: &mut [f32], b: f64, other: &[f32]) -> f64 {
    if b == f64::NEG_INFINITY {
        return a; // nothing was drawn here
    }
    let max = a.max(b);
    let sum = max + ((a - max).exp() + (b - max).exp()).ln();
    let [a, b] = [(a - sum).exp() as f32, (b - sum).exp() as f32];
    for (mean, other) in mean.iter_mut().zip(other) {
        *mean = a * *mean + b * other;
    }
    sum
}
