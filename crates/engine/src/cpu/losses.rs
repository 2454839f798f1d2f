//! Losses over rows of f32, and what goes with them, each with the gradient of weight ·
//! mean(losses); the maths is in [`crate::naive`].
//!
//! Losses and gradients are written (`=`). A row is summed by one thread in one order, so the bits
//! are the same for any number of threads. Nothing allocates. Everything here runs in the current
//! rayon pool, and is given what [`crate::Stream`] has checked. The contrastive loss compares rows
//! with each other and lives beside the other similarities.

mod cosine;
mod counting;
mod cross_entropy;
mod quantise;

pub(crate) use cosine::{cosine, mean_of_others};
pub(crate) use counting::{Parts, counting};
pub(crate) use cross_entropy::{Labelled, cross_entropy};
pub(crate) use quantise::{quantise, tally};

/// Rows that a task takes at least, so that short rows are worth a task.
const LEAST_ROWS: usize = 8;
