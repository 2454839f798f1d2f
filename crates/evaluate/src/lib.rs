//! How good are the features?
//!
//! Labels are read here and nowhere in training: [`weighted_knn`] classifies test pictures by their nearest training
//! pictures, [`consistency`] asks how often a discovered neighbourhood is of one class, and [`raw_pixels`] gives the floor
//! that any feature should beat.

mod consistency;
mod features;
mod knn;

pub use consistency::{Consistency, consistency};
pub use features::{extract, raw_pixels};
pub use knn::{KnnOptions, KnnResult, weighted_knn};
