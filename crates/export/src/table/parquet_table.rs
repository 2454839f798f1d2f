//! Apache Parquet, not compressed: vectors of floats hardly can be, and every reader takes it.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::TableInfo;
use crate::ExportError;

const SCHEMA: &str = "
    message embeddings {
        required binary path (STRING);
        optional binary label (STRING);
        required group vector (LIST) {
            repeated group list { required float element; }
        }
    }";
/// Values of vectors in a row group: 16 MiB of them.
const GROUP: usize = 1 << 22;

pub struct ParquetTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows_in_group: usize,
    dim: usize,
    paths: Vec<ByteArray>,
    labels: Vec<ByteArray>,
    /// 1 where a row has a label.
    labelled: Vec<i16>,
    values: Vec<f32>,
}

impl<W: Write + Send> ParquetTable<W> {
    pub fn new(to: W, info: &TableInfo) -> Result<Self, ExportError> {
        let vector = ColumnPath::new(["vector", "list", "element"].map(String::from).into());
        let note = |(key, value): &(String, String)| KeyValue {
            key: key.clone(),
            value: Some(value.clone()),
        };
        let properties = WriterProperties::builder()
            .set_created_by(format!("anchorhood {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(info.notes.iter().map(note).collect()))
            .set_column_dictionary_enabled(vector.clone(), false)
            .set_column_encoding(vector.clone(), Encoding::PLAIN)
            .set_column_statistics_enabled(vector, EnabledStatistics::None)
            .build();
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        Ok(ParquetTable {
            writer: SerializedFileWriter::new(to, schema, Arc::new(properties))?,
            rows_in_group: (GROUP / info.dim.max(1)).clamp(1, 1 << 16),
            dim: info.dim,
            paths: vec![],
            labels: vec![],
            labelled: vec![],
            values: vec![],
        })
    }

    pub fn row(
        &mut self,
        path: &str,
        label: Option<&str>,
        vector: &[f32],
    ) -> Result<(), ExportError> {
        self.paths.push(path.into());
        self.labels.extend(label.map(ByteArray::from));
        self.labelled.push(i16::from(label.is_some()));
        self.values.extend_from_slice(vector);
        match self.paths.len() >= self.rows_in_group {
            true => self.flush(),
            false => Ok(()),
        }
    }

    pub fn finish(mut self) -> Result<W, ExportError> {
        if !self.paths.is_empty() {
            self.flush()?;
        }
        Ok(self.writer.into_inner()?)
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        let mut group = self.writer.next_row_group()?;
        if let Some(mut column) = group.next_column()? {
            let to = column.typed::<ByteArrayType>();
            to.write_batch(&self.paths, None, None)?;
            column.close()?;
        }
        if let Some(mut column) = group.next_column()? {
            let to = column.typed::<ByteArrayType>();
            to.write_batch(&self.labels, Some(&self.labelled), None)?;
            column.close()?;
        }
        if let Some(mut column) = group.next_column()? {
            // Every value is there; each row's first begins a list, the others go on with it.
            let there = vec![1; self.values.len()];
            let goes_on: Vec<i16> = (0..self.values.len())
                .map(|i| i16::from(!i.is_multiple_of(self.dim)))
                .collect();
            let to = column.typed::<FloatType>();
            to.write_batch(&self.values, Some(&there), Some(&goes_on))?;
            column.close()?;
        }
        group.close()?;
        self.paths.clear();
        self.labels.clear();
        self.labelled.clear();
        self.values.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    /// In several row groups, as a large table is.
    #[test]
    fn what_was_written_is_read() {
        let info = TableInfo {
            rows: 10,
            dim: 2,
            notes: vec![("model".into(), "m".into())],
        };
        let mut table = ParquetTable::new(vec![], &info).unwrap();
        table.rows_in_group = 4;
        for i in 0..10_u8 {
            let label = (i % 2 == 0).then_some("even");
            table
                .row(&format!("{i}.png"), label, &[f32::from(i), -1.0])
                .unwrap();
        }
        let bytes = table.finish().unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.num_row_groups(), 3);
        let notes = reader
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .unwrap();
        assert_eq!(notes[0].key, "model");
        for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let columns: Vec<Field> = row
                .unwrap()
                .into_columns()
                .into_iter()
                .map(|c| c.1)
                .collect();
            assert_eq!(columns[0], Field::Str(format!("{i}.png")));
            assert_eq!(matches!(columns[1], Field::Null), i % 2 == 1);
            let Field::ListInternal(list) = &columns[2] else {
                panic!("{columns:?}")
            };
            assert_eq!(
                list.elements(),
                [Field::Float(i as f32), Field::Float(-1.0)]
            );
        }
    }
}
