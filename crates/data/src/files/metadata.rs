//! What an image file says of itself beside its pixels: which camera took it and when, which
//! program wrote it, and how strongly it is compressed. Nothing of the pixels is decoded.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anchorhood_storage::open_regular;
use exif::{DateTime, Exif, In, Tag, Value};

use super::archive;
use super::jpeg;

/// The tables and the Exif segment of a JPEG stand before its first scan, and this early.
const MOST_OF_HEADER: u64 = 1 << 20;
/// Larger archived files are not read for what they say.
const MOST_BYTES: u64 = 1 << 28;

/// What an image file says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageMetadata {
    /// Maker and model of the camera.
    pub camera: Option<String>,
    /// When the image was taken, in milliseconds; comparable where both have the same clock.
    pub taken: Option<i64>,
    /// When the file was last changed, by its metadata, likewise.
    pub changed: Option<i64>,
    /// The program that wrote the file.
    pub software: Option<String>,
    /// Columns and rows that the camera wrote.
    pub pixels: Option<[u32; 2]>,
    /// Steps by which a JPEG's brightness is quantised, 64 frequencies in zigzag order.
    pub quantisation: Option<[u16; 64]>,
    /// Whether the format loses something of the pixels it is given; none where that is not known.
    pub lossy: Option<bool>,
}

impl ImageMetadata {
    /// Of a file, also in an archive. What cannot be read is as if it were not there.
    pub fn of_file(path: &Path) -> ImageMetadata {
        let read = || match archive::is_member(path) {
            true => archive::bytes(path, MOST_BYTES).ok().map(|bytes| Self::of_bytes(&bytes)),
            false => Some(Self::of_source(&mut BufReader::new(open_regular(path).ok()?))),
        };
        read().unwrap_or_default()
    }

    /// Of a part of an open file: all of it, or a member of an archive.
    pub fn of_part(mut file: &File, part: Range<u64>) -> ImageMetadata {
        let mut read = || {
            file.seek(SeekFrom::Start(part.start)).ok()?;
            if part.start == 0 {
                return Some(Self::of_source(&mut BufReader::new(file)));
            }
            let mut bytes = vec![];
            let most = part.end.saturating_sub(part.start).min(MOST_BYTES);
            Read::take(file, most).read_to_end(&mut bytes).ok()?;
            Some(Self::of_bytes(&bytes))
        };
        read().unwrap_or_default()
    }

    /// Of the bytes of a file.
    pub fn of_bytes(bytes: &[u8]) -> ImageMetadata {
        Self::of_source(&mut Cursor::new(bytes))
    }

    fn of_source<S: BufRead + Seek>(source: &mut S) -> ImageMetadata {
        let mut header = vec![];
        let mut start = Read::take(&mut *source, MOST_OF_HEADER);
        if start.read_to_end(&mut header).is_err() {
            return ImageMetadata::default();
        }
        let found = match header.starts_with(&[0xFF, 0xD8]) {
            // Image programs write what is no valid Exif, and the reader may panic on a stranger's.
            true => jpeg::exif(&header)
                .and_then(|raw| parsed(|| exif::Reader::new().read_raw(raw.to_vec()))),
            false => {
                let back = source.seek(SeekFrom::Start(0));
                back.ok().and_then(|_| parsed(|| exif::Reader::new().read_from_container(source)))
            }
        };
        let mut metadata = found.map_or_else(ImageMetadata::default, |exif| told(&exif));
        metadata.quantisation = jpeg::quantisation(&header);
        metadata.lossy = lossy(&header);
        metadata
    }
}

fn parsed(read: impl FnOnce() -> Result<Exif, exif::Error>) -> Option<Exif> {
    catch_unwind(AssertUnwindSafe(read)).ok()?.ok()
}

/// By the first bytes of a file.
fn lossy(header: &[u8]) -> Option<bool> {
    let lossless: [&[u8]; 5] = [b"\x89PNG", b"BM", b"GIF8", b"II*\0", b"MM\0*"];
    match header {
        [0xFF, 0xD8, ..] => Some(true),
        // RIFF, length, WEBP, and the kind of the first chunk; VP8X tells neither.
        [b'R', b'I', b'F', b'F', ..] => match header.get(12..16)? {
            b"VP8 " => Some(true),
            b"VP8L" => Some(false),
            _ => memchr::memmem::find(header, b"VP8 ").map(|_| true),
        },
        _ if header.get(4..8) == Some(b"ftyp") => Some(true),
        _ => lossless.iter().any(|start| header.starts_with(start)).then_some(false),
    }
}

fn told(exif: &Exif) -> ImageMetadata {
    let text = |tag: Tag| {
        let Value::Ascii(lines) = &exif.get_field(tag, In::PRIMARY)?.value else {
            return None;
        };
        let text = String::from_utf8_lossy(lines.first()?);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_string())
    };
    let number = |tag: Tag| exif.get_field(tag, In::PRIMARY)?.value.get_uint(0);
    let camera = [text(Tag::Make), text(Tag::Model)];
    let camera: Vec<String> = camera.into_iter().flatten().collect();
    let taken = text(Tag::DateTimeOriginal).and_then(|time| milliseconds(&time));
    let parts = text(Tag::SubSecTimeOriginal).and_then(|parts| after_the_point(&parts));
    let sides = (number(Tag::PixelXDimension), number(Tag::PixelYDimension));
    ImageMetadata {
        camera: (!camera.is_empty()).then(|| camera.join(" ")),
        taken: taken.map(|taken| taken + parts.unwrap_or(0)),
        changed: text(Tag::DateTime).and_then(|time| milliseconds(&time)),
        software: text(Tag::Software),
        pixels: match sides {
            (Some(width), Some(height)) => Some([width, height]),
            _ => None,
        },
        ..ImageMetadata::default()
    }
}

