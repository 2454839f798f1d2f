//! Rows told by their nearest entry of a codebook, and how often a classifier is right; the loops
//! are in [`crate::naive::losses`].

use rayon::prelude::*;

use super::{LEAST_ROWS, Labelled};

/// The number of the entry nearest to each row; of equally near ones the first.
pub(crate) fn quantise(rows: &[f32], codebook: &[f32], dim: usize, to: &mut [u32]) {
    let tasks = to.par_iter_mut().zip(rows.par_chunks(dim));
    tasks.with_min_len(LEAST_ROWS).for_each(|(to, row)| {
        let (mut least, mut nearest) = (f32::INFINITY, 0);
        for (entry, code) in codebook.chunks_exact(dim).enumerate() {
            let distance: f32 = row.iter().zip(code).map(|(a, b)| (a - b) * (a - b)).sum();
            if distance < least {
                (least, nearest) = (distance, entry as u32);
            }
        }
        *to = nearest;
    });
}

/// Adds right guesses and rows of each class to a tally.
pub(crate) fn tally(of: &Labelled, tally: &mut [u32]) {
    for (row, item) in of.logits.chunks_exact(of.classes).zip(of.items) {
        let class = of.labels[*item as usize];
        tally[0] += u32::from(greatest(row) == Some(class));
        tally[1 + class as usize] += 1;
    }
}

/// The place of the greatest value, the first of equal ones; none where the first is not a number,
/// which nothing is above.
fn greatest(row: &[f32]) -> Option<u32> {
    let mut best = 0;
    for (c, value) in row.iter().enumerate().skip(1) {
        if *value > row[best] {
            best = c;
        }
    }
    (!row[best].is_nan()).then_some(best as u32)
}
