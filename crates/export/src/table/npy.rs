//! NumPy's .npy, version 1.0: a magic word, a description in Python's syntax padded to 64 bytes,
//! and the values. See <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use std::io::{self, Write};

/// Bytes that the description is padded to, so that the values are aligned.
const ALIGNED: usize = 64;

pub fn write_header(to: &mut impl Write, rows: usize, dim: usize) -> io::Result<()> {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    let before = 10; // magic word, version, length
    let whole = (before + text.len() + 1).next_multiple_of(ALIGNED);
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&((whole - before) as u16).to_le_bytes())?;
    writeln!(to, "{text:width$}", width = whole - before - 1)
}

pub fn write_row(to: &mut impl Write, vector: &[f32]) -> io::Result<()> {
    let bytes: Vec<u8> = vector.iter().flat_map(|v| v.to_le_bytes()).collect();
    to.write_all(&bytes)
}

/// What an array cannot hold: `path,label`, a line for each of its rows, for a CSV file beside it.
pub fn write_npy_names<'a>(
    to: impl Write,
    rows: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(["path", "label"])?;
    for (path, label) in rows {
        writer.write_record([path, label.unwrap_or("")])?;
    }
    writer.flush()
}
