//! The data sets that are published, in the form their official archives have on disk.
//!
//! [`facts`] says what is true of each; a file each says how to find it in a folder and what it
//! consists of.

mod archives;
pub(crate) mod cub;
pub(crate) mod dogs;
mod facts;
pub(crate) mod imagenet;
pub(crate) mod lists;
pub(crate) mod svhn;
mod unpack;

pub use archives::Archive;
pub(crate) use facts::{CIFAR10, CIFAR100, CUB200, DOGS, IMAGENET, SVHN};
pub use facts::{SETS, SetFacts, facts_of};
pub use unpack::unpack;
