//! The vectors of a folder of pictures, in one file, ready to be searched.

mod build;
mod format;
mod stored;
mod thumbnails;

use std::path::{Path, PathBuf};

use anchorhood_data::{PictureFile, picture_named};
use anchorhood_engine::Device;
use anchorhood_files::{Checked, Disk, FileSystem};
use anchorhood_train::InputForm;

use crate::exact::nearest_where;
use crate::{Hit, Journal, Lists, Model, Recall, SearchError, nearest};

pub use stored::StoredVectors;
pub use thumbnails::Thumbnails;

/// Up to so many vectors a search looks at all of them: some 20 ms on two cores.
const EXACT_UP_TO: usize = 1_000_000;
/// Queries by which the recall of an approximate index is measured.
const TRIED: usize = 200;

/// What an index is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexParts {
    /// The model's fingerprint.
    pub model: String,
    /// The layer, where it is not the last.
    pub layer: Option<String>,
    /// What the network was given of each picture; unknown of an index of 0.1.
    pub preprocessing: Option<InputForm>,
    /// Of a shard: the number of its first picture among all, and how many there are of all.
    pub rows: Option<[u64; 2]>,
    /// The folder of pictures, as it was named when the index was made, from the root of the file system.
    pub folder: PathBuf,
    /// Each picture relative to the folder, parts joined by `/`.
    pub names: Vec<String>,
    /// Each picture's height and width in its file, the right way up, zeros where unknown; none in an index of 0.1.
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
    checked: Checked,
}

impl PictureIndex {
    /// An index of what a journal holds of these files; those that could not be read are left out. `path` is where it will
    /// be saved.
    pub fn collect(
        path: &Path,
        model: &Model,
        layer: Option<&str>,
        folder: &Path,
        dim: usize,
        files: &[PictureFile],
        journal: &mut Journal,
    ) -> Result<PictureIndex, SearchError> {
        let mut parts = IndexParts {
            model: model.fingerprint().into(),
            layer: layer.map(str::to_owned),
            preprocessing: Some(*model.input()),
            folder: std::path::absolute(folder).map_err(SearchError::io(folder))?,
            dim,
            ..IndexParts::default()
        };
        let (mut vectors, mut sizes) = (vec![], vec![]);
        let mut thumbnails = Thumbnails::default();
        let mut failed = None;
        for file in files {
            let Some(entry) = journal.read(&file.name)? else {
                continue;
            };
            match entry.vector {
                Ok(vector) => {
                    parts.names.push(entry.name);
                    parts.classes.push(file.class.clone());
                    sizes.push(entry.height_and_width);
                    extend_unit(&mut vectors, &vector);
                    thumbnails.push(&entry.thumbnail);
                }
                Err(why) => {
                    failed.get_or_insert((entry.name, why));
                }
            }
        }
        if let (true, Some((first, why))) = (parts.names.is_empty(), failed) {
            return Err(SearchError::NothingReadable {
                folder: folder.into(),
                count: files.len(),
                first,
                why,
            });
        }
        parts.rows = Some([0, parts.names.len() as u64]);
        parts.vectors = vectors.into();
        parts.sizes = Some(sizes);
        parts.thumbnails = thumbnails.non_empty();
        Ok(PictureIndex {
            path: path.into(),
            parts,
            checked: Checked::Verified,
        })
    }

    /// An index from its parts; `path` names it in errors. The reason says which parts do not fit.
    pub fn from_parts(path: &Path, parts: IndexParts) -> Result<PictureIndex, SearchError> {
        format::check(&parts).map_err(|reason| SearchError::DamagedIndex {
            path: path.into(),
            reason,
        })?;
        Ok(PictureIndex {
            path: path.into(),
            parts,
            checked: Checked::Verified,
        })
    }

    /// Opens an index. Vectors and thumbnails stay in the file until they are touched, and are checked then.
    pub fn load(path: impl AsRef<Path>) -> Result<PictureIndex, SearchError> {
        let path = path.as_ref();
        let (parts, checked) = format::open(path)?;
        let index = PictureIndex::from_parts(path, parts)?;
        Ok(PictureIndex { checked, ..index })
    }

