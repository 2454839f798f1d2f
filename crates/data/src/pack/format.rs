//! The bytes of a packed set.
//!
//! ```text
//! 0     magic, 8 bytes
//! 8     version, u32: 2
//! 12    zeros
//! 16    where the index begins, u64
//! 24    its length, u64
//! 32    XXH3-128 of the index, u128
//! 48    zeros
//! 4080  XXH3-128 of bytes 0–4079, u128
//! 4096  the pictures of the first part, then of the second: size × size × 3 bytes each, HWC
//! …     the index: name, size, what it was made from, and for each part its classes and pictures
//! ```
//!
//! Numbers are little-endian, texts a u32 length and UTF-8. Header and index are checked whole when
//! a pack is opened; a picture has a CRC-32 of its own in the index, compared when the picture is
//! first touched. A picture that could not be read keeps its place in the index, with the reason,
//! so that what a seed chooses stays the same. `docs/reference/formats.md` has every field.

use anchorhood_storage::checksum;

use crate::statistics::Sums;

/// How a packed set begins.
pub(super) const MAGIC: [u8; 8] = *b"ANHPACK\n";
/// Raised when the layout changes.
pub(super) const VERSION: u32 = 2;
/// Where pictures begin: a page, so that they can be mapped by themselves.
pub(super) const PIXELS_START: u64 = 4096;
/// Bytes of the header.
pub(super) const HEADER: usize = PIXELS_START as usize;
/// Where the header's own checksum lies.
pub(super) const HEADER_SUM: usize = HEADER - 16;
/// Elements of pictures: bytes.
const U8: u8 = 0;

/// All but the pixels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Index {
    /// What the set is called.
    pub name: String,
    /// The published set it is, by its name on the command line; empty for others.
    pub set: String,
    /// Side of the pictures.
    pub size: usize,
    /// Whether a share is held out when it is opened.
    pub holds_out: bool,
    /// Whether the pictures are in no order.
    pub shuffled: bool,
    /// MD5 of what it was made from.
    pub fingerprint: [u8; 16],
    /// Which way of making squares of pictures it was made by.
    pub preprocessing: u32,
    /// The pictures to train on, then those to test on.
    pub parts: Vec<PartIndex>,
}

/// Pictures of one part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PartIndex {
    /// Names of the classes, where there are classes.
    pub classes: Option<Vec<String>>,
    /// Which pictures of how many they are, where the part is a shard: the first, and the number of
    /// all.
    pub rows: [u64; 2],
    /// The pictures.
    pub entries: Vec<Entry>,
}

/// One picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Its file; empty where it had none.
    pub name: String,
    /// Its class.
    pub class: u32,
    /// Rows and columns that it had before it was made a square, the right way up; zeros where
    /// nobody knows.
    pub height_and_width: [u32; 2],
    /// CRC-32 and channel sums of its pixels, or why it could not be read.
    pub pixels: Result<(u32, Sums), String>,
}

impl PartIndex {
    /// How many pictures have pixels.
    pub fn readable(&self) -> usize {
        self.entries.iter().filter(|e| e.pixels.is_ok()).count()
    }
}

/// The header of a pack whose index lies at `start`.
pub(super) fn header(start: u64, index: &[u8]) -> Vec<u8> {
    let mut header = vec![0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&start.to_le_bytes());
    header[24..32].copy_from_slice(&(index.len() as u64).to_le_bytes());
    header[32..48].copy_from_slice(&checksum(index).to_le_bytes());
    let sum = checksum(&header[..HEADER_SUM]);
    header[HEADER_SUM..].copy_from_slice(&sum.to_le_bytes());
    header
}

impl Index {
    /// As it is written.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_text(&mut out, &self.name);
        put_text(&mut out, &self.set);
        put_u32(&mut out, self.size as u32);
        out.extend([u8::from(self.holds_out), u8::from(self.shuffled)]);
        out.extend(self.fingerprint);
        out.push(U8);
        put_u32(&mut out, self.preprocessing);
        out.push(self.parts.len() as u8);
        for part in &self.parts {
            part.encode(&mut out);
        }
        out
    }

    /// What was written, or none where it makes no sense.
    pub fn decode(bytes: &[u8]) -> Option<Index> {
        let mut input = Cursor(bytes);
        let mut index = Index {
            name: input.text()?,
            set: input.text()?,
            size: input.u32()? as usize,
            holds_out: input.flag()?,
            shuffled: input.flag()?,
            fingerprint: input.array()?,
            ..Index::default()
        };
        let [dtype] = input.array()?;
        index.preprocessing = input.u32()?;
        (dtype == U8 && index.preprocessing > 0).then_some(())?;
        let [parts] = input.array()?;
        for _ in 0..parts {
            let part = PartIndex::decode(&mut input, index.size)?;
            index.parts.push(part);
        }
        let sensible = (1..=2).contains(&parts) && (1..=1 << 14).contains(&index.size);
        (sensible && input.0.is_empty()).then_some(index)
    }
}

impl PartIndex {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.classes.is_some()));
        let classes = self.classes.as_deref().unwrap_or_default();
        put_u32(out, classes.len() as u32);
        for class in classes {
            put_text(out, class);
        }
        self.rows.iter().for_each(|n| out.extend(n.to_le_bytes()));
        put_u32(out, self.entries.len() as u32);
        for entry in &self.entries {
            put_text(out, &entry.name);
            put_u32(out, entry.class);
            entry.height_and_width.iter().for_each(|n| put_u32(out, *n));
            out.push(u8::from(entry.pixels.is_ok()));
            match &entry.pixels {
                Ok((crc, sums)) => {
                    put_u32(out, *crc);
                    for number in sums.sum.iter().chain(&sums.squares) {
                        out.extend(number.to_le_bytes());
                    }
                }
                Err(why) => put_text(out, why),
            }
        }
    }

    fn decode(input: &mut Cursor, size: usize) -> Option<PartIndex> {
        let has_classes = input.flag()?;
        // Counts are not believed: what they count must arrive.
        let count = input.u32()?;
        let mut classes = Vec::new();
        for _ in 0..count {
            classes.push(input.text()?);
        }
        let mut part = PartIndex {
            classes: has_classes.then_some(classes),
            rows: [input.u64()?, input.u64()?],
            entries: Vec::new(),
        };
        for _ in 0..input.u32()? {
            let (name, class) = (input.text()?, input.u32()?);
            let height_and_width = [input.u32()?, input.u32()?];
            let classes = part.classes.as_ref();
            if classes.is_some_and(|c| class as usize >= c.len()) {
                return None;
            }
            let pixels = if input.flag()? {
                let crc = input.u32()?;
                let mut numbers = [0; 6];
                for number in &mut numbers {
                    *number = input.u64()?;
                }
                let [a, b, c, squares @ ..] = numbers;
                let sums = Sums { pixels: (size * size) as u64, sum: [a, b, c], squares };
                Ok((crc, sums))
            } else {
                Err(input.text()?)
            };
            part.entries.push(Entry { name, class, height_and_width, pixels });
        }
        let [first, total] = part.rows;
        (first.checked_add(part.entries.len() as u64)? <= total).then_some(part)
    }
}

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_u32(out, text.len() as u32);
    out.extend(text.as_bytes());
}

/// What is still to be decoded.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
