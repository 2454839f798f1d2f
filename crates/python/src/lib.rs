//! How is it reached from Python?
//!
//! The compiled part of the package `anchorhood` (`python/anchorhood`): thin, since what it does is
//! done by the library. It takes and gives arrays, texts and numbers; what is
//! comfortable is written in Python above it. Work is done without the GIL, on a thread that Ctrl-C
//! need not wait for ([`work`]), and not after a [`fork`]; what goes wrong is an exception with the
//! command line's sentence ([`errors`]).

mod data;
mod errors;
mod fork;
mod index;
mod lab;
mod lent;
mod model;
mod serve;
mod train;
mod warn;
mod work;

use pyo3::prelude::*;

/// The compiled part of anchorhood.
#[pymodule]
mod _native {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use anchorhood_data::LabelChoice;
    use anchorhood_report::Sheet;
    use numpy::{PyArray3, PyArray4, PyArrayMethods};
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    use super::errors::InputError;

    #[pymodule_export]
    use super::data::{data_check, data_pack, data_sets, fetch};
    #[pymodule_export]
    use super::index::{Duplicates, Index, undo_moves};
    #[pymodule_export]
    use super::lab::{compare, experiments, reproduce};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::serve::{Server, serve_page};
    #[pymodule_export]
    use super::train::{
        explain, run_attention, run_config, run_events, run_model, run_report, run_summary,
        settings, train,
    };

    #[pymodule_export]
    const VERSION: &str = anchorhood::VERSION;

    /// Runs a command line, whose first word is the program's name, and gives its exit code.
    #[pyfunction]
    fn command_line(py: Python<'_>, words: Vec<OsString>) -> u8 {
        py.detach(|| anchorhood_cli::run(words))
    }

    /// The pictures of a folder, sorted by name: name, path and class of each.
    #[pyfunction]
    fn find_pictures(
        py: Python<'_>,
        folder: PathBuf,
        labels: bool,
    ) -> PyResult<Vec<(String, PathBuf, Option<String>)>> {
        let labels = match labels {
            true => LabelChoice::Auto,
            false => LabelChoice::None,
        };
        let found = super::work::compute(py, move |_| {
            Ok(anchorhood_data::find_pictures(&folder, labels)?.files())
        })?;
        let files = found.into_iter();
        Ok(files.map(|file| (file.name, file.path, file.class)).collect())
    }

    /// Picture files as a contact sheet: each with its bar, framed or not.
    #[pyfunction]
    fn file_sheet<'py>(
        py: Python<'py>,
        pictures: Vec<(PathBuf, Option<f32>, bool)>,
        columns: usize,
        side: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let png = super::work::compute(py, move |_| {
            let mut sheet = Sheet::new(side).with_columns(columns);
            for (path, bar, framed) in &pictures {
                sheet.push_file(path, *bar, *framed);
            }
            Ok(sheet.png()?)
        })?;
        Ok(PyBytes::new(py, &png))
    }

    /// Writes a file, whole or not at all.
    #[pyfunction]
    fn write_file(path: PathBuf, data: &[u8]) -> PyResult<()> {
        let written = anchorhood_storage::AtomicFile::write(&path, data);
        let failed = |e| super::errors::WorkError::new_err(format!("{}: {e}", path.display()));
        written.map_err(failed)
    }

    /// H×W×3 bytes as a PNG file's.
    #[pyfunction]
    fn png<'py>(
        py: Python<'py>,
        picture: Bound<'py, PyArray3<u8>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (width, height, rgb) = super::lent::copied(&picture)?;
        let png = anchorhood_data::encode_png(width as u32, height as u32, &rgb);
        Ok(PyBytes::new(py, &png.map_err(InputError::new_err)?))
    }

    /// The central squares of pictures of any sizes.
    #[pyfunction]
    fn squares<'py>(
        py: Python<'py>,
        pictures: Vec<Bound<'py, PyArray3<u8>>>,
        size: usize,
    ) -> PyResult<Bound<'py, PyArray4<u8>>> {
        let pictures: PyResult<Vec<_>> = pictures.iter().map(super::lent::copied).collect();
        let pictures = pictures?;
        let n = pictures.len();
        let bytes = super::work::compute(py, move |_| {
            Ok(super::model::squares(size, &pictures)?.raw().to_vec())
        })?;
        numpy::PyArray1::from_vec(py, bytes).reshape([n, size, size, 3])
    }
}
