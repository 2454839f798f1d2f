//! A column of one row group: its values and levels as they will lie in its page.

use std::io::{self, Write};

use anchorhood_storage::write_varint;

use super::thrift::Struct;

// Of `Type`, `Encoding`, `CompressionCodec` and `PageType`.
pub const FLOAT: i32 = 4;
pub const BYTE_ARRAY: i32 = 6;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const UNCOMPRESSED: i32 = 0;
const DATA_PAGE: i32 = 0;

/// A column, which is empty again when its page is written.
pub struct Column {
    /// Its name, with those of the groups it is in.
    path: &'static [&'static str],
    kind: i32,
    /// Where there are lists.
    repetition: Option<Levels>,
    /// Where something may be missing.
    definition: Option<Levels>,
    /// How many there are, those that are missing too.
    count: u64,
    values: Vec<u8>,
    texts: Texts,
}

/// What is known of a column of texts.
#[derive(Default)]
struct Texts {
    nulls: i64,
    /// The first and the last in the order of their bytes.
    range: Option<(String, String)>,
}

impl Column {
    pub fn texts(path: &'static [&'static str], optional: bool) -> Self {
        Column {
            path,
            kind: BYTE_ARRAY,
            repetition: None,
            definition: optional.then(Levels::default),
            count: 0,
            values: vec![],
            texts: Texts::default(),
        }
    }

    pub fn lists(path: &'static [&'static str]) -> Self {
        Column { kind: FLOAT, repetition: Some(Levels::default()), ..Column::texts(path, true) }
    }

    pub fn add_text(&mut self, text: Option<&str>) {
        self.count += 1;
        self.define(text.is_some(), 1);
        self.texts.see(text);
        if let Some(text) = text {
            self.values.extend((text.len() as u32).to_le_bytes());
            self.values.extend_from_slice(text.as_bytes());
        }
    }

    /// A row's list. One without values takes a place too, where nothing is.
    pub fn add_list(&mut self, values: &[f32]) {
        let places = values.len().max(1) as u64;
        self.count += places;
        self.define(!values.is_empty(), places);
        if let Some(repetition) = &mut self.repetition {
            repetition.push(0, 1);
            repetition.push(1, places - 1);
        }
        self.values.reserve(values.len() * 4);
        for value in values {
            self.values.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn define(&mut self, there: bool, places: u64) {
        if let Some(definition) = &mut self.definition {
            definition.push(there.into(), places);
        }
    }

    /// Writes the page. Gives its length, and the `ColumnChunk` that says where it is: `at`.
    pub fn write(&mut self, to: &mut impl Write, at: u64) -> io::Result<(u64, Vec<u8>)> {
        let levels = [&mut self.repetition, &mut self.definition];
        let levels: Vec<u8> = levels.into_iter().flatten().flat_map(Levels::take).collect();
        let header = self.header(levels.len() + self.values.len())?;
        for part in [&header, &levels, &self.values] {
            to.write_all(part)?;
        }
        let length = (header.len() + levels.len() + self.values.len()) as u64;
        let chunk = self.chunk(at as i64, length as i64);
        self.count = 0;
        self.values.clear();
        self.texts = Texts::default();
        Ok((length, chunk))
    }

    /// `PageHeader`.
    fn header(&self, size: usize) -> io::Result<Vec<u8>> {
        let too_large = |_| io::Error::other("a page of a Parquet file has 2 GiB at most");
        let size = i32::try_from(size).map_err(too_large)?;
        let count = i32::try_from(self.count).map_err(too_large)?;
        let page = Struct::new()
            .i32(1, count)
            .i32(2, PLAIN)
            .i32(3, RLE) // definition levels
            .i32(4, RLE); // repetition levels
        let header = Struct::new()
            .i32(1, DATA_PAGE)
            .i32(2, size)
            .i32(3, size) // compressed
            .structure(5, page);
        Ok(header.end())
    }

    /// `ColumnChunk`, with its `ColumnMetaData`.
    fn chunk(&self, at: i64, length: i64) -> Vec<u8> {
        let mut column = Struct::new()
            .i32(1, self.kind)
            .enums(2, &[PLAIN, RLE])
            .strings(3, self.path)
            .i32(4, UNCOMPRESSED)
            .i64(5, self.count as i64)
            .i64(6, length)
            .i64(7, length) // compressed
            .i64(9, at);
        if self.kind == BYTE_ARRAY {
            column = column.structure(12, self.texts.statistics());
        }
        let nowhere_else = 0;
        let chunk = Struct::new().i64(2, nowhere_else).structure(3, column);
        chunk.end()
    }
}

impl Texts {
    fn see(&mut self, text: Option<&str>) {
        match (text, &mut self.range) {
            (None, _) => self.nulls += 1,
            (Some(text), None) => self.range = Some((text.into(), text.into())),
            (Some(text), Some((first, _))) if text < first.as_str() => *first = text.into(),
            (Some(text), Some((_, last))) if text > last.as_str() => *last = text.into(),
            (Some(_), Some(_)) => {}
        }
    }

    /// `Statistics`, by which a reader passes over row groups.
    fn statistics(&self) -> Struct {
        let statistics = Struct::new().i64(3, self.nulls);
        match &self.range {
            Some((first, last)) => statistics.binary(5, last).binary(6, first),
            None => statistics,
        }
    }
}

/// Levels as runs of equal ones. (Parquet would also have them a bit each, which is shorter where
/// they change often.)
#[derive(Default)]
struct Levels {
    runs: Vec<u8>,
    /// Of the last run, which is not in `runs` yet.
    level: u8,
    times: u64,
}

impl Levels {
    fn push(&mut self, level: u8, times: u64) {
        if level != self.level && times > 0 {
            self.end_run();
            self.level = level;
        }
        self.times += times;
    }

    fn end_run(&mut self) {
        if self.times > 0 {
            write_varint(self.times << 1, &mut self.runs);
            self.runs.push(self.level);
            self.times = 0;
        }
    }

    /// Their length and the runs.
    fn take(&mut self) -> Vec<u8> {
        self.end_run();
        let runs = std::mem::take(&mut self.runs);
        let length = (runs.len() as u32).to_le_bytes();
        [&length[..], &runs].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_runs() {
        let mut levels = Levels::default();
        for (level, times) in [(1, 0), (0, 1), (1, 60), (1, 67), (0, 1), (0, 0), (1, 2)] {
            levels.push(level, times);
        }
        let runs = [2, 0, 0xfe, 0x01, 1, 2, 0, 4, 1]; // 1 × 0, 127 × 1, 1 × 0, 2 × 1
        assert_eq!(levels.take(), [&[9, 0, 0, 0][..], &runs].concat());
        assert_eq!(levels.take(), [0, 0, 0, 0]);
    }
}
