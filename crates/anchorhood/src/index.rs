//! Folders of images, searchable: which are alike, the same, odd; which groups do they form?

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use anchorhood_engine::Device;
use anchorhood_index::curate::{
    Chosen, Cluster, DuplicateOptions, GraphOptions, graph_clusters, kmeans_clusters, select,
};
use anchorhood_index::{Changes, Embedder, GivenLabels, Model, PictureIndex, SearchError};
use anchorhood_train::{Event, model_path, refitted_path};

use crate::error::usage;
use crate::{
    DuplicateSearch, Error, FolderEmbedder, FoundDuplicates, Images, LabelledIndex, OnEvent,
    Outlier, OutlierKind, outliers,
};

/// An index of folders, with the model whose vectors it holds, on a device.
///
/// ```no_run
/// use anchorhood::prelude::*;
///
/// let model = Model::base()?;
/// let index = Index::build(&Images::open("photos")?, &model)?;
/// for hit in index.search_file("query.jpg", 20)? {
///     println!("{hit}");
/// }
/// let duplicates = index.duplicates(&Default::default())?;
/// for group in &duplicates.groups {
///     println!("keep {}", index.name(group.keep));
/// }
/// duplicates.move_to("copies")?; // `undo_moves("copies/undo.jsonl", false)` puts them back
/// # Ok::<(), anchorhood::Error>(())
/// ```
#[derive(Clone)]
pub struct Index {
    index: PictureIndex,
    model: OnceLock<Option<Model>>,
    /// Where a model that is not at hand is looked for.
    runs: PathBuf,
    device: OnceLock<Device>,
    changes: Option<Changes>,
}

/// An image that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// Its number in the index.
    pub number: usize,
    /// Its name in the index.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// 1 is the same image; images that have nothing in common are near 0.
    pub similarity: f32,
    /// Its class, where its folder has classes.
    pub label: Option<String>,
}

impl fmt::Display for SearchResult {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:.4}  {}", self.similarity, self.name)
    }
}

/// How clusters are found.
#[derive(Clone, Debug)]
pub enum Clustering {
    /// So many, around centres.
    KMeans {
        /// How many.
        clusters: usize,
        /// Decides where they begin.
        seed: u64,
    },
    /// Connected groups of mutual neighbours.
    Graph(GraphOptions),
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Index({}, {} images)", self.file().display(), self.len())
    }
}

impl Index {
    /// The index of a folder, kept in the user's cache: made, or brought up to date where it is
    /// there. Broken off, the same call goes on. A [`FolderEmbedder`] has more to say about it.
    pub fn build(images: &Images, model: &Model) -> Result<Index, Error> {
        let folder = images.place().filter(|place| Path::new(place).is_dir());
        let folder = folder.ok_or_else(|| {
            let what = images.place().unwrap_or("images in memory");
            usage!("{what}: an index is of the files of a folder; give one")
        })?;
        FolderEmbedder::new([folder], model).cached_index()
    }

    /// Opens an index.
    pub fn open(path: impl AsRef<Path>) -> Result<Index, Error> {
        let path = path.as_ref();
        if !path.exists() {
            return Err(usage!(
                "{}: there is no such index; make one with `anchorhood index`",
                path.display()
            ));
        }
        Ok(Index::of(PictureIndex::load(path)?))
    }

    pub(crate) fn of(index: PictureIndex) -> Index {
        let (model, device) = (OnceLock::new(), OnceLock::new());
        Index { index, model, runs: "runs".into(), device, changes: None }
    }

    pub(crate) fn made_by(self, model: Model, device: Device, changes: Changes) -> Index {
        Index { model: Some(model).into(), device: device.into(), changes: Some(changes), ..self }
    }

    /// With its folders where they are now; of several `LABEL=FOLDER`.
    pub fn moved_to<P: AsRef<Path>>(mut self, now: &[P]) -> Result<Index, Error> {
        self.index.moved_to(now)?;
        Ok(self)
    }

    /// With the model that made it, which is found by itself where it is `base`, a file that lies
    /// where it was, or a run's in the folder `runs`.
    pub fn with_model(self, model: &Model) -> Result<Index, Error> {
        self.index.check_model(model)?;
        Ok(Index { model: Some(model.clone()).into(), ..self })
    }

    /// With another folder of runs, among which its model is looked for.
    pub fn with_runs(self, runs: impl Into<PathBuf>) -> Index {
        Index { runs: runs.into(), ..self }
    }

    /// On a device; [`Device::auto`] where nobody says.
    pub fn on(self, device: Device) -> Index {
        Index { device: device.into(), ..self }
    }

    /// How many images it has.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An image's name.
    pub fn name(&self, number: usize) -> &str {
        self.index.name(number)
    }

    /// Where an image lies.
    pub fn path(&self, number: usize) -> PathBuf {
        self.index.picture(number)
    }

    /// The file that keeps it.
    pub fn file(&self) -> &Path {
        self.index.path()
    }

