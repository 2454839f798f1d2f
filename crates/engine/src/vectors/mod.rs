//! Algorithms over many row vectors: k-means, inverted lists for approximate search, whitening.

mod dot;
mod eigen;
mod kmeans;
mod lists;
mod shared_rows;
mod whitening;

pub use dot::{dot, dot_products, to_unit_length};
pub use kmeans::{Clusters, KmeansError, kmeans, kmeans_within};
pub use lists::Lists;
pub use whitening::Whitening;