/// "2024:05:01 12:00:00" as milliseconds since 1970, by a clock without a zone.
fn milliseconds(text: &str) -> Option<i64> {
    let time = DateTime::from_ascii(text.as_bytes()).ok()?;
    let (year, month) = (i64::from(time.year), i64::from(time.month));
    if !(1..=12).contains(&month) || year == 0 {
        return None;
    }
    // Days since 1970 of a proleptic Gregorian calendar whose years begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5;
    let days = days + i64::from(time.day) - 1 - 719_468;
    let minutes = 60 * i64::from(time.hour) + i64::from(time.minute);
    Some(1000 * (86_400 * days + 60 * minutes + i64::from(time.second)))
}

/// Digits after a point, as milliseconds.
fn after_the_point(digits: &str) -> Option<i64> {
    let digits: String = digits.chars().take_while(char::is_ascii_digit).take(3).collect();
    let value: i64 = digits.parse().ok()?;
    Some(value * 10_i64.pow(3 - digits.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode_jpeg;
    use std::io::Write;

    /// Exif of a camera, big-endian: maker, software and two times, the second in a part of its
    /// own.
    pub(crate) fn exif(software: &str, taken: &str, parts: &str) -> Vec<u8> {
        let mut heap = vec![];
        let entry = |heap: &mut Vec<u8>, from: usize, tag: u16, text: &str| {
            let value = [text.as_bytes(), b"\0"].concat();
            let mut entry = vec![];
            entry.extend(tag.to_be_bytes());
            entry.extend(2_u16.to_be_bytes());
            entry.extend((value.len() as u32).to_be_bytes());
            if value.len() <= 4 {
                entry.extend([&value[..], &[0; 4]].concat()[..4].iter())
            } else {
                entry.extend(((from + heap.len()) as u32).to_be_bytes());
                heap.extend(value);
            }
            entry
        };
        let part = 8 + 2 + 4 * 12 + 4;
        let heap_at = part + 2 + 2 * 12 + 4;
        let mut out = b"MM\0\x2a\0\0\0\x08\0\x04".to_vec();
        out.extend(entry(&mut heap, heap_at, 0x010F, "Canon"));
        out.extend(entry(&mut heap, heap_at, 0x0131, software));
        out.extend(entry(&mut heap, heap_at, 0x0132, "2024:05:02 00:00:00"));
        out.extend([0x87, 0x69, 0, 4, 0, 0, 0, 1]);
        out.extend((part as u32).to_be_bytes());
        out.extend([0; 4]);
        out.extend([0, 2]);
        out.extend(entry(&mut heap, heap_at, 0x9003, taken));
        out.extend(entry(&mut heap, heap_at, 0x9291, parts));
        out.extend([0; 4]);
        out.extend(heap);
        out
    }

    #[test]
    fn a_jpeg_tells_its_camera_its_times_and_its_quality() {
        let plain = encode_jpeg(16, 16, &[90; 768], 50).unwrap();
        let raw = exif("GIMP 2.10", "1970:01:02 00:00:01", "25");
        let bytes = crate::test_folder::with_exif(&plain, &raw);
        let found = ImageMetadata::of_bytes(&bytes);
        assert_eq!(found.camera.as_deref(), Some("Canon"));
        assert_eq!(found.software.as_deref(), Some("GIMP 2.10"));
        assert_eq!(found.taken, Some(86_401_250));
        assert_eq!(found.changed, Some(1_714_608_000_000));
        assert_eq!(found.lossy, Some(true));
        // Annex K's table, which is that of quality 50.
        assert_eq!(found.quantisation.unwrap()[..6], [16, 11, 12, 14, 12, 10]);
        // In an open file, alone and among others.
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[&bytes[..], &plain].concat()).unwrap();
        let (middle, end) = (bytes.len() as u64, (bytes.len() + plain.len()) as u64);
        assert_eq!(ImageMetadata::of_part(&file, 0..middle), found);
        let second = ImageMetadata::of_part(&file, middle..end);
        assert_eq!(second, ImageMetadata::of_bytes(&plain));
        let none = ImageMetadata::of_bytes(&plain);
        assert_eq!((none.camera, none.taken), (None, None));
        // What is broken anywhere says less, and nothing fails.
        for at in 0..bytes.len() {
            ImageMetadata::of_bytes(&bytes[..at]);
            let mut broken = bytes.clone();
            broken[at] ^= 0xFF;
            ImageMetadata::of_bytes(&broken);
        }
    }

    #[test]
    fn formats_that_lose_nothing_are_known() {
        let png = crate::encode_png(2, 2, &[1; 12]).unwrap();
        assert_eq!(ImageMetadata::of_bytes(&png).lossy, Some(false));
        assert_eq!(ImageMetadata::of_bytes(b"RIFF....WEBPVP8 ").lossy, Some(true));
        assert_eq!(ImageMetadata::of_bytes(b"RIFF....WEBPVP8L").lossy, Some(false));
        assert_eq!(ImageMetadata::of_bytes(b"").lossy, None);
        assert_eq!(ImageMetadata::of_file(Path::new("gone")), ImageMetadata::default());
    }
}
