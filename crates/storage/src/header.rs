//! The beginning of a container: a safetensors header that has a checksum of itself.
//!
//! ```text
//! 0     length N of the header, u64, little endian
//! 8     {"__metadata__":{"clock":"
//! 34    what may differ between identical runs: 192 printable ASCII characters, spaces at the end
//! 226   XXH3-128 of these 192, 32 hexadecimal digits
//! 258   ","checksum":"
//! 272   XXH3-128 of bytes 0–33, 258–271 and 304 to the end of the header, 32 hexadecimal digits
//! 304   ","blocks":"… and the rest of the JSON, then spaces up to a multiple of 64
//! 8+N   the data
//! ```
//!
//! So every byte is under one of three checksums, and two identical runs differ in bytes 34–257
//! alone.

use std::collections::BTreeMap;

use twox_hash::XxHash3_128;

use crate::NamedTensor;
use crate::blocks::{Checksum, DIGITS, checksum, from_hex, hex};

const OPEN: &str = r#"{"__metadata__":{"clock":""#;
const MIDDLE: &str = r#"","checksum":""#;
const CLOCK_AT: usize = 8 + OPEN.len();
/// Longest text of a clock.
pub(crate) const CLOCK: usize = 192;
const MIDDLE_AT: usize = CLOCK_AT + CLOCK + DIGITS;
const SUM_AT: usize = MIDDLE_AT + MIDDLE.len();
const REST_AT: usize = SUM_AT + DIGITS;
/// Longest header that safetensors reads.
const LONGEST: usize = 100_000_000;
/// Where data begins is a multiple of this: numbers of a mapped file lie as in memory.
const ALIGN: usize = 64;

/// Fields that are the container's own.
pub(crate) const RESERVED: [&str; 4] = ["clock", "checksum", "blocks", "version"];
/// The version that is written and read.
pub(crate) const VERSION: &str = "2";

/// All bytes before the data. The error is a clause.
pub(crate) fn encode(
    metadata: &BTreeMap<String, String>,
    clock: &str,
    tensors: &[&NamedTensor],
    blocks: &[Checksum],
) -> Result<Vec<u8>, String> {
    let clock = clock_text(clock)?;
    let json = json(metadata, tensors, blocks)?;
    let mut bytes = vec![0; 8];
    bytes.extend_from_slice(OPEN.as_bytes());
    bytes.extend_from_slice(clock.as_bytes());
    bytes.extend_from_slice(hex(checksum(clock.as_bytes())).as_bytes());
    bytes.extend_from_slice(MIDDLE.as_bytes());
    bytes.extend_from_slice(&[b'0'; DIGITS]);
    bytes.extend_from_slice(json.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(ALIGN), b' ');
    let length = bytes.len() - 8;
    if length > LONGEST {
        return Err(format!("its header would have {length} bytes"));
    }
    bytes[..8].copy_from_slice(&(length as u64).to_le_bytes());
    let sum = hex(sum_of(&bytes));
    bytes[SUM_AT..REST_AT].copy_from_slice(sum.as_bytes());
    Ok(bytes)
}

fn clock_text(clock: &str) -> Result<String, String> {
    let plain = |c: char| (' '..='~').contains(&c) && c != '"' && c != '\\';
    match clock.chars().all(plain) && clock.len() <= CLOCK {
        true => Ok(format!("{clock:CLOCK$}")),
        false => Err(format!("its clock is not plain text: {clock}")),
    }
}

/// From the end of the checksum on.
fn json(
    metadata: &BTreeMap<String, String>,
    tensors: &[&NamedTensor],
    blocks: &[Checksum],
) -> Result<String, String> {
    if let Some(own) = RESERVED.iter().find(|own| metadata.contains_key(**own)) {
        return Err(format!("its metadata has a `{own}`, which is not its own"));
    }
    let blocks: String = blocks.iter().map(|sum| hex(*sum)).collect();
    let mut json = format!("\",\"blocks\":\"{blocks}\",\"version\":\"{VERSION}\"");
    for (name, value) in metadata {
        json += &format!(",{}:{}", text(name), text(value));
    }
    json.push('}');
    let mut start = 0;
    for tensor in tensors {
        let end = start + tensor.bytes().unwrap_or(0);
        let (dtype, shape) = (plain(&tensor.dtype), plain(&tensor.shape));
        json += &format!(
            ",{}:{{\"dtype\":{dtype},\"shape\":{shape},\"data_offsets\":[{start},{end}]}}",
            text(&tensor.name)
        );
        start = end;
    }
    json.push('}');
    Ok(json)
}

fn text(text: &str) -> String {
    plain(&text)
}

fn plain(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain values become JSON")
}

/// Of everything up to the data but the clock and the checksum itself.
fn sum_of(bytes: &[u8]) -> Checksum {
    let mut hasher = XxHash3_128::new();
    hasher.write(&bytes[..CLOCK_AT]);
    hasher.write(&bytes[MIDDLE_AT..SUM_AT]);
    hasher.write(&bytes[REST_AT..]);
    hasher.finish_128()
}

/// Where the data begins, before anything in a file is believed; none where its header has no
/// checksums. The error says which place is wrong.
pub(crate) fn check(bytes: &[u8]) -> Result<Option<usize>, String> {
    let length = bytes.first_chunk().map(|n| u64::from_le_bytes(*n));
    let length = length.ok_or("the file ends within its first 8 bytes")?;
    let data = usize::try_from(length).ok().filter(|n| *n <= LONGEST);
    let data = data.map(|n| n + 8).filter(|end| *end <= bytes.len());
    let data = data.ok_or(format!(
        "its first 8 bytes promise a header of {length} bytes, and the file has {}",
        bytes.len()
    ))?;
    let header = &bytes[..data];
    if !header[8..].starts_with(OPEN.as_bytes()) || header.len() < REST_AT {
        return Ok(None);
    }
    let digits = |at: usize| std::str::from_utf8(&header[at..][..DIGITS]).ok();
    let kept = |at: usize| digits(at).and_then(from_hex);
    if kept(SUM_AT) != Some(sum_of(header)) {
        return Err(format!("its header, bytes 0 to {data}, is not what was written"));
    }
    let clock = &header[CLOCK_AT..][..CLOCK];
    if kept(CLOCK_AT + CLOCK) != Some(checksum(clock)) {
        let end = MIDDLE_AT;
        return Err(format!("its clock, bytes {CLOCK_AT} to {end}, is not what was written"));
    }
    Ok(Some(data))
}

/// The clock of a header that was found right.
pub(crate) fn clock(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[CLOCK_AT..][..CLOCK]);
    text.trim_end().into()
}

/// The checksums of blocks; none where the text is no such thing.
pub(crate) fn block_sums(text: &str) -> Option<Vec<Checksum>> {
    let (digits, rest) = text.as_bytes().as_chunks::<DIGITS>();
    let sum = |digits: &[u8; DIGITS]| from_hex(std::str::from_utf8(digits).ok()?);
    match rest {
        [] => digits.iter().map(sum).collect(),
        _ => None,
    }
}
