//! Similarities of queries with all keys, tile by tile, so that the matrix of all of them never exists.
//!
//! Queries are packed as the columns of a panel and lie along the vector lanes; keys are read as they are, one row of the
//! tile each. Maximum, sum, entropy and top-k of a query are then computed lane by lane, and a lane's result depends only
//! on the order of the keys: it is the same whatever the number of threads.
//!
//! Everything here runs in the current rayon pool.

mod best;
mod contrastive;
mod loss;
mod running;
mod scan;
mod symmetric;
mod tile;

pub(super) use contrastive::Contrastive;
pub(super) use loss::{Scratch, SoftmaxCall, softmax_loss};
pub(super) use scan::scan;

use crate::{Error, Result};

/// Rows `indices` of `keys` become normalise((1 − rate) · row + rate · query), one after the other: an index named twice
/// is blended twice.
pub(super) fn blend_rows(
    keys: &mut [f32],
    dim: usize,
    indices: &[u32],
    queries: &[f32],
    rate: f32,
) -> Result<()> {
    let n = rows("keys", keys, dim)?;
    Error::check_length("queries", indices.len() * dim, queries.len())?;
    if let Some(i) = indices.iter().find(|i| **i as usize >= n) {
        return Err(Error::Plan(format!("row {i} of {n} rows")));
    }
    for (index, query) in indices.iter().zip(queries.chunks_exact(dim)) {
        let row = &mut keys[*index as usize * dim..][..dim];
        let mut square = 0.0;
        for (old, new) in row.iter_mut().zip(query) {
            *old = (1.0 - rate) * *old + rate * new;
            square += f64::from(*old) * f64::from(*old);
        }
        let scale = (1.0 / square.sqrt().max(1e-12)) as f32;
        row.iter_mut().for_each(|v| *v *= scale);
    }
    Ok(())
}

/// How many rows of length `dim` a matrix has.
fn rows(what: &str, matrix: &[f32], dim: usize) -> Result<usize> {
    if dim == 0 {
        return Err(Error::Plan(format!("{what}: rows of length 0")));
    }
    let n = matrix.len() / dim;
    Error::check_length(what, n * dim, matrix.len())?;
    Ok(n)
}

/// A temperature divides: it is positive and finite.
fn check_temperature(temperature: f32) -> Result<()> {
    if temperature > 0.0 && temperature.is_finite() {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "temperature {temperature}: must be a positive number"
    )))
}
