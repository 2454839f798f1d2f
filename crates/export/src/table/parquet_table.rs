//! Apache Parquet, not compressed: vectors of floats hardly can be, and every reader takes it.
//!
//! ```text
//! message embeddings {
//!     required binary path (STRING);
//!     optional binary label (STRING);
//!     required group vector (LIST) {
//!         repeated group list { required float element; }
//!     }
//! }
//! ```
//!
//! A file is the magic, row groups, the footer, the footer's length and the magic again. A row
//! group has a data page (version 1) for each column: header, levels, values one after the other.
//! Levels say which values belong together: a repetition level of 0 begins a row, 1 goes on with
//! it; a definition level of 1 says that there is a value, 0 that there is none. Names and numbers
//! are the standard's:
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.
//!
//! Kept by hand: one table is written, and the crate `parquet` brings twenty others into every
//! build.

mod column;
mod thrift;

use std::io::Write;

use super::TableInfo;
use crate::ExportError;
use column::{BYTE_ARRAY, Column, FLOAT};
use thrift::Struct;

const MAGIC: &[u8; 4] = b"PAR1";
/// Values of vectors in a row group: 16 MiB of them.
const GROUP: usize = 1 << 22;
// Of `FieldRepetitionType` and `ConvertedType`.
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;
const UTF8: i32 = 0;
const LIST: i32 = 3;

pub struct ParquetTable<W> {
    to: W,
    /// Bytes so far.
    written: u64,
    notes: Vec<(String, String)>,
    rows_in_group: usize,
    /// Rows of the group that is not written yet.
    waiting: usize,
    columns: [Column; 3],
    rows: usize,
    /// `RowGroup` of each group that is written.
    groups: Vec<Vec<u8>>,
}

impl<W: Write> ParquetTable<W> {
    pub fn new(mut to: W, info: &TableInfo) -> Result<Self, ExportError> {
        to.write_all(MAGIC)?;
        Ok(ParquetTable {
            to,
            written: MAGIC.len() as u64,
            notes: info.notes.clone(),
            rows_in_group: (GROUP / info.dim.max(1)).clamp(1, 1 << 16),
            waiting: 0,
            columns: [
                Column::texts(&["path"], false),
                Column::texts(&["label"], true),
                Column::lists(&["vector", "list", "element"]),
            ],
            rows: 0,
            groups: vec![],
        })
    }

