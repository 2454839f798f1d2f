//! Readers that are otherwise reached through whole data sets alone, each by itself:
//! `crates/fuzzing` attacks them.

use std::path::Path;

use crate::Dataset;
use crate::datasets::{open_small, pickled, read_svhn};
use crate::mat::{self, Value};

/// Every kind of variable of a MATLAB file, then its pictures as SVHN's; whether it had any of it.
pub fn mat(path: &Path) -> bool {
    let names = ["bytes", "numbers", "text", "cells", "synsets"];
    let values = mat::read(path, names, 1 << 20);
    let used = |value: &Value| {
        let field = value.field(0, "WNID").and_then(Value::text);
        value.numbers().is_some() || value.text().is_some() || field.is_some()
    };
    let any = values.is_ok_and(|values| values.iter().any(used));
    any | read_svhn(path).is_ok()
}

/// Whether a JPEG can be read at an eighth of its size, as only large ones are otherwise.
pub fn jpeg_at_an_eighth(bytes: &[u8]) -> bool {
    crate::files::reads_at_an_eighth(bytes)
}

/// An archive of CIFAR with two pictures in each of its files.
pub fn cifar(path: &Path) -> Option<Dataset> {
    open_small(path).ok()?
}

/// Everything that is ever asked of a pickle; whether it had any of it.
pub fn pickle(bytes: &[u8]) -> bool {
    pickled(bytes)
}
