//! The vectors of a folder of pictures as a table, whole or not at all. What was computed stays in
//! the journal until it is.

use std::path::{Path, PathBuf};

use anchorhood_index::{FolderVectors, Model};
use anchorhood_storage::{AtomicFile, FileSystem};
use anchorhood_train::VERSION;

use crate::table::write_npy_names;
use crate::{ExportError, TableFormat, TableInfo, TableWriter};

/// `vectors.paths.csv` beside `vectors.npy`, an array that cannot hold names.
pub fn npy_names_file(output: &Path) -> PathBuf {
    output.with_extension("paths.csv")
}

/// Writes the table, and forgets the job that it came from.
pub fn save_folder_table(
    disk: &dyn FileSystem,
    format: TableFormat,
    output: &Path,
    model: &Model,
    mut vectors: FolderVectors,
) -> Result<(), ExportError> {
    if format == TableFormat::Npy {
        let names = npy_names_file(output);
        save_names(disk, &names, &vectors).map_err(ExportError::in_file(&names))?;
    }
    save_rows(disk, format, output, model, &mut vectors).map_err(ExportError::in_file(output))?;
    Ok(vectors.journal.remove()?)
}

fn save_names(
    disk: &dyn FileSystem,
    path: &Path,
    vectors: &FolderVectors,
) -> Result<(), ExportError> {
    let files = vectors.files.iter();
    let good = files.filter(|f| vectors.journal.has_vector(&f.name));
    let rows = good.map(|f| (f.name.as_str(), f.class.as_deref()));
    let mut file = AtomicFile::create_on(disk, path)?;
    write_npy_names(&mut file, rows)?;
    Ok(file.finish()?)
}

fn save_rows(
    disk: &dyn FileSystem,
    format: TableFormat,
    output: &Path,
    model: &Model,
    vectors: &mut FolderVectors,
) -> Result<(), ExportError> {
    let note = |name: &str, value: &str| (name.into(), value.into());
    let info = TableInfo {
        rows: vectors.readable,
        dim: vectors.dim,
        notes: vec![
            note("anchorhood.model", model.fingerprint()),
            note("anchorhood.version", VERSION),
        ],
    };
    let file = AtomicFile::create_on(disk, output)?;
    let mut table = TableWriter::new(format, file, &info)?;
    for file in &vectors.files {
        let entry = vectors.journal.read(&file.name)?;
        if let Some(Ok(vector)) = entry.map(|e| e.vector) {
            table.row(&file.name, file.class.as_deref(), &vector)?;
        }
    }
    Ok(table.finish()?.finish()?)
}