    pub fn row(
        &mut self,
        path: &str,
        label: Option<&str>,
        vector: &[f32],
    ) -> Result<(), ExportError> {
        let [paths, labels, vectors] = &mut self.columns;
        paths.add_text(Some(path));
        labels.add_text(label);
        vectors.add_list(vector);
        self.waiting += 1;
        match self.waiting >= self.rows_in_group {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub fn finish(mut self) -> Result<W, ExportError> {
        if self.waiting > 0 {
            self.flush()?;
        }
        let footer = self.footer();
        self.to.write_all(&footer)?;
        self.to.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.to.write_all(MAGIC)?;
        Ok(self.to)
    }

    /// Writes a row group.
    fn flush(&mut self) -> Result<(), ExportError> {
        let begun = self.written;
        let mut chunks = vec![];
        for column in &mut self.columns {
            let (length, chunk) = column.write(&mut self.to, self.written)?;
            self.written += length;
            chunks.push(chunk);
        }
        let length = (self.written - begun) as i64;
        let group = Struct::new()
            .structs(1, &chunks)
            .i64(2, length)
            .i64(3, self.waiting as i64)
            .i64(5, begun as i64)
            .i64(6, length); // compressed
        self.groups.push(group.end());
        self.rows += self.waiting;
        self.waiting = 0;
        Ok(())
    }

    /// `FileMetaData`.
    fn footer(&self) -> Vec<u8> {
        let note = |(key, value): &(String, String)| Struct::new().binary(1, key).binary(2, value);
        let notes: Vec<Vec<u8>> = self.notes.iter().map(|n| note(n).end()).collect();
        // Texts are sorted by their bytes, as their type says: else nobody could use their first
        // and last.
        let order = || Struct::new().structure(1, Struct::new()).end();
        let footer = Struct::new()
            .i32(1, 1) // version
            .structs(2, &schema())
            .i64(3, self.rows as i64)
            .structs(4, &self.groups)
            .structs(5, &notes)
            .binary(6, concat!("anchorhood ", env!("CARGO_PKG_VERSION")))
            .structs(7, &[order(), order(), order()]);
        footer.end()
    }
}

/// The tree of `SchemaElement`s, each before its children: 1 is its type, 3 its repetition, 4 its
/// name, 5 the number of its children, 6 and 10 what is meant by it, for old readers and for
/// others.
fn schema() -> [Vec<u8>; 6] {
    let text = |name, repetition| {
        Struct::new()
            .i32(1, BYTE_ARRAY)
            .i32(3, repetition)
            .binary(4, name)
            .i32(6, UTF8)
            .structure(10, Struct::new().structure(1, Struct::new()))
    };
    let elements = [
        Struct::new().binary(4, "embeddings").i32(5, 3),
        text("path", REQUIRED),
        text("label", OPTIONAL),
        Struct::new()
            .i32(3, REQUIRED)
            .binary(4, "vector")
            .i32(5, 1)
            .i32(6, LIST)
            .structure(10, Struct::new().structure(3, Struct::new())),
        Struct::new().i32(3, REPEATED).binary(4, "list").i32(5, 1),
        Struct::new().i32(1, FLOAT).i32(3, REQUIRED).binary(4, "element"),
    ];
    elements.map(Struct::end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two row groups, every byte of them; what pyarrow and DuckDB make of such files is in
    /// `tests/it/long/parquet.rs`.
    #[test]
    fn bytes_are_the_standards() {
        let info = TableInfo { rows: 3, dim: 2, notes: vec![("k".into(), "v".into())] };
        let mut table = ParquetTable::new(vec![], &info).unwrap();
        table.rows_in_group = 2;
        table.row("a", Some("x"), &[1.0, -1.0]).unwrap();
        table.row("ü", None, &[0.0, 0.5]).unwrap();
        table.row("b", None, &[2.0, 0.0]).unwrap();
        let program = concat!("anchorhood ", env!("CARGO_PKG_VERSION"));
        let footer: &[&[u8]] = &[
            b"\x15\x02", // version 1
            b"\x19\x6c", // schema: six elements
            b"\x48\x0aembeddings\x15\x06\x00",
            b"\x15\x0c\x25\x00\x18\x04path\x25\x00\x4c\x1c\x00\x00\x00", // byte array, required, UTF8, STRING
            b"\x15\x0c\x25\x02\x18\x05label\x25\x00\x4c\x1c\x00\x00\x00", // optional
            b"\x35\x00\x18\x06vector\x15\x02\x15\x06\x4c\x3c\x00\x00\x00", // one child, LIST
            b"\x35\x04\x18\x04list\x15\x02\x00",                         // repeated, one child
            b"\x15\x08\x25\x00\x18\x07element\x00",                      // float
            b"\x16\x06",                                                 // three rows
            b"\x19\x2c",                                                 // two row groups
            b"\x19\x3c",                                                 // of three columns
            b"\x26\x00\x1c\x15\x0c\x19\x25\x00\x06\x19\x18\x04path\x15\x00", // PLAIN and RLE, uncompressed
            b"\x16\x04\x16\x38\x16\x38\x26\x08", // 2 values, 28 bytes from 4 on
            b"\x3c\x36\x00\x28\x02\xc3\xbc\x18\x01a\x00\x00\x00", // no null, last `ü`, first `a`
            b"\x26\x00\x1c\x15\x0c\x19\x25\x00\x06\x19\x18\x05label\x15\x00",
            b"\x16\x04\x16\x3c\x16\x3c\x26\x40", // 2 values, 30 bytes from 32 on
            b"\x3c\x36\x02\x28\x01x\x18\x01x\x00\x00\x00", // one null
            b"\x26\x00\x1c\x15\x08\x19\x25\x00\x06\x19\x38\x06vector\x04list\x07element\x15\x00",
            b"\x16\x08\x16\x66\x16\x66\x26\x7c\x00\x00", // 4 values, 51 bytes from 62 on
            b"\x16\xda\x01\x16\x04\x26\x08\x16\xda\x01\x00", // 109 bytes, 2 rows, from 4 on
            b"\x19\x3c",
            b"\x26\x00\x1c\x15\x0c\x19\x25\x00\x06\x19\x18\x04path\x15\x00",
            b"\x16\x02\x16\x2c\x16\x2c\x26\xe2\x01", // 1 value, 22 bytes from 113 on
            b"\x3c\x36\x00\x28\x01b\x18\x01b\x00\x00\x00",
            b"\x26\x00\x1c\x15\x0c\x19\x25\x00\x06\x19\x18\x05label\x15\x00",
            b"\x16\x02\x16\x2e\x16\x2e\x26\x8e\x02", // 1 value, 23 bytes from 135 on
            b"\x3c\x36\x02\x00\x00\x00",             // one null, no first or last
            b"\x26\x00\x1c\x15\x08\x19\x25\x00\x06\x19\x38\x06vector\x04list\x07element\x15\x00",
            b"\x16\x04\x16\x4e\x16\x4e\x26\xbc\x02\x00\x00", // 2 values, 39 bytes from 158 on
            b"\x16\xa8\x01\x16\x02\x26\xe2\x01\x16\xa8\x01\x00", // 84 bytes, 1 row, from 113 on
            b"\x19\x1c\x18\x01k\x18\x01v\x00",               // one note
            &[0x18, program.len() as u8],
            program.as_bytes(),
            b"\x19\x3c\x1c\x00\x00\x1c\x00\x00\x1c\x00\x00\x00", // three columns, each in its type's order
        ];
        let footer = footer.concat();
        let pages: &[&[u8]] = &[
            // Every page: DATA_PAGE, its size twice, number of values, PLAIN, levels RLE.
            b"\x15\x00\x15\x16\x15\x16\x2c\x15\x04\x15\x00\x15\x06\x15\x06\x00\x00",
            b"\x01\x00\x00\x00a\x02\x00\x00\x00\xc3\xbc",
            b"\x15\x00\x15\x1a\x15\x1a\x2c\x15\x04\x15\x00\x15\x06\x15\x06\x00\x00",
            b"\x04\x00\x00\x00\x02\x01\x02\x00", // one is there, one is not
            b"\x01\x00\x00\x00x",
            b"\x15\x00\x15\x44\x15\x44\x2c\x15\x08\x15\x00\x15\x06\x15\x06\x00\x00",
            b"\x08\x00\x00\x00\x02\x00\x02\x01\x02\x00\x02\x01", // begin, go on, begin, go on
            b"\x02\x00\x00\x00\x08\x01",                         // four are there
            b"\x00\x00\x80\x3f\x00\x00\x80\xbf\x00\x00\x00\x00\x00\x00\x00\x3f",
            b"\x15\x00\x15\x0a\x15\x0a\x2c\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00",
            b"\x01\x00\x00\x00b",
            b"\x15\x00\x15\x0c\x15\x0c\x2c\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00",
            b"\x02\x00\x00\x00\x02\x00",
            b"\x15\x00\x15\x2c\x15\x2c\x2c\x15\x04\x15\x00\x15\x06\x15\x06\x00\x00",
            b"\x04\x00\x00\x00\x02\x00\x02\x01",
            b"\x02\x00\x00\x00\x04\x01",
            b"\x00\x00\x00\x40\x00\x00\x00\x00",
        ];
        let length = (footer.len() as u32).to_le_bytes();
        let expected = [b"PAR1", &pages.concat()[..], &footer, &length, b"PAR1"].concat();
        assert_eq!(table.finish().unwrap(), expected);
    }
}