    /// Its folders, in words.
    pub fn folders(&self) -> String {
        let folders = self.index.folders();
        let named: Vec<String> = folders.iter().map(|f| f.path.display().to_string()).collect();
        named.join(", ")
    }

    /// What became of its images when it was made or brought up to date just now, if it was.
    pub fn changes(&self) -> Option<Changes> {
        self.changes
    }

    /// All that is in it.
    pub fn parts(&self) -> &PictureIndex {
        &self.index
    }

    /// The model that made it, where it can be found.
    pub fn model(&self) -> Option<&Model> {
        self.model.get_or_init(|| maker(&self.runs, &self.index)).as_ref()
    }

    /// The same, or an error that says where it was.
    pub fn needed_model(&self) -> Result<&Model, Error> {
        self.model().ok_or_else(|| {
            let named = self.index.parts().model_path.as_deref();
            let named = named.map_or(String::new(), |path| format!(" ({path})"));
            usage!(
                "{}: the model that made it{named} is not found, neither there nor among the \
                 runs; name it by --model",
                self.file().display()
            )
        })
    }

    /// Where it works.
    pub fn device(&self) -> &Device {
        self.device.get_or_init(Device::auto)
    }

    /// All vectors, row after row.
    pub fn vectors(&self) -> Result<&[f32], Error> {
        Ok(self.index.vectors()?)
    }

    /// Values of a vector.
    pub fn dim(&self) -> usize {
        self.index.parts().dim
    }

    /// The images most similar to a vector of its model, most similar first.
    pub fn search(&self, vector: &[f32], count: usize) -> Result<Vec<SearchResult>, Error> {
        self.search_by(vector, count, false)
    }

    /// The same of all images, also where the index is divided into clusters.
    pub fn search_all(&self, vector: &[f32], count: usize) -> Result<Vec<SearchResult>, Error> {
        self.search_by(vector, count, true)
    }

    fn search_by(&self, to: &[f32], count: usize, all: bool) -> Result<Vec<SearchResult>, Error> {
        let found = self.device().within(|| match all {
            true => self.index.nearest_exactly(to, count),
            false => self.index.nearest(to, count),
        })?;
        let result = |hit: anchorhood_index::curate::Hit| SearchResult {
            number: hit.index,
            name: self.name(hit.index).into(),
            path: self.path(hit.index),
            similarity: hit.similarity,
            label: self.index.parts().classes[hit.index].clone(),
        };
        Ok(found.into_iter().map(result).collect())
    }

    /// The images most similar to one in a file.
    pub fn search_file(
        &self,
        file: impl AsRef<Path>,
        count: usize,
    ) -> Result<Vec<SearchResult>, Error> {
        let vector = self.embedder()?.embed_file(file.as_ref())?;
        self.search(&vector, count)
    }

    /// Its model, to embed what is searched for.
    pub fn embedder(&self) -> Result<Embedder, Error> {
        let layer = self.index.parts().layer.as_deref();
        Ok(self.needed_model()?.embedder(self.device(), 1, layer)?)
    }

    /// Groups of images that are one, and which of each to keep; pairs that the user has said to be
    /// none are left out. A [`DuplicateSearch`] has more to say about it.
    pub fn duplicates(&self, options: &DuplicateOptions) -> Result<FoundDuplicates, Error> {
        DuplicateSearch::new(self, None)?.find(options, &|_, _, _| {})
    }

    /// Images that belong together, the most typical of each cluster first.
    pub fn cluster(&self, by: &Clustering, on_event: OnEvent) -> Result<Vec<Cluster>, Error> {
        let (vectors, dim, device) = (self.vectors()?, self.dim(), self.device());
        let on_event = Mutex::new(on_event);
        let find = || match by {
            Clustering::KMeans { clusters, seed } => {
                kmeans_clusters(device, vectors, dim, *clusters, *seed)
            }
            Clustering::Graph(options) => {
                let progress = |done| loading(&on_event, done, self.len());
                graph_clusters(device, vectors, dim, options, &progress)
            }
        };
        Ok(device.within(find)?)
    }

    /// Up to so many images that stand for all beside those that are chosen `already`, the first to
    /// label first.
    pub fn select(
        &self,
        count: usize,
        already: &[usize],
        on_event: OnEvent,
    ) -> Result<Vec<Chosen>, Error> {
        if let Some(number) = already.iter().find(|number| **number >= self.len()) {
            return Err(usage!(
                "there is no picture {number}; the index has {}, numbered from 0",
                self.len()
            ));
        }
        let mut chosen = |done| on_event(&Event::Loading { done, pictures: count });
        Ok(select(self.vectors()?, self.dim(), count, already, &mut chosen))
    }

    /// The numbers of images, by their names.
    pub fn numbers(&self, names: &[impl AsRef<str>]) -> Result<Vec<usize>, Error> {
        let known: std::collections::HashMap<&str, usize> =
            self.index.parts().names.iter().map(String::as_str).zip(0..).collect();
        let (mut found, mut unknown) = (vec![], vec![]);
        for name in names.iter().map(AsRef::as_ref) {
            match known.get(name).or_else(|| known.get(name.trim().trim_start_matches("./"))) {
                Some(number) => found.push(*number),
                None => unknown.push(name),
            }
        }
        match &unknown[..] {
            [] => Ok(found),
            [first, ..] => Err(usage!(
                "{} pictures are not in {} (the first is {first}); give names as the index has \
                 them, and as `anchorhood select` prints them",
                unknown.len(),
                self.folders()
            )),
        }
    }

