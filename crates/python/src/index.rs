//! An index of folders: made, asked, shown.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anchorhood::{
    Classifier, Clustering, DuplicateGroup, DuplicateOptions, DuplicateSearch, Error, Event,
    FolderEmbedder, FolderOptions, FoundDuplicates, GivenLabels, GraphOptions, Guess, KeepRule,
    LabelledIndex, LabelsChoice, OutlierKind, Picture, WrongLabel,
};
use anchorhood_report::{Sheet, Shown, Tile};
use anchorhood_serve::Collection;
use numpy::{PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{InputError, exception};
use crate::lent::copied;
use crate::model::{Loaded, Model, rows};
use crate::serve::Server;
use crate::warn::Warnings;
use crate::work::{KEEPS, compute, work};

/// Held while an index is made: a job that nobody waits for any more has closed its journal before
/// the next one opens it.
static MAKING: Mutex<()> = Mutex::new(());

/// An index, and the model that made it where it is there.
#[pyclass(frozen, module = "anchorhood._native")]
pub struct Index {
    index: Arc<anchorhood::Index>,
    loaded: Option<Arc<Loaded>>,
}

/// A picture that was asked about, as Python has it.
#[derive(FromPyObject)]
enum Query<'py> {
    Picture(Bound<'py, PyArray3<u8>>),
    File(PathBuf),
}

/// The same for a thread of ours: width, height and bytes, or a file.
enum Asked {
    Picture((usize, usize, Vec<u8>)),
    File(PathBuf),
}

impl Asked {
    fn of(query: Query) -> PyResult<Asked> {
        Ok(match query {
            Query::Picture(picture) => Asked::Picture(copied(&picture)?),
            Query::File(path) => Asked::File(path),
        })
    }
}

/// A cluster: pictures and their similarities.
type Cluster = Vec<(usize, f32)>;
/// The kept image, why it is, and its copies: each with its kind and how alike they are.
type Group = (usize, Vec<String>, Vec<(usize, String, f32)>);
/// A picture of a sheet: the heading of the group that it begins, its number, its bar, whether it
/// is framed, its note.
type SheetPicture = (Option<String>, usize, Option<f32>, bool, String);

#[pymethods]
impl Index {
    /// Embeds folders and saves their index, or brings the one that is there up to date. `progress`
    /// is told how many of how many files are done.
    #[staticmethod]
    #[pyo3(signature = (folders, path, model, layer, batch, thumbnails, labels, overwrite, progress))]
    fn build(
        py: Python<'_>,
        folders: Vec<PathBuf>,
        path: Option<PathBuf>,
        model: &Model,
        layer: Option<String>,
        batch: usize,
        thumbnails: Option<usize>,
        labels: bool,
        overwrite: bool,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Index> {
        let loaded = model.loaded.clone();
        let mut hear = |done: (usize, usize)| match &progress {
            Some(progress) => progress.call1(done).map(|_| ()),
            None => Ok(()),
        };
        let labels = if labels { LabelsChoice::Auto } else { LabelsChoice::None };
        let threads = loaded.threads;
        let usual = FolderOptions::default();
        let options =
            FolderOptions { labels, layer, batch, threads, thumbnails, overwrite, ..usual };
        let kept = loaded.clone();
        let made = work(py, KEEPS, &mut hear, move |worker| {
            let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
            let mut warnings = Warnings::default();
            let embedder = FolderEmbedder::new(folders, &kept.model)
                .options(options)
                .device(kept.device.clone())
                .stop_when(worker.stop())
                .on_event(|event| match event {
                    Event::Loading { done, pictures } => worker.tell((*done, *pictures)),
                    other => warnings.hear(other),
                });
            let index = match path {
                Some(path) => embedder.index(path),
                None => embedder.cached_index(),
            };
            Ok((index?, warnings))
        });
        let ((index, warnings), interrupted) = made?;
        if let Some(interrupted) = interrupted {
            return Err(interrupted);
        }
        warnings.say(py)?;
        Ok(Index { index: Arc::new(index), loaded: Some(loaded) })
    }

    /// Opens an index, whose folders may have been moved.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, moved: Vec<PathBuf>) -> PyResult<Index> {
        let open = move |_: &_| anchorhood::Index::open(&path)?.moved_to(&moved);
        Ok(Index { index: Arc::new(compute(py, open)?), loaded: None })
    }

    /// The file of the model that made it, or `base`, where it can be found.
    fn find_model(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        let index = self.index.clone();
        compute(py, move |_| Ok(index.model().map(|model| model.path().into())))
    }

    /// The same index with the model that made it.
    fn with_model(&self, model: &Model) -> PyResult<Index> {
        let (index, loaded) = ((*self.index).clone(), model.loaded.clone());
        let index = index.with_model(&loaded.model).map_err(exception)?;
        let index = Arc::new(index.on(loaded.device.clone()));
        Ok(Index { index, loaded: Some(loaded) })
    }

    fn __len__(&self) -> usize {
        self.index.len()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.index.file().into()
    }

    #[getter]
    fn folders(&self) -> Vec<PathBuf> {
        let folders = self.index.parts().folders().into_iter();
        folders.map(|folder| folder.path).collect()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.index.parts().parts().names.clone()
    }

    #[getter]
    fn labels(&self) -> Vec<Option<String>> {
        self.index.parts().parts().classes.clone()
    }

    #[getter]
    fn layer(&self) -> Option<String> {
        self.index.parts().parts().layer.clone()
    }

    /// What the model that made it was called, and its fingerprint.
    #[getter]
    fn made_by(&self) -> (Option<String>, String) {
        let parts = self.index.parts().parts();
        (parts.model_path.clone(), parts.model.clone())
    }

    fn picture(&self, i: usize) -> PyResult<PathBuf> {
        self.check(i)?;
        Ok(self.index.path(i))
    }

    /// All vectors.
    fn vectors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let index = self.index.clone();
        let vectors = compute(py, move |_| Ok(index.vectors()?.to_vec()))?;
        rows(py, self.index.dim(), vectors)
    }

    /// The `k` pictures most similar to each of some vectors.
    fn nearest(
        &self,
        py: Python<'_>,
        vectors: PyReadonlyArray2<'_, f32>,
        k: usize,
        exact: bool,
    ) -> PyResult<Vec<Vec<(usize, f32)>>> {
        let dim = self.index.dim();
        let given = vectors.shape()[1];
        if given != dim {
            return Err(InputError::new_err(format!(
                "a vector of {given} values was given, and those of this index have {dim}; embed the query by the model that made it"
            )));
        }
        let (index, queries) = (self.index.clone(), vectors.to_vec()?);
        compute(py, move |_| {
            let find = |query: &[f32]| {
                let found = match exact {
                    true => index.search_all(query, k)?,
                    false => index.search(query, k)?,
                };
                Ok(found.into_iter().map(|hit| (hit.number, hit.similarity)).collect())
            };
            queries.chunks_exact(dim).map(find).collect()
        })
    }

    /// Groups of duplicates, among themselves or with those of another index, whose numbers come
    /// after these.
    fn duplicates(
        &self,
        py: Python<'_>,
        against: Option<&Index>,
        above: Option<f32>,
        nearest: Option<usize>,
        keep: Vec<String>,
        decisions: Option<PathBuf>,
    ) -> PyResult<Duplicates> {
        let usual = DuplicateOptions::default();
        let rules: Result<Vec<KeepRule>, _> = keep.iter().map(|rule| rule.parse()).collect();
        let rules = rules.map_err(|e| InputError::new_err(format!("keep: {e}")))?;
        let options = DuplicateOptions {
            above: above.unwrap_or(usual.above),
            nearest: nearest.unwrap_or(usual.nearest),
            keep: if rules.is_empty() { usual.keep } else { rules },
        };
        let loaded = self.needs_model()?;
        let (index, against) = (self.index.clone(), against.map(|other| other.index.clone()));
        let found = compute(py, move |_| {
            if let Some(against) = &against {
                against.parts().check_model(&loaded.model)?;
            }
            search(&index, against.as_deref(), decisions)?.find(&options, &|_, _, _| {})
        })?;
        Ok(Duplicates(Arc::new(found)))
    }

    /// Remembers that two images, by their names or paths, are no duplicates; one may be of another
    /// index. False where that was remembered already.
    fn not_duplicates(
        &self,
        py: Python<'_>,
        against: Option<&Index>,
        pair: (String, String),
        decisions: Option<PathBuf>,
    ) -> PyResult<bool> {
        let (index, against) = (self.index.clone(), against.map(|other| other.index.clone()));
        compute(py, move |_| {
            let search = search(&index, against.as_deref(), decisions)?;
            Ok(search.not_duplicates(&pair.0, &pair.1)?.1)
        })
    }

    /// Every picture in one of `k` clusters.
    fn kmeans(&self, py: Python<'_>, k: usize, seed: u64) -> PyResult<Vec<Cluster>> {
        self.cluster(py, Clustering::KMeans { clusters: k, seed })
    }

    /// Groups of pictures that are each other's neighbours.
    fn graph(
        &self,
        py: Python<'_>,
        neighbours: usize,
        above: f32,
        least: usize,
    ) -> PyResult<Vec<Cluster>> {
        self.cluster(py, Clustering::Graph(GraphOptions { neighbours, above, least }))
    }

    /// The oddest pictures: number and score; and what there is to know.
    fn outliers(&self, py: Python<'_>, by: &str, k: usize) -> PyResult<Vec<(usize, f32)>> {
        let by = OutlierKind::named(by, k).ok_or_else(|| {
            InputError::new_err(format!(
                "by: there is no `{by}`; there are unlike, blurry, dark, bright and flat"
            ))
        })?;
        let index = self.computing()?;
        let (found, warnings) = compute(py, move |_| {
            let mut warnings = Warnings::default();
            let found = index.outliers(by, &mut |event| warnings.hear(event))?;
            Ok((found.iter().map(|o| (o.picture, o.score)).collect(), warnings))
        })?;
        warnings.say(py)?;
        Ok(found)
    }

    /// A class for each picture: its name, how sure it is, and the one that came second; and the
    /// share of the given labels that the others would guess right.
    fn classify(
        &self,
        py: Python<'_>,
        labels: Option<AskedLabels>,
        by: &str,
        k: usize,
    ) -> PyResult<(Vec<GuessedLabel>, f64)> {
        let by = Classifier::named(by).ok_or_else(|| {
            InputError::new_err(format!("by: there is no `{by}`; there are auto, knn and logistic"))
        })?;
        let index = self.computing()?;
        compute(py, move |_| {
            let labelled = AskedLabels::of(labels.as_ref(), &index)?;
            let guesses = labelled.classify(by, k)?;
            let class = |number| labelled.class(number).to_string();
            let guessed = |g: &Guess| {
                (class(g.class), g.confidence, g.second.map(|(c, of_it)| (class(c), of_it)))
            };
            Ok((guesses.iter().map(guessed).collect(), labelled.leave_one_out(&guesses)))
        })
    }

    /// Labels that are likely wrong: the picture, its label, the likely one, their shares of the
    /// votes, and whether that is sure.
    fn wrong_labels(
        &self,
        py: Python<'_>,
        labels: Option<AskedLabels>,
        k: usize,
    ) -> PyResult<Vec<DoubtedLabel>> {
        let index = self.computing()?;
        compute(py, move |_| {
            let labelled = AskedLabels::of(labels.as_ref(), &index)?;
            let found = labelled.wrong_labels(k)?;
            let class = |number| labelled.class(number).to_string();
            let told = |w: &WrongLabel| {
                let (own, likely) = (class(w.given), class(w.likely));
                (w.picture, own, likely, w.given_share, w.likely_share, w.confident)
            };
            Ok(found.iter().map(told).collect())
        })
    }

    /// Pictures that stand for all, beside those chosen already.
    fn select(
        &self,
        py: Python<'_>,
        count: usize,
        already: Vec<usize>,
    ) -> PyResult<Vec<(usize, Option<f32>)>> {
        let index = self.computing()?;
        compute(py, move |_| {
            let chosen = index.select(count, &already, &mut |_| {})?;
            Ok(chosen.iter().map(|one| (one.index, one.similarity)).collect())
        })
    }

    /// A contact sheet as a PNG file's bytes: a query's picture framed, where there is one, and
    /// pictures of the index.
    fn sheet<'py>(
        &self,
        py: Python<'py>,
        query: Option<Query<'py>>,
        pictures: Vec<SheetPicture>,
        side: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        pictures.iter().try_for_each(|shown| self.check(shown.1))?;
        let query = query.map(Asked::of).transpose()?;
        let index = self.index.clone();
        let png =
            compute(py, move |_| index.device().within(|| draw(&index, query, &pictures, side)))?;
        Ok(PyBytes::new(py, &png))
    }

    /// Serves it on a thread until it is told to stop.
    fn serve(
        &self,
        py: Python<'_>,
        host: &str,
        port: u16,
        token: Option<String>,
    ) -> PyResult<Server> {
        let (index, loaded) = (self.index.clone(), self.loaded.clone());
        let open = move || {
            let name = index.file().file_name().unwrap_or_default().to_string_lossy();
            let (model, parts) = (loaded.as_ref().map(|l| l.model.clone()), index.parts().clone());
            let collection = Collection::of_index(name.into_owned(), parts, &[], model)?;
            Ok((collection, loaded.as_ref().map(|loaded| loaded.device.clone())))
        };
        Server::start(py, open, host, port, token)
    }
}

