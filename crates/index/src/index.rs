//! The vectors of a folder of pictures, in one file, ready to be searched.

mod format;
mod stored;
mod thumbnails;
mod update;

use std::path::{Path, PathBuf};

use crate::curate::{Hit, extend_unit, measure_recall, nearest, nearest_in_lists, nearest_where};
use anchorhood_data::{PREPROCESSING, name_of};
use anchorhood_engine::Device;
use anchorhood_storage::{Disk, FileSystem};
use anchorhood_train::InputForm;

use crate::folders::place;
use crate::{IndexedFolder, Lists, Model, SearchError};

pub use stored::StoredVectors;
pub use thumbnails::Thumbnails;
pub use update::Changes;

/// Queries by which the recall of an approximate index is measured.
const TRIED: usize = 200;

/// What an index is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexParts {
    /// The model's fingerprint.
    pub model: String,
    /// What the model was called when the index was made: a path from the root of the file system,
    /// or `base`.
    pub model_path: Option<String>,
    /// The layer, where it is not the last.
    pub layer: Option<String>,
    /// What the network was given of each picture, where it is known. Its version is that of the
    /// preprocessing by which the vectors were made, whatever model made them.
    pub preprocessing: Option<InputForm>,
    /// The folders of pictures, one or several.
    pub folders: Vec<IndexedFolder>,
    /// Each picture relative to its folder, parts joined by `/`; of several folders after the
    /// folder's label.
    pub names: Vec<String>,
    /// A number for each picture that changes when its file does; none in an index of before these
    /// were kept.
    pub stamps: Option<Vec<u64>>,
    /// A checksum of each file's bytes, 0 where unknown, so that a file that was only written again
    /// is known; none in an index of before these were kept.
    pub content_sums: Option<Vec<u64>>,
    /// Each picture's height and width in its file, the right way up, zeros where unknown; none
    /// where they were not kept.
    pub sizes: Option<Vec<[u32; 2]>>,
    /// Each picture's class, where the folder has classes.
    pub classes: Vec<Option<String>>,
    /// Length of a vector.
    pub dim: usize,
    /// The vectors, of unit length, one after the other.
    pub vectors: StoredVectors,
    /// Small copies of the pictures.
    pub thumbnails: Option<Thumbnails>,
    /// Clusters for approximate search, with their recall.
    pub lists: Option<(Lists, f64)>,
}

/// An open index.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureIndex {
    path: PathBuf,
    parts: IndexParts,
}

impl PictureIndex {
    /// Up to so many vectors a search looks at all of them: some 20 ms on two cores.
    pub const EXACT_UP_TO: usize = 1_000_000;

    /// An index from its parts; `path` names it in errors. The reason says which parts do not fit.
    pub fn from_parts(path: &Path, parts: IndexParts) -> Result<PictureIndex, SearchError> {
        format::check(&parts).map_err(SearchError::damaged_index(path))?;
        Ok(PictureIndex { path: path.into(), parts })
    }

    /// Opens an index. Vectors and thumbnails stay in the file until they are touched, and are
    /// checked then.
    pub fn load(path: impl AsRef<Path>) -> Result<PictureIndex, SearchError> {
        let path = path.as_ref();
        PictureIndex::from_parts(path, format::open(path)?)
    }

    /// Writes it, whole or not at all.
    pub fn save(&self) -> Result<(), SearchError> {
        self.save_on(&Disk)
    }

    /// The same on any disk.
    pub fn save_on(&self, disk: &dyn FileSystem) -> Result<(), SearchError> {
        format::write(disk, &self.parts, &self.path)
    }

    /// Where it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is made of.
    pub fn parts(&self) -> &IndexParts {
        &self.parts
    }

    /// How many pictures.
    pub fn len(&self) -> usize {
        self.parts.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.names.is_empty()
    }

    /// A picture's name, relative to the folder.
    pub fn name(&self, i: usize) -> &str {
        &self.parts.names[i]
    }

    /// The folders that it is of, one or several.
    pub fn folders(&self) -> Vec<IndexedFolder> {
        self.parts.folders.clone()
    }

    /// Where a picture lies.
    pub fn picture(&self, i: usize) -> PathBuf {
        place(&self.parts.folders, &self.parts.names[i]).1
    }

    /// A picture's vector.
    pub fn vector(&self, i: usize) -> Result<&[f32], SearchError> {
        let dim = self.parts.dim;
        self.parts.vectors.range(i * dim..(i + 1) * dim)
    }

    /// All vectors, one after the other. In a damaged file they are an error.
    pub fn vectors(&self) -> Result<&[f32], SearchError> {
        self.parts.vectors.all()
    }

