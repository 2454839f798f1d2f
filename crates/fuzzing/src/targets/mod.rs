//! One file for each reader: what it is given, and what is done with the result.

mod archive;
mod autotune;
mod checkpoint;
mod cifar;
mod config;
mod container;
mod decisions;
mod finished;
mod http;
mod index;
mod journal;
mod labels;
mod list;
mod lists;
mod mat;
mod metrics;
mod model;
mod onnx;
mod pack;
mod pickle;
mod pictures;
mod protobuf;
mod seen;
mod undo;
mod unpack;
mod weights;

use crate::Target;

pub const ALL: &[Target] = &[
    http::TARGET, // mostly waits: begun first, it is done beside the others
    container::TARGET,
    checkpoint::TARGET,
    weights::TARGET,
    model::TARGET,
    onnx::TARGET,
    index::TARGET,
    journal::TARGET,
    labels::TARGET,
    undo::TARGET,
    decisions::TARGET,
    lists::TARGET,
    pack::TARGET,
    cifar::TARGET,
    unpack::TARGET,
    mat::TARGET,
    pickle::TARGET,
    pictures::TARGET,
    archive::TARGET,
    list::TARGET,
    config::TARGET,
    seen::TARGET,
    finished::TARGET,
    autotune::TARGET,
    metrics::TARGET,
    protobuf::TARGET,
];

/// A file among the tests of another crate.
macro_rules! fixture {
    ($path:literal) => {
        include_bytes!(concat!("../../../", $path)).to_vec()
    };
}
use fixture;
