//! The softmax over all keys, its loss and its gradient, in one pass over the keys.
//!
//! With s = q·k / temperature, p = softmax(s) over all keys and p̃ the softmax over the positives
//! alone: loss = ln Σ_all e^s − ln Σ_pos e^s, and the gradient of the mean loss = (Σ p·k − Σ p̃·k)
//! / (temperature · B). Where each positive counts as much, the mean of s over them stands in place
//! of ln Σ_pos e^s, and their mean in place of Σ p̃·k. Losses and gradient are written (`=`).
//!
//! Σ p·k is summed along with Σ e^s under a running maximum: what was summed so far shrinks when
//! the maximum grows. Keys are cut into ranges that depend on their number alone, and the ranges'
//! sums are put together in order, so the result is the same to the bit for any number of threads.

use super::tile::{self, KEYS, Lanes, QUERIES, Tile};
use crate::cpu::exp::exp;
use crate::cpu::gemm::{self, Outer, Pairs};
use crate::similarity::Positives;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Bounds the partial sums' memory, and is enough for every thread to have work.
const MAX_RANGES: usize = 32;

/// Memory kept between calls, so that a training step allocates none.
#[derive(Default)]
pub(crate) struct SoftmaxScratch {
    packed: Vec<f32>,
    partials: Vec<Partial>,
}

/// Sums of a block of queries over a range of keys, relative to the maximum.
struct Partial {
    max: Lanes,
    sum: [f64; QUERIES],
    /// Σ e^(s − max) · k, query after query.
    weighted: Vec<f32>,
}

/// What a loss is computed of.
#[derive(Clone, Copy)]
pub(crate) struct SoftmaxCall<'a> {
    pub(crate) queries: &'a [f32],
    pub(crate) keys: &'a [f32],
    pub(crate) dim: usize,
    pub(crate) temperature: f32,
    /// Checked against the keys when they were made.
    pub(crate) positives: &'a Positives,
    /// Query q has the positives of row `items[q mod len]`; without, those of row q.
    pub(crate) items: Option<&'a [u32]>,
    /// Of the gradient.
    pub(crate) weight: f32,
}

impl SoftmaxCall<'_> {
    pub(super) fn row_of(&self, query: usize) -> usize {
        match self.items {
            Some(items) => items[query % items.len()] as usize,
            None => query,
        }
    }
}

/// Keys in a range, a whole number of tiles.
fn range_len(keys: usize) -> usize {
    keys.div_ceil(MAX_RANGES).next_multiple_of(KEYS).max(4 * KEYS)
}

/// The sums of all queries over all ranges of the keys: `ranges` for each block of `width` queries.
pub(super) struct Sums<'a> {
    partials: &'a [Partial],
    ranges: usize,
    width: usize,
}

impl Sums<'_> {
    /// Writes Σ p·k of a query, gives ln Σ e^s.
    pub(super) fn merge(&self, query: usize, weighted: &mut [f32]) -> f64 {
        let block = query / self.width;
        let partials = &self.partials[block * self.ranges..(block + 1) * self.ranges];
        merge(partials, query % self.width, weighted)
    }
}

/// See the module.
pub(crate) fn softmax_loss(
    arch: Arch,
    scratch: &mut SoftmaxScratch,
    call: &SoftmaxCall,
    losses: &mut [f32],
    gradient: &mut [f32],
) {
    let (dim, keys, temperature) = (call.dim, call.keys, call.temperature);
    let batch = call.queries.len() / dim;
    let sums = scratch.sum_over(arch, call);
    (gradient.par_chunks_mut(dim).with_min_len(8)).zip(losses).enumerate().for_each(
        |(query, (gradient, loss))| {
            let all = sums.merge(query, gradient);
            let query_row = &call.queries[query * dim..(query + 1) * dim];
            let of = call.positives.of(call.row_of(query));
            let each = call.positives.count_each();
            let own = subtract_positives(query_row, keys, temperature, of, each, gradient);
            *loss = (all - own) as f32;
            let scale = call.weight / (temperature * batch as f32);
            gradient.iter_mut().for_each(|g| *g *= scale);
        },
    );
}

impl SoftmaxScratch {
    /// All sums of a call.
    pub(super) fn sum_over(&mut self, arch: Arch, call: &SoftmaxCall) -> Sums<'_> {
        let SoftmaxCall { queries, keys, dim, temperature, .. } = *call;
        let scratch = self;
        let (batch, n) = (queries.len() / dim, keys.len() / dim);
        let (width, range) = (tile::block_width(arch), range_len(n));
        let (blocks, ranges) = (batch.div_ceil(width), n.div_ceil(range));
        let block_len = width * dim;
        scratch.prepare(blocks, ranges, block_len);
        for (queries, packed) in
            (queries.chunks(block_len)).zip(scratch.packed.chunks_mut(block_len))
        {
            let len = dim * tile::padded(arch, queries.len() / dim);
            tile::pack(arch, queries, dim, 1.0 / temperature, &mut packed[..len]);
        }
        let packed = &scratch.packed;
        let partials = &mut scratch.partials[..blocks * ranges];
        partials.par_iter_mut().enumerate().for_each(|(task, partial)| {
            let (block, r) = (task / ranges, task % ranges);
            let count = width.min(batch - block * width);
            let keys = &keys[r * range * dim..((r + 1) * range).min(n) * dim];
            partial.sum_over(arch, &packed[block * block_len..], count, keys, dim);
        });
        Sums { partials, ranges, width }
    }

    fn prepare(&mut self, blocks: usize, ranges: usize, block_len: usize) {
        self.packed.resize(blocks * block_len, 0.0);
        if self.partials.len() < blocks * ranges {
            self.partials.resize_with(blocks * ranges, Partial::new);
        }
        for p in &mut self.partials[..blocks * ranges] {
            p.weighted.resize(block_len, 0.0);
        }
    }
}

