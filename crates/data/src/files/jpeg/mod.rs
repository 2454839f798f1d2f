//! What is done with JPEG files: is a file all there ([`whole`]), what does it show ([`decoded`]), and how is a large one read that is to
//! become small ([`shrunk`])?

mod blocks;
mod decoded;
mod huffman;
mod markers;
mod means;
mod plane;
mod shrunk;
mod whole;

pub(super) use decoded::Whole;
pub(super) use markers::Frame;
pub(super) use shrunk::{Shrink, shrunk};
pub(super) use whole::check_whole;

use image::metadata::Orientation;
use markers::{SOI, SOS, Walk};

/// How the camera was held, by the file's Exif segment.
pub(super) fn orientation(bytes: &[u8]) -> Orientation {
    exif(bytes)
        .and_then(Orientation::from_exif_chunk)
        .unwrap_or(Orientation::NoTransforms)
}

/// The last Exif segment before the first scan.
fn exif(bytes: &[u8]) -> Option<&[u8]> {
    let mut walk = Walk::new(bytes);
    let mut found = None;
    loop {
        match walk.marker().ok()? {
            SOS => return found,
            0x01 | 0xD0..=0xD7 | SOI => {}
            0xE1 => found = walk.segment().ok()?.strip_prefix(b"Exif\0\0").or(found),
            _ => _ = walk.segment().ok()?,
        }
    }
}
