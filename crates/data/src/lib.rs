//! Where do pictures come from, and what does the network see of them?

pub mod augment;
mod cifar;
mod error;
mod pictures;
pub mod shapes;
pub mod statistics;

pub use augment::{AugmentParams, Augmentation, augment, normalise};
pub use error::DataError;
pub use pictures::{Dataset, Labels, Pictures, Split};
