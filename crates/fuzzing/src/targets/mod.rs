//! One file for each reader, one for all that are short: what it is given, and what is done with
//! the result.

mod checkpoint;
mod cifar;
mod config;
mod container;
mod finished;
mod http;
mod index;
mod journal;
mod lists;
mod mat;
mod metrics;
mod onnx;
mod pack;
mod pictures;
mod protobuf;
mod seen;
mod small;
mod unpack;
mod weights;

use crate::{Target, repair};

/// A target by its name: how its bytes are read, its seeds, how many of these it takes, and how
/// bytes are repaired.
macro_rules! targets {
    ($($name:ident: $read:path, $seeds:path, $taken:expr, $repair:path;)*) => {
        &[$(Target {
            name: stringify!($name),
            read: $read,
            repair: $repair,
            seeds: $seeds,
            taken: $taken,
        },)*]
    };
}

pub const ALL: &[Target] = targets! {
    http: http::read, http::seeds, None, repair::request; // mostly waits: begun first
    container: container::read, container::seeds, Some(1), repair::container;
    checkpoint: checkpoint::read, checkpoint::seeds, Some(2), repair::container;
    weights: weights::read, weights::seeds, Some(3), repair::container;
    model: small::model, small::model_seeds, Some(1), repair::container;
    onnx: onnx::read, onnx::seeds, Some(5), repair::nothing;
    index: index::read, index::seeds, Some(3), repair::container;
    journal: journal::read, journal::seeds, Some(2), repair::journal;
    labels: small::labels, small::label_seeds, Some(3), repair::nothing;
    undo: small::undoing, small::undo_seeds, Some(5), repair::nothing;
    decisions: small::decisions, small::decision_seeds, Some(3), small::repaired_decisions;
    lists: lists::read, lists::seeds, Some(4), repair::nothing;
    pack: pack::read, pack::seeds, Some(3), repair::pack;
    cifar: cifar::read, cifar::seeds, Some(4), repair::tar;
    unpack: unpack::read, unpack::seeds, Some(1), repair::tar;
    mat: mat::read, mat::seeds, Some(3), repair::mat;
    pickle: small::pickle, small::pickle_seeds, Some(8), repair::nothing;
    pictures: pictures::read, pictures::seeds, Some(22), repair::png;
    archive: small::archive, small::archive_seeds, Some(4), repair::tar;
    list: small::list, small::list_seeds, Some(3), repair::nothing;
    config: config::read, config::seeds, Some(49), repair::nothing;
    seen: seen::read, seen::seeds, Some(1), repair::container;
    finished: finished::read, finished::seeds, Some(2), repair::nothing;
    autotune: small::autotune, small::autotune_seeds, Some(2), repair::cache_entry;
    metrics: metrics::read, metrics::seeds, Some(4), repair::nothing;
    protobuf: protobuf::read, protobuf::seeds, Some(1), repair::nothing;
};

/// A file among the tests of another crate.
macro_rules! fixture {
    ($path:literal) => {
        include_bytes!(concat!("../../../", $path)).to_vec()
    };
}
use fixture;