impl Index {
    fn check(&self, i: usize) -> PyResult<()> {
        match i < self.index.len() {
            true => Ok(()),
            false => Err(InputError::new_err(format!(
                "there is no picture {i}; the index has {}, numbered from 0",
                self.index.len()
            ))),
        }
    }

    fn needs_model(&self) -> PyResult<Arc<Loaded>> {
        let needed = || {
            InputError::new_err(format!(
                "{}: the model that made this index is not at hand; open it with Index.load(path, model=…)",
                self.index.file().display()
            ))
        };
        self.loaded.clone().ok_or_else(needed)
    }

    /// The index on its model's device, to compute with.
    fn computing(&self) -> PyResult<Arc<anchorhood::Index>> {
        self.needs_model().map(|_| self.index.clone())
    }

    fn cluster(&self, py: Python<'_>, by: Clustering) -> PyResult<Vec<Cluster>> {
        let index = self.computing()?;
        compute(py, move |_| index.cluster(&by, &mut |_| {}))
    }
}

/// A class, how sure it is, and the one that came second.
type GuessedLabel = (String, f32, Option<(String, f32)>);

/// A picture, its label, the likely one, their shares of the votes, and whether that is sure.
type DoubtedLabel = (usize, String, String, f32, f32, bool);

/// Labels of some pictures.
#[derive(FromPyObject)]
pub enum AskedLabels {
    /// One for each picture, or none.
    Each(Vec<Option<String>>),
    /// A CSV file of paths and labels.
    File(PathBuf),
}

