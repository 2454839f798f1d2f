//! An index of folders: made, asked, shown.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anchorhood::Picture;
use anchorhood::{
    Chosen, Cluster, DuplicateGroup, DuplicateOptions, GraphOptions, Guess, KeepRule, WrongLabel,
};
use anchorhood::{Classifier, Error, LabelledIndex, OutlierKind, outliers};
use anchorhood::{GivenLabels, PictureIndex};
use anchorhood_data::LabelChoice;
use anchorhood_index::curate::{Hit, graph_clusters, kmeans_clusters};
use anchorhood_index::{
    CopySearch, Decisions, FolderEvent, FolderJob, FolderOutcome, SearchError, cached_index,
    decide_not_duplicates,
};
use anchorhood_report::{Sheet, Shown, Tile};
use anchorhood_storage::Disk;
use numpy::{PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::InputError;
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
    index: Arc<PictureIndex>,
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

/// What happens while an index is made.
enum Making {
    Progress(usize, usize),
    Skipped(String, String),
}

/// How many pictures were added, changed, removed and kept.
type ChangeCounts = (usize, usize, usize, usize);
/// An index, what changed, and the files that were passed over, each with the reason.
type Built = (Index, ChangeCounts, Vec<(String, String)>);
/// The kept image, why it is, and its copies: each with its kind and how alike they are.
type Group = (usize, Vec<String>, Vec<(usize, String, f32)>);
/// A picture of a sheet: the heading of the group that it begins, its number, its bar, whether it
/// is framed, its note.
type SheetPicture = (Option<String>, usize, Option<f32>, bool, String);

#[pymethods]
impl Index {
    /// Embeds folders and saves their index, or brings the one that is there up to date. `progress`
    /// is told how many of how many files are done. Gives the index, what changed, and the files
    /// that were passed over.
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
    ) -> PyResult<Built> {
        let loaded = model.loaded.clone();
        let mut skipped = vec![];
        let mut hear = |making| match (making, &progress) {
            (Making::Progress(done, total), Some(progress)) => {
                progress.call1((done, total)).map(|_| ())
            }
            (Making::Progress(..), None) => Ok(()),
            (Making::Skipped(name, why), _) => {
                skipped.push((name, why));
                Ok(())
            }
        };
        let kept = loaded.clone();
        let made = work(py, KEEPS, &mut hear, move |worker| {
            let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
            let path = match path {
                Some(path) => path,
                None => cached_index(&kept.model, &folders, layer.as_deref())?,
            };
            let job = FolderJob {
                labels: if labels { LabelChoice::Auto } else { LabelChoice::None },
                layer: layer.as_deref(),
                batch,
                thumbnail: thumbnails,
                threads: kept.threads,
                ..FolderJob::new(&kept.model, &folders, &path)
            };
            let known = match path.exists() && !overwrite {
                true => Some(known(&path, &job)?),
                false => None,
            };
            let job = FolderJob { known: known.as_ref(), ..job };
            let mut tell = |event: FolderEvent| match event {
                FolderEvent::Progress { done, total } => {
                    worker.tell(Making::Progress(done, total));
                }
                FolderEvent::Skipped { name, why } => {
                    worker.tell(Making::Skipped(name.into(), why.into()));
                }
                FolderEvent::Found { .. }
                | FolderEvent::Looked { .. }
                | FolderEvent::FolderPassedOver { .. }
                | FolderEvent::JournalCut { .. }
                | FolderEvent::GoesOn { .. }
                | FolderEvent::Embedded { .. } => {}
            };
            match job.run(&kept.device, &mut tell, worker.stop())? {
                FolderOutcome::Finished(done) => {
                    Ok(Some(done.save(&path, &job, &kept.device, false)?))
                }
                FolderOutcome::Stopped { .. } => Ok(None),
            }
        });
        let (made, interrupted) = made?;
        if let Some(interrupted) = interrupted {
            return Err(interrupted);
        }
        let (index, changes) = made.expect("it is stopped by an exception alone");
        let index = Index { index: Arc::new(index), loaded: Some(loaded) };
        let counts = (changes.added, changes.changed, changes.removed, changes.kept);
        Ok((index, counts, skipped))
    }

    /// Opens an index, whose folders may have been moved, with the model that made it where it is
    /// given.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        moved: Vec<PathBuf>,
        model: Option<&Model>,
    ) -> PyResult<Index> {
        let loaded = model.map(|model| model.loaded.clone());
        let with = loaded.clone();
        let index = compute(py, move |_| {
            let mut index = PictureIndex::load(&path)?;
            index.moved_to(&moved)?;
            if let Some(loaded) = with {
                index.check_model(&loaded.model)?;
            }
            Ok(index)
        })?;
        Ok(Index { index: Arc::new(index), loaded })
    }

    /// The same index with the model that made it.
    fn with_model(&self, model: &Model) -> PyResult<Index> {
        let fits = self.index.check_model(&model.loaded.model);
        fits.map_err(|e| crate::errors::exception(e.into()))?;
        Ok(Index { index: self.index.clone(), loaded: Some(model.loaded.clone()) })
    }

    fn __len__(&self) -> usize {
        self.index.len()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.index.path().into()
    }

    #[getter]
    fn folders(&self) -> Vec<PathBuf> {
        let folders = self.index.folders().into_iter();
        folders.map(|folder| folder.path).collect()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.index.parts().names.clone()
    }

    #[getter]
    fn labels(&self) -> Vec<Option<String>> {
        self.index.parts().classes.clone()
    }

    #[getter]
    fn layer(&self) -> Option<String> {
        self.index.parts().layer.clone()
    }

    /// What the model that made it was called, and its fingerprint.
    #[getter]
    fn made_by(&self) -> (Option<String>, String) {
        let parts = self.index.parts();
        (parts.model_path.clone(), parts.model.clone())
    }

    fn picture(&self, i: usize) -> PyResult<PathBuf> {
        self.check(i)?;
        Ok(self.index.picture(i))
    }

    /// All vectors.
    fn vectors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let index = self.index.clone();
        let vectors = compute(py, move |_| Ok(index.vectors()?.to_vec()))?;
        rows(py, self.index.parts().dim, vectors)
    }

    /// The `k` pictures most similar to each of some vectors.
    fn nearest(
        &self,
        py: Python<'_>,
        vectors: PyReadonlyArray2<'_, f32>,
        k: usize,
        exact: bool,
    ) -> PyResult<Vec<Vec<(usize, f32)>>> {
        let dim = self.index.parts().dim;
        let given = vectors.shape()[1];
        if given != dim {
            return Err(InputError::new_err(format!(
                "a vector of {given} values was given, and those of this index have {dim}; embed the query by the model that made it"
            )));
        }
        let (index, queries) = (self.index.clone(), vectors.to_vec()?);
        let pool = self.loaded.clone();
        compute(py, move |_| {
            let find = |query: &[f32]| match exact {
                true => index.nearest_exactly(query, k),
                false => index.nearest(query, k),
            };
            let search = || queries.chunks_exact(dim).map(find).collect();
            let found: Result<Vec<Vec<Hit>>, SearchError> = match &pool {
                Some(loaded) => loaded.device.within(search),
                None => search(),
            };
            let pair = |hit: Hit| (hit.index, hit.similarity);
            let pairs = |hits: Vec<Hit>| hits.into_iter().map(pair).collect();
            Ok(found?.into_iter().map(pairs).collect())
        })
    }

    /// Groups of duplicates, among themselves or with those of another index, whose numbers come
    /// after these; and bursts.
    fn duplicates(
        &self,
        py: Python<'_>,
        against: Option<&Index>,
        above: Option<f32>,
        nearest: Option<usize>,
        keep: Vec<String>,
        decisions: Option<PathBuf>,
    ) -> PyResult<(Vec<Group>, Vec<Vec<usize>>)> {
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
                against.check_model(&loaded.model)?;
            }
            let decisions = match decisions {
                Some(path) => Decisions::load(&Disk, &path)?,
                None => Decisions::of_user()?,
            };
            let find = || {
                let search = CopySearch::new(&index, against.as_deref())?;
                search.find(&loaded.device, &options, &decisions, &|_, _, _| {})
            };
            Ok(loaded.device.within(find)?)
        })?;
        let group = |group: &DuplicateGroup| {
            let why = group.why.iter().map(|why| why.to_string()).collect();
            let other = |d: &anchorhood::Duplicate| (d.picture, d.kind.to_string(), d.score);
            (group.keep, why, group.others.iter().map(other).collect())
        };
        Ok((found.groups.iter().map(group).collect(), found.bursts))
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
            let path = decisions.or_else(Decisions::file_of_user).ok_or_else(|| {
                Error::usage("neither XDG_DATA_HOME nor HOME says where to remember it; name a file by --decisions")
            })?;
            let search = CopySearch::new(&index, against.as_deref())?;
            let [a, b] = [search.number(&pair.0)?, search.number(&pair.1)?];
            let decided = search.decided(a, b)?;
            Ok(decide_not_duplicates(&Disk::shared(), &path, decided)?)
        })
    }

    /// Every picture in one of `k` clusters.
    fn kmeans(&self, py: Python<'_>, k: usize, seed: u64) -> PyResult<Vec<Cluster>> {
        let (index, loaded) = (self.index.clone(), self.needs_model()?);
        compute(py, move |_| {
            let (vectors, dim) = (index.vectors()?, index.parts().dim);
            let work = || kmeans_clusters(&loaded.device, vectors, dim, k, seed);
            Ok(loaded.device.within(work)?)
        })
    }

    /// Groups of pictures that are each other's neighbours.
    fn graph(
        &self,
        py: Python<'_>,
        neighbours: usize,
        above: f32,
        least: usize,
    ) -> PyResult<Vec<Cluster>> {
        let (index, loaded) = (self.index.clone(), self.needs_model()?);
        let options = GraphOptions { neighbours, above, least };
        compute(py, move |_| {
            let (vectors, dim) = (index.vectors()?, index.parts().dim);
            let work = || graph_clusters(&loaded.device, vectors, dim, &options, &|_| {});
            Ok(loaded.device.within(work)?)
        })
    }

    /// The oddest pictures: number and score; and what there is to know.
    fn outliers(&self, py: Python<'_>, by: &str, k: usize) -> PyResult<Vec<(usize, f32)>> {
        let by = OutlierKind::named(by, k).ok_or_else(|| {
            InputError::new_err(format!(
                "by: there is no `{by}`; there are unlike, blurry, dark, bright and flat"
            ))
        })?;
        let (index, loaded) = (self.index.clone(), self.needs_model()?);
        let (found, warnings) = compute(py, move |_| {
            let mut warnings = Warnings::default();
            let found = outliers(&index, &loaded.device, by, &mut |event| warnings.hear(event))?;
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
        let (index, loaded) = (self.index.clone(), self.needs_model()?);
        compute(py, move |_| {
            let labelled = AskedLabels::of(labels.as_ref(), &index)?;
            let guesses = loaded.device.within(|| labelled.classify(&loaded.device, by, k))?;
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
        let (index, loaded) = (self.index.clone(), self.needs_model()?);
        compute(py, move |_| {
            let labelled = AskedLabels::of(labels.as_ref(), &index)?;
            let found = loaded.device.within(|| labelled.wrong_labels(&loaded.device, k))?;
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
        already.iter().try_for_each(|i| self.check(*i))?;
        let (index, loaded) = (self.index.clone(), self.needs_model()?);
        compute(py, move |_| {
            let (vectors, dim) = (index.vectors()?, index.parts().dim);
            let choose =
                || anchorhood_index::curate::select(vectors, dim, count, &already, &mut |_| {});
            let pair = |chosen: Chosen| (chosen.index, chosen.similarity);
            let chosen = loaded.device.within(choose);
            Ok(chosen.into_iter().map(pair).collect())
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
        let (index, pool) = (self.index.clone(), self.loaded.clone());
        let png = compute(py, move |_| {
            let draw = || draw(&index, query, &pictures, side);
            match &pool {
                Some(loaded) => loaded.device.within(draw),
                None => draw(),
            }
        })?;
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
        let (index, loaded) = ((*self.index).clone(), self.loaded.clone());
        Server::start(py, index, loaded, host, port, token)
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
                self.index.path().display()
            ))
        };
        self.loaded.clone().ok_or_else(needed)
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
    fn of<'a>(labels: Option<&Self>, index: &'a PictureIndex) -> Result<LabelledIndex<'a>, Error> {
        match labels {
            Some(AskedLabels::Each(labels)) => LabelledIndex::of(index, labels),
            Some(AskedLabels::File(file)) => {
                LabelledIndex::new(index, Some(&GivenLabels::read(file)?))
            }
            None => LabelledIndex::new(index, None),
        }
    }
}

/// The index that is there, if this job can bring it up to date.
fn known(path: &std::path::Path, job: &FolderJob) -> Result<PictureIndex, Error> {
    PictureIndex::to_bring_up_to_date(path, job).map_err(|why| {
        Error::usage(format!(
            "{}: exists already, and {why}; choose another path, or give overwrite=True to replace it",
            path.display()
        ))
    })
}

fn draw(
    index: &PictureIndex,
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
            index,
            &[Shown { picture: *picture, bar: *bar, framed: *framed, note: note.clone() }],
        );
    }
    Ok(sheet.png()?)
}
