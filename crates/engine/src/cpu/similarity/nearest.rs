//! The most similar key of each query, copied.

use super::scan::pass;
use crate::similarity::Scan;
use pulp::Arch;
use rayon::prelude::*;

/// Queries of a task.
const TASK: usize = 32;

/// `to` = for each query the key with the greatest inner product, of equal ones the first; NaN
/// where no product is a number.
pub(crate) fn nearest_rows(arch: Arch, queries: &[f32], keys: &[f32], dim: usize, to: &mut [f32]) {
    let scan = Scan { dim, entropy_temperature: None, k: 1, same: false };
    let tasks = queries.par_chunks(TASK * dim).zip(to.par_chunks_mut(TASK * dim));
    tasks.for_each(|(queries, to)| {
        let found = pass(arch, (queries, 0), (keys, 0), &scan, 1);
        for (to, sums) in to.chunks_exact_mut(dim).zip(found) {
            match sums.best.sorted().first() {
                Some((_, key)) => to.copy_from_slice(&keys[*key as usize * dim..][..dim]),
                None => to.fill(f32::NAN),
            }
        }
    });
}
