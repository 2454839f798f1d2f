//! The elements a MATLAB file is made of: a tag with kind and length, bytes, padding to eight.
//!
//! Four bytes or fewer may lie inside the tag itself.

use std::io::Read;

use super::Reason;

pub(super) const INT8: u32 = 1;
pub(super) const UINT8: u32 = 2;
const INT16: u32 = 3;
const UINT16: u32 = 4;
pub(super) const INT32: u32 = 5;
pub(super) const UINT32: u32 = 6;
const SINGLE: u32 = 7;
const DOUBLE: u32 = 9;
const INT64: u32 = 12;
const UINT64: u32 = 13;
pub(super) const MATRIX: u32 = 14;
pub(super) const COMPRESSED: u32 = 15;
pub(super) const UTF8: u32 = 16;
const UTF16: u32 = 17;

/// Kind and length of an element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub kind: u32,
    pub bytes: u64,
    /// The bytes, where they lie in the tag.
    small: Option<[u8; 4]>,
}

impl Tag {
    pub fn read(input: &mut impl Read) -> Result<Tag, Reason> {
        Self::read_or_end(input)?.ok_or_else(ends)
    }

    /// The next tag, or none where the stream ends before it.
    pub fn read_or_end(input: &mut impl Read) -> Result<Option<Tag>, Reason> {
        let mut head = [0; 8];
        let got = read_up_to(input, &mut head)?;
        match got {
            0 => return Ok(None),
            8 => {}
            _ => return Err(ends()),
        }
        let [a, b, c, d, data @ ..] = head;
        let first = u32::from_le_bytes([a, b, c, d]);
        let tag = match first >> 16 {
            0 => Tag { kind: first, bytes: u64::from(u32::from_le_bytes(data)), small: None },
            bytes @ 1..=4 => {
                Tag { kind: first & 0xffff, bytes: u64::from(bytes), small: Some(data) }
            }
            _ => return Err("an element's tag makes no sense; the file is damaged".into()),
        };
        Ok(Some(tag))
    }
}

/// An element of bytes, of at most `most`; its padding is passed over.
pub(super) fn read_bytes(input: &mut impl Read, most: u64) -> Result<(u32, Vec<u8>), Reason> {
    let tag = Tag::read(input)?;
    if tag.bytes > most {
        return Err(format!("an array of {} bytes where at most {most} are expected", tag.bytes));
    }
    if let Some(small) = tag.small {
        return Ok((tag.kind, small[..tag.bytes as usize].to_vec()));
    }
    // Grows with what arrives: a length alone costs nothing.
    let mut bytes = Vec::new();
    let got = input.take(tag.bytes).read_to_end(&mut bytes);
    got.map_err(|e| damaged(&e))?;
    if (bytes.len() as u64) < tag.bytes {
        return Err(ends());
    }
    // The last element of a file may come without its padding.
    let mut padding = [0; 8];
    read_up_to(
        input,
        &mut padding[..tag.bytes.next_multiple_of(8).wrapping_sub(tag.bytes) as usize],
    )?;
    Ok((tag.kind, bytes))
}

/// Numbers of any kind as f64.
pub(super) fn numbers(kind: u32, bytes: &[u8]) -> Result<Vec<f64>, Reason> {
    fn each<const W: usize>(bytes: &[u8], number: impl Fn([u8; W]) -> f64) -> Vec<f64> {
        let whole = bytes.chunks_exact(W);
        whole.map(|b| number(b.try_into().expect("chunks have that length"))).collect()
    }
    Ok(match kind {
        INT8 => each(bytes, |b| f64::from(i8::from_le_bytes(b))),
        UINT8 | UTF8 => each(bytes, |[b]| f64::from(b)),
        INT16 => each(bytes, |b| f64::from(i16::from_le_bytes(b))),
        UINT16 | UTF16 => each(bytes, |b| f64::from(u16::from_le_bytes(b))),
        INT32 => each(bytes, |b| f64::from(i32::from_le_bytes(b))),
        UINT32 => each(bytes, |b| f64::from(u32::from_le_bytes(b))),
        SINGLE => each(bytes, |b| f64::from(f32::from_le_bytes(b))),
        DOUBLE => each(bytes, f64::from_le_bytes),
        INT64 => each(bytes, |b| i64::from_le_bytes(b) as f64),
        UINT64 => each(bytes, |b| u64::from_le_bytes(b) as f64),
        other => return Err(format!("numbers of an unknown kind ({other})")),
    })
}

/// Passes over what is left of a stream.
pub(super) fn skip(input: &mut impl Read) -> Result<(), Reason> {
    std::io::copy(input, &mut std::io::sink()).map(|_| ()).map_err(|e| damaged(&e))
}

fn read_up_to(input: &mut impl Read, out: &mut [u8]) -> Result<usize, Reason> {
    let mut got = 0;
    while got < out.len() {
        match input.read(&mut out[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(damaged(&e)),
        }
    }
    Ok(got)
}

fn ends() -> Reason {
    "it ends in the middle of an array; the file is incomplete, fetch it again".into()
}

fn damaged(error: &std::io::Error) -> Reason {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => ends(),
        _ => format!("it cannot be read ({error}); the file is damaged, fetch it again"),
    }
}
