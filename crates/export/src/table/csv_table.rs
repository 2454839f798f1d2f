//! Comma-separated values, a column for each of a vector's.

use std::io::Write;

use crate::ExportError;

pub struct CsvTable<W: Write>(csv::Writer<W>);

impl<W: Write> CsvTable<W> {
    pub fn new(to: W, dim: usize) -> Result<Self, ExportError> {
        let mut writer = csv::Writer::from_writer(to);
        let columns = (0..dim).map(|i| format!("v{i}"));
        let names = ["path".to_string(), "label".into()].into_iter();
        writer.write_record(names.chain(columns)).map_err(io)?;
        Ok(CsvTable(writer))
    }

    pub fn row(
        &mut self,
        path: &str,
        label: Option<&str>,
        vector: &[f32],
    ) -> Result<(), ExportError> {
        let writer = &mut self.0;
        writer.write_field(path).map_err(io)?;
        writer.write_field(label.unwrap_or("")).map_err(io)?;
        for value in vector {
            // The shortest text that reads back as the same float.
            writer.write_field(value.to_string()).map_err(io)?;
        }
        Ok(writer.write_record(None::<&[u8]>).map_err(io)?)
    }

    pub fn finish(self) -> Result<W, ExportError> {
        let whole = self.0.into_inner();
        Ok(whole.map_err(|e| e.into_error())?)
    }
}

fn io(error: csv::Error) -> std::io::Error {
    error.into()
}
