//! An index that lives: what a look through its folders found added, changed and removed is put in
//! place, and the vectors of the rest stay as they are.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anchorhood_data::{PREPROCESSING, Picture};
use anchorhood_engine::Device;
use anchorhood_storage::same_file;
use anchorhood_train::InputForm;

use super::{IndexParts, PictureIndex, Thumbnails, extend_unit};
use crate::folders::absolute;
use crate::stream::content_sum;
use crate::{FolderJob, FolderVectors, Model, SearchError};

/// What became of an index's pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Pictures that were not in it.
    pub added: usize,
    /// Pictures whose files are not what they were.
    pub changed: usize,
    /// Pictures that are gone, or cannot be read any more.
    pub removed: usize,
    /// Pictures that are as they were.
    pub kept: usize,
}

impl Changes {
    /// Whether everything is as it was.
    pub fn none(&self) -> bool {
        (self.added, self.changed, self.removed) == (0, 0, 0)
    }
}

impl PictureIndex {
    /// Embeds every picture of a folder and saves the index at `path`. One that is there already is
    /// brought up to date where it is of this model and folder, and else replaced. Pictures that
    /// cannot be read are left out. What is done is kept beside `path`: broken off, the same call
    /// goes on.
    ///
    /// To be told how far it is, to stop it, or to choose a layer, take its parts: a [`FolderJob`],
    /// and the index [of its vectors](crate::FolderVectors::index).
    pub fn build(
        path: impl AsRef<Path>,
        model: &Model,
        device: &Device,
        folder: impl AsRef<Path>,
    ) -> Result<PictureIndex, SearchError> {
        let path = path.as_ref();
        let folders = [folder.as_ref().to_path_buf()];
        let job = FolderJob::new(model, &folders, path);
        let known = PictureIndex::to_bring_up_to_date(path, &job).ok();
        let job = FolderJob { known: known.as_ref(), ..job };
        Ok(job.run_whole(device, &mut |_| {})?.save(path, &job, device, false)?.0)
    }

    /// The index at `path`, whole, where a job can bring it up to date; else why it cannot: a clause.
    pub fn to_bring_up_to_date(path: &Path, job: &FolderJob) -> Result<PictureIndex, String> {
        let index = PictureIndex::load(path);
        let index = index.and_then(|index| index.vectors().map(|_| ()).map(|()| index));
        let index = index.map_err(|e| format!("cannot be brought up to date ({e})"))?;
        index.cannot_take_up(job).map_or(Ok(index), Err)
    }

    /// Why a job cannot bring it up to date: a clause. None where it can: the job has the model,
    /// the layer and the thumbnails of the index, and its folders, perhaps with more.
    pub fn cannot_take_up(&self, job: &FolderJob) -> Option<String> {
        let parts = &self.parts;
        if parts.model != job.model.fingerprint() {
            return Some("it was made with another model".into());
        }
        if parts.layer.as_deref() != job.layer {
            let layer = parts.layer.as_deref().unwrap_or("the last layer");
            return Some(format!("it holds vectors of {layer}"));
        }
        let side = self.thumbnail_side();
        if job.thumbnail.is_some() && job.thumbnail != side {
            return Some(match side {
                Some(side) => format!("its thumbnails have {side} pixels a side"),
                None => "it has no thumbnails".into(),
            });
        }
        let asked = |path: &Path| job.folders.iter().any(|f| same_folder(f, path));
        let missing = parts.folders.iter().find(|f| !asked(&f.path));
        missing.map(|f| format!("it is of another folder, {}", f.path.display()))
    }

    /// Pixels a side of its thumbnails, where it has some.
    pub fn thumbnail_side(&self) -> Option<usize> {
        let first = self.parts.thumbnails.as_ref()?.get(0).ok()?;
        Picture::promised(first).map(|[width, _]| width as usize)
    }

    /// Its pictures by where they lie; none where it keeps no stamps.
    pub(crate) fn rows_by_path(&self) -> HashMap<PathBuf, Row> {
        let Some(stamps) = &self.parts.stamps else {
            return HashMap::new();
        };
        let row = |number: usize| Row {
            number,
            stamp: stamps[number],
            content_sum: self.content_sum(number),
        };
        (0..self.len()).map(|i| (self.picture(i), row(i))).collect()
    }

