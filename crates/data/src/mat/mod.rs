//! MATLAB files of version 5, as far as published data sets use them: arrays of numbers, text,
//! cells and structures, compressed or not, little-endian.
//!
//! Variables are read one after the other from a stream; those not wanted are passed over. Whatever
//! the file holds, memory is bounded: a length is believed only as far as bytes arrive, nothing may
//! be longer than the caller allows, and structures nest to a fixed depth. Crates were weighed:
//! `matfile` (0.5) passes over cells and structures, which the lists of Stanford Dogs and ImageNet
//! consist of, and is slower and holds pixels three times.

mod element;
#[cfg(test)]
mod tests;
mod value;

use std::io::{BufReader, Read};
use std::path::Path;

use anchorhood_storage::open_regular;
use flate2::read::ZlibDecoder;

use crate::DataError;
use element::{COMPRESSED, MATRIX, Tag};
pub(crate) use value::Value;

/// What a reader says of a file it cannot read.
type Reason = String;

const HEADER: usize = 128;

/// The wanted variables of the file at `path`, in the order of `wanted`. No array may have more
/// than `most` bytes.
pub(crate) fn read<const N: usize>(
    path: &Path,
    wanted: [&str; N],
    most: u64,
) -> Result<[Value; N], DataError> {
    let file = open_regular(path).map_err(|e| DataError::io(path, e))?;
    read_from(&mut BufReader::new(file), wanted, most)
        .map_err(|reason| DataError::bad(path, reason))
}

fn read_from<const N: usize>(
    input: &mut impl Read,
    wanted: [&str; N],
    most: u64,
) -> Result<[Value; N], Reason> {
    check_header(input)?;
    let mut found: [Option<Value>; N] = [const { None }; N];
    while found.iter().any(Option::is_none) {
        let Some(tag) = Tag::read_or_end(input)? else {
            break;
        };
        let mut body = input.take(tag.bytes);
        let variable = match tag.kind {
            COMPRESSED => {
                let mut inside = ZlibDecoder::new(&mut body);
                let tag = Tag::read(&mut inside)?;
                // Anything else inside is passed over, like anything else outside.
                match tag.kind {
                    MATRIX => value::read_wanted(&mut inside.take(tag.bytes), &wanted, most)?,
                    _ => None,
                }
            }
            MATRIX => value::read_wanted(&mut body, &wanted, most)?,
            _ => None,
        };
        if let Some((at, value)) = variable {
            found[at] = Some(value);
        }
        element::skip(&mut body)?;
    }
    if let Some(at) = found.iter().position(Option::is_none) {
        return Err(format!("expected a variable called {}", wanted[at]));
    }
    Ok(found.map(|value| value.expect("none is missing")))
}

/// The first 128 bytes: text, version, byte order.
fn check_header(input: &mut impl Read) -> Result<(), Reason> {
    let mut header = Vec::new();
    let read = input.take(HEADER as u64).read_to_end(&mut header);
    read.map_err(|e| e.to_string())?;
    let save = "expected version 5; save it with `save -v6` or `-v7`";
    if header.starts_with(b"MATLAB 7.3") || header.starts_with(b"\x89HDF") {
        return Err(format!("a MATLAB 7.3 file (HDF5); {save}"));
    }
    // Version 4 has no text: it begins with a small number, and so with zeros.
    if header.iter().take(4).any(|&byte| byte == 0) {
        return Err(format!("not a MATLAB file, or one of version 4; {save}"));
    }
    match header.get(124..HEADER).unwrap_or_default() {
        [0x00, 0x01, b'I', b'M'] => Ok(()),
        [0x01, 0x00, b'M', b'I'] => Err(format!("its byte order is big-endian; {save}")),
        _ => Err(format!("not a MATLAB file of version 5; {save}")),
    }
}