    /// All images, the oddest first.
    pub fn outliers(&self, by: OutlierKind, on_event: OnEvent) -> Result<Vec<Outlier>, Error> {
        outliers::outliers(self, by, on_event)
    }

    /// The images with labels, those of sub-folders where none are given: to
    /// [`classify`](LabelledIndex::classify), or to find
    /// [`wrong_labels`](LabelledIndex::wrong_labels).
    pub fn labelled(&self, labels: Option<&GivenLabels>) -> Result<LabelledIndex<'_>, Error> {
        LabelledIndex::new(self, labels)
    }
}

/// Tells that so many are done, unless somebody else is telling it.
pub(crate) fn loading(on_event: &Mutex<OnEvent>, done: usize, pictures: usize) {
    if let Ok(mut on_event) = on_event.try_lock() {
        on_event(&Event::Loading { done, pictures });
    }
}

/// The model that made an index: the one inside the program, the one it names, or that of one of
/// the runs.
fn maker(runs: &Path, index: &PictureIndex) -> Option<Model> {
    let fits = |model: &Model| index.parts().model == model.fingerprint();
    let load = |path: PathBuf| {
        let model = || -> Result<Model, SearchError> { Model::load(&path) };
        let there = path.is_file().then(|| model().ok());
        there.flatten().filter(fits)
    };
    let named = || index.parts().model_path.as_ref().map(PathBuf::from);
    let runs = || {
        let folders = std::fs::read_dir(runs).into_iter().flatten().flatten();
        folders.flat_map(|folder| [refitted_path, model_path].map(|of| of(&folder.path())))
    };
    let base = Model::base().ok().filter(fits);
    base.or_else(|| named().and_then(load)).or_else(|| runs().find_map(load))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_folder_is_searched_sorted_and_cleaned() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("photos");
        std::fs::create_dir(&folder).unwrap();
        for i in 0..12_u32 {
            // Squares of colours that say nothing of each other; two of each image.
            let pixel = |x: u32, y: u32| {
                let square = (x / 8, y / 8, i / 2);
                let mixed = (square.0 * 73 + square.1 * 179 + square.2 * 283 + 7)
                    .wrapping_mul(2_654_435_761);
                image::Rgb([mixed >> 8, mixed >> 16, mixed >> 24].map(|byte| byte as u8))
            };
            let image = image::RgbImage::from_fn(64, 64, pixel);
            image.save(folder.join(format!("{i:02}.png"))).unwrap();
        }
        std::fs::write(folder.join("broken.png"), b"no image").unwrap();
        let model = Model::base().unwrap();
        let (file, device) = (place.path().join("photos.index"), Device::cpu(2));
        let mut warnings = vec![];
        let mut on_event = |event: &Event| {
            if let Event::Warning { message } = event {
                warnings.push(message.clone());
            }
        };
        let embedder = FolderEmbedder::new([&folder], &model).device(device.clone());
        let index = embedder.on_event(&mut on_event).index(&file).unwrap();
        assert!(warnings.len() == 2 && warnings[0].starts_with("broken.png"), "{warnings:?}");
        assert_eq!(index.len(), 12);
        let found = index.search_file(folder.join("04.png"), 3).unwrap();
        assert!(found[0].similarity > 0.999 && found[1].similarity > 0.999, "{found:?}");
        assert!(["04.png", "05.png"].contains(&found[0].name.as_str()));
        assert!(found[0].to_string().ends_with(&found[0].name) && found[0].path.is_file());
        let copies = index.duplicates(&DuplicateOptions::default()).unwrap();
        assert_eq!((copies.groups.len(), copies.copies()), (6, 6));
        let by = Clustering::KMeans { clusters: 3, seed: 0 };
        assert_eq!(index.cluster(&by, &mut |_| {}).unwrap().len(), 3);
        assert_eq!(index.select(4, &[], &mut |_| {}).unwrap().len(), 4);
        assert_eq!(index.numbers(&["./00.png"]).unwrap(), [0]);
        assert_eq!(index.numbers(&["x"]).unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(index.outliers(OutlierKind::Unlike(3), &mut |_| {}).unwrap().len(), 12);
        let opened = Index::open(&file).unwrap().on(device);
        assert_eq!(opened.model().map(Model::fingerprint), Some(model.fingerprint()));
        let none = index.labelled(None).err().unwrap();
        assert_eq!(none.kind(), ErrorKind::Usage);
        let pixels = Images::from_pixels(8, 8, vec![0; 192]).unwrap();
        assert_eq!(Index::build(&pixels, &model).err().unwrap().kind(), ErrorKind::Usage);
    }
}