impl Partial {
    fn new() -> Self {
        Partial { max: Lanes([0.0; QUERIES]), sum: [0.0; QUERIES], weighted: vec![] }
    }

    fn sum_over(&mut self, arch: Arch, packed: &[f32], count: usize, keys: &[f32], dim: usize) {
        self.max.0.fill(f32::NEG_INFINITY);
        self.sum.fill(0.0);
        self.weighted.fill(0.0);
        let width = tile::padded(arch, count);
        let mut tile = Tile::new();
        let pairs: [[u32; 2]; KEYS] =
            std::array::from_fn(|key| [(key * width) as u32, (key * dim) as u32]);
        for keys in keys.chunks(KEYS * dim) {
            let here = keys.len() / dim;
            tile.fill(arch, keys, dim, &packed[..dim * width], width);
            let grown = tile.max_of_columns(arch, here, width);
            self.raise(&grown, count, dim);
            let mut sums = Lanes([0.0; QUERIES]);
            arch.dispatch(Exponentials {
                values: &mut tile.0[..here * width],
                max: &self.max.0[..width],
                sums: &mut sums.0[..width],
            });
            for (sum, add) in self.sum.iter_mut().zip(sums.0) {
                *sum += f64::from(add);
            }
            let op = Outer {
                a: &tile.0,
                b: keys,
                pairs: Pairs::new(&pairs[..here]),
                times: 1,
                apart: [0; 2],
                rows: count,
                n: dim,
            };
            gemm::outer(arch, op, &mut self.weighted);
        }
    }

    /// Takes over greater maxima: what was summed under the old ones shrinks.
    fn raise(&mut self, new: &Lanes, count: usize, dim: usize) {
        for query in 0..count {
            let (old, new) = (self.max.0[query], new.0[query]);
            if new > old {
                let factor = (old - new).exp();
                self.max.0[query] = new;
                self.sum[query] *= f64::from(factor);
                let weighted = &mut self.weighted[query * dim..(query + 1) * dim];
                weighted.iter_mut().for_each(|w| *w *= factor);
            }
        }
        self.max.0[count..].fill(0.0); // lanes without a query: all similarities are 0
    }
}

/// Puts one query's ranges together: writes Σ p·k, gives ln Σ e^s.
fn merge(partials: &[Partial], lane: usize, weighted: &mut [f32]) -> f64 {
    let dim = weighted.len();
    let max = (partials.iter().map(|p| p.max.0[lane])).fold(f32::NEG_INFINITY, f32::max);
    let share = |p: &Partial| f64::from(p.max.0[lane] - max).exp();
    let sum: f64 = partials.iter().map(|p| share(p) * p.sum[lane]).sum();
    weighted.fill(0.0);
    for p in partials {
        let scale = (share(p) / sum) as f32;
        for (to, from) in weighted.iter_mut().zip(&p.weighted[lane * dim..]) {
            *to += scale * from;
        }
    }
    f64::from(max) + sum.ln()
}

/// Subtracts Σ p̃·k from `weighted`, gives ln Σ_pos e^s; or, where `each` positive counts as much,
/// their mean and the mean of their s.
fn subtract_positives(
    query: &[f32],
    keys: &[f32],
    temperature: f32,
    positives: &[u32],
    each: bool,
    weighted: &mut [f32],
) -> f64 {
    let (dim, count) = (query.len(), positives.len() as f64);
    let key = |p: &u32| &keys[*p as usize * dim..][..dim];
    let logit = |p: &u32| dot(query, key(p)) / f64::from(temperature);
    let max = (positives.iter().map(logit)).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = positives.iter().map(|p| (logit(p) - max).exp()).sum();
    for p in positives {
        let share = if each { 1.0 / count } else { (logit(p) - max).exp() / sum } as f32;
        for (to, from) in weighted.iter_mut().zip(key(p)) {
            *to -= share * from;
        }
    }
    if each { positives.iter().map(logit).sum::<f64>() / count } else { max + sum.ln() }
}

pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
    products.sum()
}

/// Replaces similarities by e^(s − max) and sums them over the keys.
pub(super) struct Exponentials<'a> {
    pub(super) values: &'a mut [f32],
    pub(super) max: &'a [f32],
    pub(super) sums: &'a mut [f32],
}

impl WithSimd for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rows, _) = S::as_mut_simd_f32s(self.values);
        let (max, _) = S::as_simd_f32s(self.max);
        let (sums, _) = S::as_mut_simd_f32s(self.sums);
        for row in rows.chunks_exact_mut(max.len()) {
            for ((value, max), sum) in row.iter_mut().zip(max).zip(&mut *sums) {
                *value = exp(simd, simd.sub_f32s(*value, *max));
                *sum = simd.add_f32s(*sum, *value);
            }
        }
    }
}