impl AskedLabels {
    /// With these labels, or the sub-folders'.
    fn of<'a>(
        labels: Option<&Self>,
        index: &'a anchorhood::Index,
    ) -> Result<LabelledIndex<'a>, Error> {
        match labels {
            Some(AskedLabels::Each(labels)) => LabelledIndex::of(index, labels),
            Some(AskedLabels::File(file)) => {
                LabelledIndex::new(index, Some(&GivenLabels::read(file)?))
            }
            None => LabelledIndex::new(index, None),
        }
    }
}

/// A search for duplicates, with the user's decisions or those in a file.
fn search<'a>(
    index: &'a anchorhood::Index,
    against: Option<&'a anchorhood::Index>,
    decisions: Option<PathBuf>,
) -> Result<DuplicateSearch<'a>, Error> {
    let search = DuplicateSearch::new(index, against)?;
    Ok(match decisions {
        Some(file) => search.decisions(file),
        None => search,
    })
}

/// Groups of duplicates, which can be moved.
#[pyclass(frozen, module = "anchorhood._native")]
pub struct Duplicates(Arc<FoundDuplicates>);

/// Where each file was, and where it is; and those that were left, each with the reason.
type Moved = (Vec<(PathBuf, PathBuf)>, Vec<(PathBuf, String)>);

