//! Vectors of pictures as a table: a row for each, with its path and, where it has one, its label.
//!
//! | format | how it looks |
//! |---|---|
//! | Parquet | `path` (string), `label` (string, may be null), `vector` (list of float) |
//! | NumPy | a float32 array, pictures × values; paths and labels are in a CSV file beside it |
//! | CSV | `path,label,v0,v1,…` |
//! | JSON lines | `{"path": …, "label": …, "vector": […]}`, a line for each |
//!
//! Rows are written as they come; only a Parquet file keeps some thousands of them, for its row
//! groups.

mod parquet_table;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

use crate::ExportError;

/// What a table is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Apache Parquet.
    Parquet,
    /// NumPy's .npy.
    Npy,
    /// Comma-separated values.
    Csv,
    /// A JSON object a line.
    Jsonl,
}

impl TableFormat {
    /// All of them.
    pub const ALL: [TableFormat; 4] =
        [TableFormat::Parquet, TableFormat::Npy, TableFormat::Csv, TableFormat::Jsonl];

    /// The ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            TableFormat::Parquet => "parquet",
            TableFormat::Npy => "npy",
            TableFormat::Csv => "csv",
            TableFormat::Jsonl => "jsonl",
        }
    }

    /// What the ending of a file's name says.
    pub fn of(path: &Path) -> Option<TableFormat> {
        let ending = path.extension()?.to_str()?.to_lowercase();
        TableFormat::ALL.into_iter().find(|f| f.ending() == ending)
    }
}

impl fmt::Display for TableFormat {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, ".{}", self.ending())
    }
}

/// What is known before the first row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableInfo {
    /// How many rows there will be.
    pub rows: usize,
    /// Length of a vector.
    pub dim: usize,
    /// Kept in a Parquet file's metadata.
    pub notes: Vec<(String, String)>,
}

/// A table being written.
pub struct TableWriter<W: Write + Send> {
    dim: usize,
    kind: Kind<W>,
}

enum Kind<W: Write + Send> {
    Parquet(Box<parquet_table::ParquetTable<W>>),
    Npy(W),
    Csv(Box<csv::Writer<W>>),
    Jsonl(W),
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a table.
    pub fn new(format: TableFormat, mut to: W, info: &TableInfo) -> Result<Self, ExportError> {
        let kind = match format {
            TableFormat::Parquet => {
                Kind::Parquet(Box::new(parquet_table::ParquetTable::new(to, info)?))
            }
            TableFormat::Npy => {
                write_npy_header(&mut to, info.rows, info.dim)?;
                Kind::Npy(to)
            }
            TableFormat::Csv => {
                let mut table = csv::Writer::from_writer(to);
                let columns = (0..info.dim).map(|i| format!("v{i}"));
                let names = ["path".to_string(), "label".into()].into_iter().chain(columns);
                table.write_record(names).map_err(io::Error::from)?;
                Kind::Csv(Box::new(table))
            }
            TableFormat::Jsonl => Kind::Jsonl(to),
        };
        Ok(TableWriter { dim: info.dim, kind })
    }

    /// Adds a row.
    pub fn row(
        &mut self,
        path: &str,
        label: Option<&str>,
        vector: &[f32],
    ) -> Result<(), ExportError> {
        if vector.len() != self.dim {
            let (got, expected) = (vector.len(), self.dim);
            let why = format!("a vector of {got} values in a table of {expected}");
            return Err(ExportError::Failed(why));
        }
        match &mut self.kind {
            Kind::Parquet(table) => table.row(path, label, vector)?,
            Kind::Npy(to) => {
                let bytes: Vec<u8> = vector.iter().flat_map(|v| v.to_le_bytes()).collect();
                to.write_all(&bytes)?;
            }
            Kind::Csv(table) => {
                // The shortest text that reads back as the same float.
                let values = vector.iter().map(f32::to_string);
                let row = [path.to_string(), label.unwrap_or("").into()].into_iter().chain(values);
                table.write_record(row).map_err(io::Error::from)?;
            }
            Kind::Jsonl(to) => {
                writeln!(to, "{}", json!({ "path": path, "label": label, "vector": vector }))?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and gives back what was written to.
    pub fn finish(self) -> Result<W, ExportError> {
        match self.kind {
            Kind::Parquet(table) => table.finish(),
            Kind::Npy(to) | Kind::Jsonl(to) => Ok(to),
            Kind::Csv(table) => Ok(table.into_inner().map_err(|e| e.into_error())?),
        }
    }
}

/// The beginning of NumPy's .npy, version 1.0: a magic word and a description in Python's syntax,
/// padded so that the values are aligned. See
/// <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.
fn write_npy_header(to: &mut impl Write, rows: usize, dim: usize) -> io::Result<()> {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    let before = 10; // magic word, version, length
    let whole = (before + text.len() + 1).next_multiple_of(64);
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&((whole - before) as u16).to_le_bytes())?;
    writeln!(to, "{text:width$}", width = whole - before - 1)
}

/// What an array cannot hold: `path,label`, a line for each of its rows, for a CSV file beside it.
pub(crate) fn write_npy_names<'a>(
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

#[cfg(test)]
mod tests {
    use super::*;

    pub fn written(format: TableFormat) -> Vec<u8> {
        let info = TableInfo { rows: 2, dim: 3, notes: vec![("model".into(), "m".into())] };
        let mut table = TableWriter::new(format, vec![], &info).unwrap();
        table.row("a, \"ü\".png", Some("cat"), &[1.0, -0.5, 1e-9]).unwrap();
        table.row("b.png", None, &[0.1, 0.2, f32::MAX]).unwrap();
        let wrong = table.row("c.png", None, &[0.0]);
        assert!(matches!(wrong, Err(ExportError::Failed(_))));
        table.finish().unwrap()
    }

    #[test]
    fn formats_are_told_by_the_ending() {
        for format in TableFormat::ALL {
            let name = format!("x.{}", format.ending().to_uppercase());
            assert_eq!(TableFormat::of(Path::new(&name)), Some(format));
        }
        assert_eq!(TableFormat::of(Path::new("x.txt")), None);
        assert_eq!(TableFormat::of(Path::new("parquet")), None);
    }

    #[test]
    fn text_formats_say_it_exactly() {
        let text = String::from_utf8(written(TableFormat::Csv)).unwrap();
        let expected = "path,label,v0,v1,v2\n\"a, \"\"ü\"\".png\",cat,1,-0.5,0.000000001\n\
                        b.png,,0.1,0.2,340282350000000000000000000000000000000\n";
        assert_eq!(text, expected);
        let text = String::from_utf8(written(TableFormat::Jsonl)).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines[0]["path"], "a, \"ü\".png");
        assert_eq!(lines[1]["label"], serde_json::Value::Null);
        let read = lines[1]["vector"][0].as_f64().unwrap() as f32;
        assert_eq!(read, 0.1);
    }

    /// The layout NumPy documents; NumPy itself reads it in the program's tests.
    #[test]
    fn npy_is_aligned() {
        let bytes = written(TableFormat::Npy);
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
        assert_eq!((10 + header) % 64, 0);
        assert_eq!(bytes.len(), 10 + header + 2 * 3 * 4);
    }
}
