//! What is done with JPEG files beside decoding: is a file complete ([`whole`]), and how is a large
//! one read that is to become small ([`mod@eighth`])?

mod eighth;
mod huffman;
mod markers;
mod whole;

pub(super) use eighth::{BY, eighth};
pub(super) use markers::Frame;
pub(super) use whole::check_whole;

use image::metadata::Orientation;
use markers::{BASELINE, EXTENDED, PROGRESSIVE, SOI, SOS, Walk};

/// How the camera was held, by the file's Exif segment.
pub(super) fn orientation(bytes: &[u8]) -> Orientation {
    exif(bytes).and_then(Orientation::from_exif_chunk).unwrap_or(Orientation::NoTransforms)
}

/// The last Exif segment before the first scan.
pub(super) fn exif(bytes: &[u8]) -> Option<&[u8]> {
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

/// Steps of the brightness's frequencies, in zigzag order: those of the table that the first
/// component of the first frame names.
pub(super) fn quantisation(bytes: &[u8]) -> Option<[u16; 64]> {
    if !bytes.starts_with(&[0xFF, SOI]) {
        return None;
    }
    let mut walk = Walk::new(bytes);
    let (mut tables, mut named) = ([None; 4], None);
    loop {
        match walk.marker().ok()? {
            SOS => return tables[named?],
            0x01 | 0xD0..=0xD7 | SOI => {}
            0xDB => read_tables(walk.segment().ok()?, &mut tables),
            kind @ (BASELINE | EXTENDED | PROGRESSIVE) => {
                let frame = Frame::parse(kind, walk.segment().ok()?)?;
                let table = usize::from(frame.components.first()?.table);
                named = Some(table).filter(|table| *table < tables.len());
            }
            _ => _ = walk.segment().ok()?,
        }
    }
}

fn read_tables(mut segment: &[u8], tables: &mut [Option<[u16; 64]>; 4]) {
    while let Some((kind, rest)) = segment.split_first() {
        let wide = usize::from(kind >> 4).min(1) + 1;
        let Some((values, rest)) = rest.split_at_checked(64 * wide) else {
            return;
        };
        let value = |i: usize| {
            let bytes = &values[i * wide..][..wide];
            bytes.iter().fold(0, |all, byte| all << 8 | u16::from(*byte))
        };
        if let Some(table) = tables.get_mut(usize::from(kind & 15)) {
            *table = Some(std::array::from_fn(value));
        }
        segment = rest;
    }
}
