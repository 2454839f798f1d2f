//! One file for each reader: what it is given, and what is done with the result.

mod checkpoint;
mod config;
mod container;
mod http;
mod index;
mod journal;
mod labels;
mod mat;
mod metrics;
mod pack;
mod pickle;
mod pictures;
mod protobuf;
mod tensorboard;
mod weights;

use crate::Target;

pub const ALL: &[Target] = &[
    http::TARGET, // mostly waits: begun first, it is done beside the others
    container::TARGET,
    checkpoint::TARGET,
    weights::TARGET,
    index::TARGET,
    journal::TARGET,
    labels::TARGET,
    pack::TARGET,
    mat::TARGET,
    pickle::TARGET,
    pictures::TARGET,
    config::TARGET,
    metrics::TARGET,
    tensorboard::TARGET,
    protobuf::TARGET,
];

/// A file among the tests of another crate.
macro_rules! fixture {
    ($path:literal) => {
        include_bytes!(concat!("../../../", $path)).to_vec()
    };
}
use fixture;
