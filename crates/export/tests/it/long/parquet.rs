//! Parquet files of this crate, read by pyarrow and DuckDB.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anchorhood_export::{TableFormat, TableInfo, TableWriter};
use anchorhood_testing::python_with;

const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/parquet_reads.py");

/// Writes a table whose every value can be told from its place.
fn write(folder: &Path, rows: usize, dim: usize) -> PathBuf {
    let path = folder.join(format!("{rows}x{dim}.parquet"));
    let notes = [("model", "ä"), ("empty", "")].map(|(k, v)| (k.to_string(), v.to_string()));
    let info = TableInfo { rows, dim, notes: notes.into() };
    let file = File::create(&path).unwrap();
    let mut table = TableWriter::new(TableFormat::Parquet, file, &info).unwrap();
    for row in 0..rows {
        let class = format!("class {}", row / 1000);
        let path = format!("{class}/ü, \"{row}\".png");
        let label = (row % 7 != 3).then_some(class.as_str());
        let value = |i: usize| (i * 7919 % 1009) as f32 / 504.5 - 1.0;
        let vector: Vec<f32> = (row * dim..(row + 1) * dim).map(value).collect();
        table.row(&path, label, &vector).unwrap();
    }
    table.finish().unwrap();
    path
}

/// None, one, vectors without values, one value each in two row groups, and as many as a large
/// folder has.
#[test]
#[ignore = "long: needs Python with pyarrow and DuckDB"]
fn pyarrow_and_duckdb_find_every_value() {
    let Some(python) = python_with(&["pyarrow", "duckdb", "numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let sizes = [(0, 3), (1, 3), (2500, 0), (70_000, 1), (100_000, 128)];
    let paths = sizes.map(|(rows, dim)| write(folder.path(), rows, dim));
    let read = Command::new(python).arg(READER).args(paths).output();
    let read = read.expect("it started a moment ago");
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{said}");
}