    /// Writes it, whole or not at all.
    pub fn save(&self) -> Result<(), SearchError> {
        self.save_on(&Disk)
    }

    /// The same on any disk.
    pub fn save_on(&self, disk: &dyn FileSystem) -> Result<(), SearchError> {
        format::write(disk, &self.parts, &self.path)
    }

    /// Whether damage would be noticed: an index of 0.1 has no checksums, and cannot be checked.
    pub fn checked(&self) -> Checked {
        self.checked
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

    /// Where a picture lies.
    pub fn picture(&self, i: usize) -> PathBuf {
        picture_named(&self.parts.folder, &self.parts.names[i])
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

    /// Takes the pictures to be in another folder than when it was made.
    pub fn moved_to(&mut self, folder: &Path) {
        self.parts.folder = folder.into();
    }

    /// An index made with another model would compare what cannot be compared.
    pub fn check_model(&self, model: &Model) -> Result<(), SearchError> {
        if self.parts.model == model.fingerprint() {
            return Ok(());
        }
        Err(SearchError::OtherModel {
            path: self.path.clone(),
            index: self.parts.model.clone(),
            model_path: model.path().into(),
            model: model.fingerprint().into(),
        })
    }

    /// Whether there are so many pictures that it should have clusters to search by.
    pub fn is_large(&self) -> bool {
        self.len() > EXACT_UP_TO
    }

    /// Makes clusters to search by, and measures how much of the truth is found with them.
    pub fn divide(
        &mut self,
        device: &Device,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Recall, SearchError> {
        let parts = &mut self.parts;
        let vectors = parts.vectors.all()?;
        let lists = Lists::build(device, vectors, parts.dim, 0, progress)?;
        let probes = lists.default_probes();
        let recall = lists.measure(vectors, parts.dim, 10, TRIED, probes, 0);
        parts.lists = Some((lists, recall.share));
        Ok(recall)
    }

    /// The share of the true nearest that a search finds: 1 where all pictures are looked at.
    pub fn recall(&self) -> f64 {
        self.parts.lists.as_ref().map_or(1.0, |(_, recall)| *recall)
    }

    /// The `k` pictures most similar to a vector, most similar first; fewer where there are fewer. All are looked at, or
    /// in a divided index the nearest clusters alone.
    pub fn nearest(&self, vector: &[f32], k: usize) -> Result<Vec<Hit>, SearchError> {
        let (vectors, dim) = (self.vectors()?, self.parts.dim);
        let mut query = vec![];
        extend_unit(&mut query, vector);
        Ok(match &self.parts.lists {
            Some((lists, _)) => lists.nearest(vectors, dim, &query, k, lists.default_probes()),
            None => nearest(vectors, dim, &query, k),
        })
    }

    /// The same among the pictures that are wanted alone, with all looked at, in any index.
    pub fn nearest_where(
        &self,
        vector: &[f32],
        k: usize,
        wanted: impl Fn(usize) -> bool + Sync,
    ) -> Result<Vec<Hit>, SearchError> {
        let mut query = vec![];
        extend_unit(&mut query, vector);
        let (vectors, dim) = (self.vectors()?, self.parts.dim);
        Ok(nearest_where(vectors, dim, &query, k, wanted))
    }

    /// The same with all looked at, in any index.
    pub fn nearest_exactly(&self, vector: &[f32], k: usize) -> Result<Vec<Hit>, SearchError> {
        let mut query = vec![];
        extend_unit(&mut query, vector);
        Ok(nearest(self.vectors()?, self.parts.dim, &query, k))
    }
}

/// Appends a vector at unit length; zeros stay zeros.
fn extend_unit(to: &mut Vec<f32>, vector: &[f32]) {
    let square: f64 = vector.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    let scale = (1.0 / square.sqrt().max(1e-12)) as f32;
    to.extend(vector.iter().map(|v| v * scale));
}
