//! The data sets that are published, in the form their official archives have on disk.

mod archives;
mod facts;

pub use archives::Archive;
pub(crate) use facts::{CIFAR10, CIFAR100};
pub use facts::{SETS, SetFacts, facts_of};
