//! The softmax over keys that lie in parts on several processes: what one part says of every
//! process's queries, and what all parts say together.
//!
//! With s, p, p̃ as in [`super::loss`], and for a part r of the keys: A_r = ln Σ e^s over its keys,
//! P_r = ln Σ e^s over its positives, and the means a_r and p_r of its keys under both softmaxes.
//! Over all parts A = ln Σ e^A_r, P = ln Σ e^P_r, loss = A − P, and a part's share of the gradient
//! is (e^(A_r − A)·a_r − e^(P_r − P)·p_r) / (temperature · B); the sum over the parts is the
//! gradient. Where each positive counts as much, P_r is the sum of s over the part's positives, p_r
//! the sum of them, and both are divided by the number of all.

use pulp::Arch;
use rayon::prelude::*;

use super::loss::{SoftmaxCall, SoftmaxScratch, dot};

/// A_r and P_r of a query.
pub(crate) type ShardSums = [f64; 2];

/// What this process's part says of queries.
#[derive(Default)]
pub(crate) struct ShardScratch {
    softmax: SoftmaxScratch,
    /// p_r of each query.
    positive: Vec<f32>,
}

impl ShardScratch {
    /// Sums and means over a part whose first key is number `first`; `means` takes a_r of each
    /// query.
    pub(crate) fn look(
        &mut self,
        arch: Arch,
        call: &SoftmaxCall,
        first: usize,
        sums: &mut [ShardSums],
        means: &mut [f32],
    ) {
        self.look_at(arch, call, call, first, sums, means);
    }

    /// The same with A_r and a_r over the keys of another call, of the same queries.
    pub(super) fn look_at(
        &mut self,
        arch: Arch,
        all: &SoftmaxCall,
        call: &SoftmaxCall,
        first: usize,
        sums: &mut [ShardSums],
        means: &mut [f32],
    ) {
        let dim = call.dim;
        let all = self.softmax.sum_over(arch, all);
        self.positive.resize(means.len(), 0.0);
        let each = sums.par_iter_mut().with_min_len(8);
        each.zip(means.par_chunks_mut(dim))
            .zip(self.positive.par_chunks_mut(dim))
            .enumerate()
            .for_each(|(query, ((sums, mean), positive))| {
                *sums = [all.merge(query, mean), positives(call, query, first, positive)];
            });
    }

    /// From the sums of all parts, in rank order, to the losses of queries, and to this part's
    /// share of their gradient in place of `means`. `own` says which part's sums are this one's.
    /// The weight is that of each process's mean over its own queries.
    pub(crate) fn share(
        &self,
        call: &SoftmaxCall,
        parts: &[ShardSums],
        own: usize,
        losses: &mut [f32],
        means: &mut [f32],
    ) {
        let (dim, queries) = (call.dim, losses.len());
        let ranks = parts.len() / queries.max(1);
        let scale = call.weight * ranks as f32 / (call.temperature * queries as f32);
        let gradients = means.par_chunks_mut(dim).with_min_len(8);
        gradients.zip(self.positive.par_chunks(dim)).zip(losses).enumerate().for_each(
            |(query, ((gradient, positive), loss))| {
                let part = |rank: usize| parts[rank * queries + query];
                let of = |which: usize| (0..ranks).map(move |rank| part(rank)[which]);
                let all = log_sum_exp(of(0));
                let count = call.positives.of(call.row_of(query)).len() as f64;
                let own = part(own);
                let (positives, share) = match call.positives.count_each() {
                    true => (of(1).sum::<f64>() / count, 1.0 / count),
                    false => {
                        let positives = log_sum_exp(of(1));
                        (positives, (own[1] - positives).exp())
                    }
                };
                *loss = (all - positives) as f32;
                let (a, p) = ((own[0] - all).exp() as f32, share as f32);
                for (g, positive) in gradient.iter_mut().zip(positive) {
                    *g = scale * (a * *g - p * positive);
                }
            },
        );
    }
}

/// P_r of a query; `mean` takes p_r.
fn positives(call: &SoftmaxCall, query: usize, first: usize, mean: &mut [f32]) -> f64 {
    let (dim, keys) = (call.dim, call.keys);
    let row = &call.queries[query * dim..(query + 1) * dim];
    let here = first..first + keys.len() / dim;
    let of = call.positives.of(call.row_of(query)).iter();
    let of = of.map(|p| *p as usize).filter(|p| here.contains(p));
    let key = |p: usize| &keys[(p - first) * dim..][..dim];
    let logit = |p: usize| dot(row, key(p)) / f64::from(call.temperature);
    let (each, sum) = match call.positives.count_each() {
        true => (true, of.clone().map(logit).sum()),
        false => (false, log_sum_exp(of.clone().map(logit))),
    };
    mean.fill(0.0);
    for p in of {
        let share = if each { 1.0 } else { (logit(p) - sum).exp() as f32 };
        for (to, from) in mean.iter_mut().zip(key(p)) {
            *to += share * from;
        }
    }
    sum
}

/// ln Σ e^x; −∞ of nothing, and no number where one of them is none.
fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return values.fold(max, |all, v| if v.is_nan() { v } else { all });
    }
    max + values.map(|v| (v - max).exp()).sum::<f64>().ln()
}