#[pymethods]
impl Duplicates {
    #[getter]
    fn groups(&self) -> Vec<Group> {
        let group = |group: &DuplicateGroup| {
            let why = group.why.iter().map(|why| why.to_string()).collect();
            let other =
                |d: &anchorhood_index::curate::Duplicate| (d.picture, d.kind.to_string(), d.score);
            (group.keep, why, group.others.iter().map(other).collect())
        };
        self.0.groups.iter().map(group).collect()
    }

    /// Photographs of one scene that are no copies.
    #[getter]
    fn bursts(&self) -> Vec<Vec<usize>> {
        self.0.bursts.clone()
    }

    /// Moves all but the kept picture of each group to a folder, or says what would be moved.
    fn move_to(&self, py: Python<'_>, folder: PathBuf, dry_run: bool) -> PyResult<Moved> {
        let found = self.0.clone();
        compute(py, move |_| {
            let done = match dry_run {
                true => found.would_move_to(&folder)?,
                false => found.move_to(&folder)?,
            };
            Ok((done.moved, done.left))
        })
    }
}

/// How many files were put back, how many were there already, and those that were left, each with
/// the reason.
type Restored = (usize, usize, Vec<(PathBuf, String)>);

/// Puts back what was moved.
#[pyfunction]
pub fn undo_moves(py: Python<'_>, record: PathBuf, trust: bool) -> PyResult<Restored> {
    compute(py, move |_| {
        let done = anchorhood::undo_moves(&record, trust)?;
        Ok((done.moved, done.there, done.left))
    })
}

fn draw(
    index: &anchorhood::Index,
    query: Option<Asked>,
    pictures: &[SheetPicture],
    side: usize,
) -> Result<Vec<u8>, Error> {
    let mut sheet = Sheet::new(side);
    if let Some(Asked::File(path)) = &query {
        sheet.push_file(path, None, true);
    }
    if let Some(Asked::Picture((width, height, rgb))) = query {
        let mut pixels = vec![0; side * side * 3];
        let picture = Picture::from_rgb(width as u32, height as u32, rgb);
        let drawn = picture.and_then(|picture| picture.square(side, &mut pixels));
        drawn.map_err(Error::usage)?;
        sheet.push(Tile { pixels, framed: true, ..Tile::default() });
    }
    for (heading, picture, bar, framed, note) in pictures {
        if let Some(heading) = heading {
            sheet.begin_group(heading);
        }
        sheet.push_shown(
            index.parts(),
            &[Shown { picture: *picture, bar: *bar, framed: *framed, note: note.clone() }],
        );
    }
    Ok(sheet.png()?)
}