    /// Takes the pictures to be in other folders than when it was made: the only folder, or of
    /// several those that are named alike, or as `LABEL=FOLDER`. The error says which there are.
    pub fn moved_to<P: AsRef<Path>>(&mut self, now: &[P]) -> Result<(), SearchError> {
        for folder in now {
            self.parts.moved_to(folder.as_ref())?;
        }
        Ok(())
    }

    /// Whether another version of the program made its vectors, which decoded and resized images in
    /// another way. A job that brings it up to date makes all of them again.
    pub fn is_outdated(&self) -> bool {
        self.parts.preprocessing.is_some_and(|p| p.version != PREPROCESSING)
    }

    /// An index made with another model, or of images that were decoded in another way, would
    /// compare what cannot be compared.
    pub fn check_model(&self, model: &Model) -> Result<(), SearchError> {
        if let Some(InputForm { version, .. }) =
            self.parts.preprocessing.filter(|_| self.is_outdated())
        {
            let why = format!(
                "this index was made by another version of the program, which decoded and resized \
                 images in another way (preprocessing {version}, here {PREPROCESSING}); bring it up \
                 to date with `anchorhood index`, which makes its vectors again"
            );
            return Err(SearchError::refused(&self.path, why));
        }
        if self.parts.model == model.fingerprint() {
            return Ok(());
        }
        let why = format!(
            "this index was made with another model (its fingerprint is {}, that of {} is {}); give \
             the model it was made with, or make the index again with `anchorhood index`",
            self.parts.model,
            model.path().display(),
            model.fingerprint()
        );
        Err(SearchError::refused(&self.path, why))
    }

    /// Whether there are so many pictures that it should have clusters to search by.
    pub fn is_large(&self) -> bool {
        self.len() > Self::EXACT_UP_TO
    }

    /// Makes clusters to search by, and measures how much of the truth is found with them.
    pub fn divide(
        &mut self,
        device: &Device,
        progress: &mut dyn FnMut(usize),
    ) -> Result<(), SearchError> {
        let parts = &mut self.parts;
        let vectors = parts.vectors.all()?;
        let lists = Lists::build(device, vectors, parts.dim, 0, progress)?;
        let probes = lists.default_probes();
        let recall = measure_recall(&lists, vectors, parts.dim, 10, TRIED, probes, 0);
        parts.lists = Some((lists, recall));
        Ok(())
    }

    /// The share of the true nearest that a search finds: 1 where all pictures are looked at.
    pub fn recall(&self) -> f64 {
        self.parts.lists.as_ref().map_or(1.0, |(_, recall)| *recall)
    }

    /// The `k` pictures most similar to a vector, most similar first; fewer where there are fewer.
    /// All are looked at, or in a divided index the nearest clusters alone.
    pub fn nearest(&self, vector: &[f32], k: usize) -> Result<Vec<Hit>, SearchError> {
        let (vectors, dim, query) = (self.vectors()?, self.parts.dim, unit(vector));
        Ok(match &self.parts.lists {
            Some((lists, _)) => {
                nearest_in_lists(lists, vectors, dim, &query, k, lists.default_probes())
            }
            None => nearest(vectors, dim, &query, k),
        })
    }

    /// The same among the pictures that are wanted alone, with all looked at, in any index.
    pub fn nearest_where(
        &self,
        vector: &[f32],
        k: usize,
        wanted: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Vec<Hit>, SearchError> {
        Ok(nearest_where(self.vectors()?, self.parts.dim, &unit(vector), k, wanted))
    }

    /// The same with all looked at, in any index.
    pub fn nearest_exactly(&self, vector: &[f32], k: usize) -> Result<Vec<Hit>, SearchError> {
        self.nearest_where(vector, k, &|_| true)
    }
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let mut unit = vec![];
    extend_unit(&mut unit, vector);
    unit
}

impl IndexParts {
    fn moved_to(&mut self, now: &Path) -> Result<(), SearchError> {
        if self.folders.len() < 2 {
            self.folders = vec![IndexedFolder::alone(now)];
            return Ok(());
        }
        let (label, path) = match now.to_str().and_then(|text| text.split_once('=')) {
            Some((label, path)) => (label.to_string(), PathBuf::from(path)),
            None => (now.file_name().map(name_of).unwrap_or_default(), now.to_path_buf()),
        };
        let labels: Vec<String> = self.folders.iter().map(|f| f.label.clone()).collect();
        let unknown = || {
            let (given, there) = (name_of(now.as_os_str()), labels.join(", "));
            SearchError::Impossible(format!(
                "{given}: the index has folders called {there}; say which of them lies there now, \
                 as LABEL=FOLDER"
            ))
        };
        let found = self.folders.iter_mut().find(|f| f.label == label);
        found.ok_or_else(unknown)?.path = path;
        Ok(())
    }
}
