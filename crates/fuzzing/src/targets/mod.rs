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

use crate::{Target, repair};

/// A target for each module, and how its bytes are repaired.
macro_rules! targets {
    ($($name:ident: $repair:path,)*) => {
        &[$(Target {
            name: stringify!($name),
            read: $name::read,
            repair: $repair,
            seeds: $name::seeds,
        },)*]
    };
}

pub const ALL: &[Target] = targets! {
    http: repair::request, // mostly waits: begun first, it is done beside the others
    container: repair::container,
    checkpoint: repair::container,
    weights: repair::container,
    model: repair::container,
    onnx: repair::nothing,
    index: repair::container,
    journal: repair::journal,
    labels: repair::nothing,
    undo: repair::nothing,
    decisions: decisions::repair,
    lists: repair::nothing,
    pack: repair::pack,
    cifar: repair::tar,
    unpack: repair::tar,
    mat: repair::mat,
    pickle: repair::nothing,
    pictures: repair::png,
    archive: repair::tar,
    list: repair::nothing,
    config: repair::nothing,
    seen: repair::container,
    finished: repair::nothing,
    autotune: repair::cache_entry,
    metrics: repair::nothing,
    protobuf: repair::nothing,
};

/// A file among the tests of another crate.
macro_rules! fixture {
    ($path:literal) => {
        include_bytes!(concat!("../../../", $path)).to_vec()
    };
}
use fixture;
