//! Similarities of queries with all keys, tile by tile, so that the matrix of all of them never
//! exists.
//!
//! Queries are packed as the columns of a panel and lie along the vector lanes; keys are read as
//! they are, one row of the tile each. Maximum, sum, entropy and top-k of a query are then computed
//! lane by lane, and a lane's result depends only on the order of the keys: it is the same whatever
//! the number of threads.
//!
//! Everything here runs in the current rayon pool, and [`crate::Stream`] or [`crate::Device`] has
//! checked what it is given.

mod best;
mod contrastive;
mod loss;
mod nearest;
mod running;
mod sampled;
mod scan;
mod shard;
mod symmetric;
mod tile;

pub(super) use contrastive::{Contrastive, Shape};
pub(super) use loss::{SoftmaxCall, SoftmaxScratch, softmax_loss};
pub(super) use nearest::nearest_rows;
pub(super) use sampled::SampledScratch;
pub(super) use scan::scan;
pub(super) use shard::{ShardScratch, ShardSums};

/// Rows `indices` of `keys`, whose first is number `first`, become normalise((1 − rate) · row +
/// rate · query), one after the other: an index named twice is blended twice, and rows that are not
/// here are left to others.
pub(super) fn blend_rows(
    keys: &mut [f32],
    dim: usize,
    first: usize,
    indices: &[u32],
    queries: &[f32],
    rate: f32,
) {
    let here = first..first + keys.len() / dim;
    for (index, query) in indices.iter().zip(queries.chunks_exact(dim)) {
        if !here.contains(&(*index as usize)) {
            continue;
        }
        let row = &mut keys[(*index as usize - first) * dim..][..dim];
        let mut square = 0.0;
        for (old, new) in row.iter_mut().zip(query) {
            *old = (1.0 - rate) * *old + rate * new;
            square += f64::from(*old) * f64::from(*old);
        }
        let scale = (1.0 / square.sqrt().max(1e-12)) as f32;
        row.iter_mut().for_each(|v| *v *= scale);
    }
}
