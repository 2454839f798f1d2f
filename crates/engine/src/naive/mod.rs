//! The specification: each operation as plain loops, the oracle of the tests.
//!
//! Nothing here is fast, fused or threaded. Layers compute in f64 over NHWC slices, so that a
//! finite difference is sharp enough to judge their gradients, and what a device's f32 result
//! differs by is the device's own error. A layer's rule is with the layer, in `ops`.

pub mod losses;
mod network;
pub mod optimisers;
pub mod quarters;
pub mod similarity;
pub mod tiles;
pub mod uniform;
pub(crate) mod window;

pub use network::{NaiveNetwork, widen};

pub use crate::ops::{Case, cases, dropout_mask};
