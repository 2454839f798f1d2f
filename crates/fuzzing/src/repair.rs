//! Right checksums and lengths for bytes that were mutated: what an attacker who knows the format
//! would write.
//!
//! Each gives nothing where the bytes are so far from the format that there is nothing to repair.
//! `docs/reference/formats.md` has the layouts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use anchorhood_storage::{BLOCK, checksum};
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// For formats without any.
pub fn nothing(_: &[u8]) -> Option<Vec<u8>> {
    None
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) -> Option<()> {
    bytes.get_mut(at..)?.get_mut(..what.len())?.copy_from_slice(what);
    Some(())
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(bytes.get(at..)?.get(..N)?);
    Some(u64::from_le_bytes(wide))
}

// ---- containers ----

const CLOCK: usize = 34;
const CLOCK_SUM: usize = 226;
const MIDDLE: usize = 258;
const SUM: usize = 272;
const REST: usize = 304;
const BLOCKS: &[u8] = b"\",\"blocks\":\"";

/// A container: the header's length, checksums of blocks, clock and header.
pub fn container(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let data = end_of_json(&bytes)?;
    put(&mut bytes, 0, &(data as u64 - 8).to_le_bytes())?;
    if bytes.get(REST..)?.starts_with(BLOCKS) {
        let sums = bytes[data..].chunks(BLOCK).map(hex);
        let sums: String = sums.collect();
        put(&mut bytes[..data], REST + BLOCKS.len(), sums.as_bytes())?;
        let clock = hex(bytes.get(CLOCK..CLOCK_SUM)?);
        put(&mut bytes, CLOCK_SUM, clock.as_bytes())?;
        let parts = [&bytes[..CLOCK], &bytes[MIDDLE..SUM], &bytes[REST..data]];
        let sum = hex(&parts.concat());
        put(&mut bytes, SUM, sum.as_bytes())?;
    }
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    format!("{:032x}", checksum(bytes))
}

/// Where the header ends: after the brace that closes the first one, and the spaces after it.
fn end_of_json(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut text, mut escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate().skip(8) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b'{' if !text => depth += 1,
            b'}' if !text => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            let spaces = bytes[at + 1..].iter().take_while(|b| **b == b' ');
            return Some(at + 1 + spaces.count());
        }
    }
    None
}

// ---- packs ----

/// A pack: the length and checksum of its index, and the checksum of its header.
pub fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let start = usize::try_from(number::<8>(&bytes, 16)?).ok()?;
    let index = bytes.get(start..).filter(|_| start >= 4096)?;
    let (length, sum) = (index.len() as u64, checksum(index));
    put(&mut bytes, 24, &length.to_le_bytes())?;
    put(&mut bytes, 32, &sum.to_le_bytes())?;
    let header = checksum(&bytes[..4080]);
    put(&mut bytes, 4080, &header.to_le_bytes())?;
    Some(bytes)
}

// ---- records ----

/// A journal: the CRC-32 of each record.
pub fn journal(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let mut at = bytes.iter().position(|b| *b == b'\n')? + 1;
    while let Some(length) = number::<4>(&bytes, at) {
        let Some(body) = bytes.get(at + 8..at + 8 + length as usize) else {
            break;
        };
        let crc = crc32fast::hash(body);
        put(&mut bytes, at + 4, &crc.to_le_bytes())?;
        at += 8 + length as usize;
    }
    Some(bytes)
}

/// An entry of the cache beside a GPU: the checksum before it.
pub fn cache_entry(bytes: &[u8]) -> Option<Vec<u8>> {
    let (_, content) = bytes.split_at_checked(8)?;
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    Some([&hasher.finish().to_le_bytes(), content].concat())
}

// ---- others' formats ----

/// A tar: the checksum of each header, as far as its lengths lead.
pub fn tar(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + 512) {
        if header.iter().all(|b| *b == 0) {
            break;
        }
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let digits = header[124..136].iter().take_while(|b| b.is_ascii_digit());
        let length = digits.fold(0, |n: usize, b| n * 8 + usize::from(b - b'0') % 8);
        at += 512 + length.next_multiple_of(512);
    }
    Some(bytes)
}

/// A PNG file: the CRC-32 of each chunk.
pub fn png(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let mut at = bytes.starts_with(b"\x89PNG").then_some(8)?;
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
        let Some(chunk) = bytes.get(at + 4..at + 8 + length) else {
            break;
        };
        let crc = crc32fast::hash(chunk);
        if put(&mut bytes, at + 8 + length, &crc.to_be_bytes()).is_none() {
            break;
        }
        at += 12 + length;
    }
    Some(bytes)
}

/// A MATLAB file: each of its variables compressed, so that zlib has nothing to complain of.
pub fn mat(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, mut rest) = bytes.split_at_checked(128)?;
    let mut out = header.to_vec();
    while let Some(length) = number::<4>(rest, 4) {
        let end = rest.len().min(8 + length as usize);
        let (variable, after) = rest.split_at(end);
        let mut zlib = ZlibEncoder::new(vec![], Compression::fast());
        zlib.write_all(variable).ok()?;
        let packed = zlib.finish().ok()?;
        out.extend(15_u32.to_le_bytes());
        out.extend((packed.len() as u32).to_le_bytes());
        out.extend(packed);
        rest = after;
    }
    Some(out)
}

/// A request: its length is that of its body.
pub fn request(bytes: &[u8]) -> Option<Vec<u8>> {
    const NAME: &[u8] = b"Content-Length: ";
    let find = |what: &[u8]| bytes.windows(what.len()).position(|w| w == what);
    let body = find(b"\r\n\r\n")? + 4;
    let from = find(NAME).filter(|at| *at < body)? + NAME.len();
    let to = from + bytes[from..].iter().position(|b| *b == b'\r')?;
    let length = (bytes.len() - body).to_string();
    Some([&bytes[..from], length.as_bytes(), &bytes[to..]].concat())
}