    /// 0 where it is unknown.
    fn content_sum(&self, row: usize) -> u64 {
        let sums = self.parts.content_sums.as_ref();
        sums.map_or(0, |sums| sums[row])
    }
}

impl FolderVectors {
    /// The index of what `job` found, to be kept at `path`; it is not written yet. Of each file it has
    /// its row of the index of before, or else what the journal holds of it; what could not be read
    /// is left out.
    pub fn index(&mut self, path: &Path, job: &FolderJob) -> Result<PictureIndex, SearchError> {
        let model_path = match job.model.path() == Path::new(Model::BASE) {
            true => job.model.path().into(),
            false => absolute(job.model.path())?,
        };
        let mut parts = IndexParts {
            model: job.model.fingerprint().into(),
            model_path: Some(model_path.display().to_string()),
            layer: job.layer.map(str::to_owned),
            preprocessing: Some(InputForm { version: PREPROCESSING, ..*job.model.input() }),
            dim: self.dim,
            folders: self.folders.clone(),
            ..IndexParts::default()
        };
        let mut rows = Rows::default();
        for ((file, stamp), kept) in self.files.iter().zip(&self.stamps).zip(&self.kept) {
            let added = match (kept, job.known) {
                (Some(row), Some(known)) => rows.keep(known, *row)?,
                _ => rows.take(self.journal.read(&file.name)?),
            };
            if added {
                parts.names.push(file.name.clone());
                parts.classes.push(file.class.clone());
                rows.stamps.push(*stamp);
            }
        }
        if let (true, Some((first, why))) = (parts.names.is_empty(), rows.failed) {
            return Err(job.nothing_readable(&self.files, &first, &why));
        }
        parts.vectors = rows.vectors.into();
        parts.stamps = Some(rows.stamps);
        let any = rows.content_sums.iter().any(|sum| *sum != 0);
        parts.content_sums = any.then_some(rows.content_sums);
        parts.sizes = Some(rows.sizes);
        parts.thumbnails = rows.thumbnails.non_empty();
        Ok(PictureIndex { path: path.into(), parts })
    }
}

/// What an index knows of a file.
pub(crate) struct Row {
    pub number: usize,
    stamp: u64,
    content_sum: u64,
}

impl Row {
    /// Whether the file, which has this stamp, is what it was: not written to since, or written
    /// again the same.
    pub fn is_of(&self, path: &Path, stamp: u64) -> bool {
        self.stamp == stamp || (self.content_sum != 0 && self.content_sum == content_sum(path))
    }
}

/// What is kept of each picture.
#[derive(Default)]
struct Rows {
    content_sums: Vec<u64>,
    vectors: Vec<f32>,
    sizes: Vec<[u32; 2]>,
    stamps: Vec<u64>,
    thumbnails: Thumbnails,
    /// The first that could not be read, and why.
    failed: Option<(String, String)>,
}

impl Rows {
    /// A picture as an index has it.
    fn keep(&mut self, known: &PictureIndex, row: usize) -> Result<bool, SearchError> {
        let parts = known.parts();
        self.vectors.extend_from_slice(known.vector(row)?);
        self.content_sums.push(known.content_sum(row));
        let sizes = parts.sizes.as_ref();
        self.sizes.push(sizes.map_or([0; 2], |sizes| sizes[row]));
        let thumbnail = parts.thumbnails.as_ref().map(|t| t.get(row));
        self.thumbnails.push(thumbnail.transpose()?.unwrap_or_default());
        Ok(true)
    }

    /// A picture as a journal has it.
    fn take(&mut self, entry: Option<crate::Entry>) -> bool {
        let Some(entry) = entry else {
            return false;
        };
        match &entry.vector {
            Ok(vector) => {
                extend_unit(&mut self.vectors, vector);
                self.content_sums.push(entry.content_sum);
                self.sizes.push(entry.height_and_width);
                self.thumbnails.push(&entry.thumbnail);
                true
            }
            Err(why) => {
                self.failed.get_or_insert((entry.name.clone(), why.clone()));
                false
            }
        }
    }
}

/// Whether two paths are of one folder, or a path is the list whose folder the other is.
fn same_folder(given: &Path, there: &Path) -> bool {
    let Ok(given) = std::path::absolute(given) else {
        return false;
    };
    let list = || given.is_file() && given.parent() == Some(there);
    given == there || list() || same_file(&given, there).unwrap_or(false)
}
