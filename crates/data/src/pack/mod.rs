//! Packed sets: pictures decoded and resized once, in one file that is mapped instead of read.
//!
//! A packed folder gives what the folder gives: the same pictures, labels, names, warnings,
//! statistics and, by the seed, the same held-out share. The layout is that of [`mod@format`].

mod format;
mod pixels;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::io::Read;
use std::path::Path;

use anchorhood_storage::open_regular;
pub(crate) use pixels::PackedPixels;
pub(crate) use read::{Pack, open};
pub use write::{Packed, pack, pack_on};

/// Whether the file at `path` begins, or at least is called, like a packed set.
pub(crate) fn is_pack(path: &Path) -> bool {
    let mut start = [0; format::MAGIC.len()];
    let read = open_regular(path).and_then(|mut file| file.read_exact(&mut start));
    let begins = read.is_ok() && start == format::MAGIC;
    begins || path.extension().is_some_and(|e| e == "pack")
}
