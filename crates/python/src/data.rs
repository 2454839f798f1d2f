//! Published data sets and models: named, fetched, checked, packed.

use std::path::PathBuf;
use std::time::Duration;

use anchorhood::research::Problem;
use anchorhood::{DATASETS, Error, FetchEvent, FetchOptions, fetch_dataset, fetch_model};
use pyo3::prelude::*;

use crate::work::{Worker, work};

/// A data set: name, title, its page, and whether it can be fetched.
#[pyfunction]
pub fn data_sets() -> Vec<(&'static str, &'static str, &'static str, bool)> {
    let sets = DATASETS.all().into_iter();
    sets.map(|set| (set.name, set.title, set.homepage, !set.archives.is_empty())).collect()
}

/// Does something that can be stopped, and tells how far it is: of what, how much, and of how much.
fn told<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Worker<T, (String, u64, u64)>) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let mut hear = |news: (String, u64, u64)| match progress {
        Some(progress) => progress.call1(news).map(|_| ()),
        None => Ok(()),
    };
    let (done, interrupted) = work(py, Duration::ZERO, &mut hear, job)?;
    interrupted.map_or(Ok(done), Err)
}

/// Downloads a data set (`of_model`: a model), and gives its folder (its file).
#[pyfunction]
#[pyo3(signature = (name, of_model, to, extra, keep, mirror, sha256, progress))]
pub fn fetch(
    py: Python<'_>,
    name: String,
    of_model: bool,
    to: PathBuf,
    extra: bool,
    keep: bool,
    mirror: Option<String>,
    sha256: Option<String>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<PathBuf> {
    let options = FetchOptions { to, extra, keep, mirror, sha256, ..FetchOptions::default() };
    told(py, progress.as_ref(), move |worker| {
        let mut hear = |event: FetchEvent| match event {
            FetchEvent::Note(text) => worker.tell((text, 0, 0)),
            FetchEvent::Bytes { what, done, total } => worker.tell((what.into(), done, total)),
        };
        match of_model {
            true => fetch_model(&name, &options, &mut hear),
            false => fetch_dataset(&name, &options, &mut hear),
        }
    })
}

/// What a copy of a data set is: its name, where it lies, of each part how many were found and how
/// many there should be, what is missing or broken, and what one would not expect.
type Checked = (
    String,
    PathBuf,
    Vec<(&'static str, usize, Option<usize>)>,
    Vec<(String, String)>,
    Vec<(String, String)>,
);

/// Looks through a copy of a data set.
#[pyfunction]
pub fn data_check(
    py: Python<'_>,
    data: String,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Checked> {
    told(py, progress.as_ref(), move |worker| {
        let tell = |done, total| worker.tell(("checking".into(), done as u64, total as u64));
        let found = anchorhood_data::check(&data, &tell)?;
        let splits = found.splits.iter().map(|s| (s.name, s.found, s.expected)).collect();
        let named = |all: Vec<Problem>| all.into_iter().map(|p| (p.file, p.what)).collect();
        Ok((found.set, found.place, splits, named(found.problems), named(found.warnings)))
    })
}

/// How many images a pack has, of how many pixels a side, its bytes, and the files that could not
/// be read, each with the reason.
type Packed = (usize, usize, u64, Vec<(String, String)>);

/// Resizes all images of a data set once, into one file.
#[pyfunction]
pub fn data_pack(
    py: Python<'_>,
    data: String,
    path: PathBuf,
    size: Option<usize>,
    overwrite: bool,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Packed> {
    told(py, progress.as_ref(), move |worker| {
        let tell = |done, total| worker.tell(("packing".into(), done as u64, total as u64));
        let packed = anchorhood_data::pack(&data, &path, size, overwrite, &tell)?;
        Ok((packed.pictures, packed.size, packed.bytes, packed.skipped))
    })
}
