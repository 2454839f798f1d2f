//! The specification: each operation as plain loops, the oracle of the tests.
//!
//! Nothing here is fast, fused or threaded. Layers compute in f64 over NHWC slices, so that a
//! finite difference is sharp enough to judge their gradients, and what a device's f32 result
//! differs by is the device's own error.

pub mod activation;
pub mod batch_norm;
pub mod channels;
pub mod contrastive;
pub mod conv;
pub mod cosine;
pub mod counting;
pub mod cross_entropy;
pub mod elementwise;
pub mod l2_normalise;
pub mod lab;
pub mod linear;
mod network;
pub mod optimisers;
pub mod pool;
pub mod quantise;
pub mod quarters;
pub mod similarity;
pub mod tiles;
pub mod uniform;
pub mod window;

pub use network::{NaiveNetwork, widen};
