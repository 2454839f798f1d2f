//! Folders of images, searchable: which are alike, the same, odd; which groups do they form?

use std::fmt;
use std::path::{Path, PathBuf};

use anchorhood_engine::Device;
use anchorhood_index::curate::{
    Chosen, Cluster, DuplicateOptions, Duplicates, kmeans_clusters, select,
};
use anchorhood_index::{
    CopySearch, Decisions, FolderEvent, FolderJob, GivenLabels, Model, PictureIndex, cached_index,
};
use anchorhood_train::Event;

use crate::{Error, Images, LabelledIndex, OnEvent, Outlier, OutlierKind, outliers};

/// An index of a folder, with the model whose vectors it holds, on a device.
///
/// ```no_run
/// use anchorhood::prelude::*;
///
/// let model = Model::base()?;
/// let index = Index::build(&Images::open("photos")?, &model)?;
/// for hit in index.search_file("query.jpg", 20)? {
///     println!("{hit}");
/// }
/// for group in &index.duplicates(&Default::default())?.groups {
///     println!("keep {}", index.name(group.keep));
/// }
/// # Ok::<(), anchorhood::Error>(())
/// ```
pub struct Index {
    index: PictureIndex,
    model: Model,
    device: Device,
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
}

impl fmt::Display for SearchResult {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:.4}  {}", self.similarity, self.name)
    }
}

impl Index {
    /// The index of a folder, kept in the user's cache: made, or brought up to date where it is
    /// there. Broken off, the same call goes on.
    pub fn build(images: &Images, model: &Model) -> Result<Index, Error> {
        let folder = folder_of(images)?;
        let path = cached_index(model, std::slice::from_ref(&folder), None)?;
        let device = Device::auto();
        // One that cannot be brought up to date is made again: the cache is ours.
        let index = PictureIndex::build(path, model, &device, folder)?;
        Ok(Index { index, model: model.clone(), device })
    }

    /// The same in a file and on a device of one's choice. `on_event` hears of progress, and of
    /// files that cannot be read and are left out.
    pub fn build_at(
        path: impl AsRef<Path>,
        images: &Images,
        model: &Model,
        device: &Device,
        on_event: OnEvent,
    ) -> Result<Index, Error> {
        let (path, folders) = (path.as_ref(), [folder_of(images)?]);
        let job = FolderJob::new(model, &folders, path);
        let known = match path.exists() {
            true => Some(PictureIndex::to_bring_up_to_date(path, &job).map_err(|why| {
                Error::usage(format!(
                    "{}: exists already, and {why}; choose another path",
                    path.display()
                ))
            })?),
            false => None,
        };
        let job = FolderJob { known: known.as_ref(), ..job };
        let mut hear = |event: FolderEvent| match event {
            FolderEvent::Progress { done, total } => {
                on_event(&Event::Loading { done, pictures: total });
            }
            FolderEvent::Skipped { name, why } => {
                on_event(&Event::warning(format!("{name}: skipped: {why}")));
            }
            _ => {}
        };
        let (index, _) = job.run_whole(device, &mut hear)?.save(path, &job, device, false)?;
        Ok(Index { index, model: model.clone(), device: device.clone() })
    }

    /// Opens an index that this model made.
    pub fn open(path: impl AsRef<Path>, model: &Model) -> Result<Index, Error> {
        let index = PictureIndex::load(path)?;
        index.check_model(model)?;
        Ok(Index { index, model: model.clone(), device: Device::auto() })
    }

    /// On another device.
    pub fn on(self, device: Device) -> Index {
        Index { device, ..self }
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

    /// All that is in it.
    pub fn parts(&self) -> &PictureIndex {
        &self.index
    }

    /// The images most similar to a vector of its model, most similar first.
    pub fn search(&self, vector: &[f32], count: usize) -> Result<Vec<SearchResult>, Error> {
        let found = self.device.within(|| self.index.nearest(vector, count))?;
        let found = found.into_iter().map(|hit| SearchResult {
            number: hit.index,
            name: self.name(hit.index).into(),
            path: self.path(hit.index),
            similarity: hit.similarity,
        });
        Ok(found.collect())
    }

    /// The images most similar to one in a file.
    pub fn search_file(
        &self,
        file: impl AsRef<Path>,
        count: usize,
    ) -> Result<Vec<SearchResult>, Error> {
        let vector = self.model.embedder(&self.device, 1, None)?.embed_file(file.as_ref())?;
        self.search(&vector, count)
    }

    /// Groups of images that are one, and which of each to keep; pairs that the user has said to be
    /// none are left out.
    pub fn duplicates(&self, options: &DuplicateOptions) -> Result<Duplicates, Error> {
        let search = CopySearch::new(&self.index, None)?;
        let decisions = Decisions::of_user()?;
        let find = || search.find(&self.device, options, &decisions, &|_, _, _| {});
        Ok(self.device.within(find)?)
    }

    /// Every image in one of so many clusters, the most typical first.
    pub fn cluster(&self, clusters: usize, seed: u64) -> Result<Vec<Cluster>, Error> {
        let (vectors, dim) = (self.index.vectors()?, self.index.parts().dim);
        let find = || kmeans_clusters(&self.device, vectors, dim, clusters, seed);
        Ok(self.device.within(find)?)
    }

    /// Up to so many images that stand for all, the first to label first.
    pub fn select(&self, count: usize) -> Result<Vec<Chosen>, Error> {
        let (vectors, dim) = (self.index.vectors()?, self.index.parts().dim);
        Ok(self.device.within(|| select(vectors, dim, count, &[], &mut |_| {})))
    }

    /// All images, the oddest first.
    pub fn outliers(&self, by: OutlierKind, on_event: OnEvent) -> Result<Vec<Outlier>, Error> {
        outliers(&self.index, &self.device, by, on_event)
    }

    /// The images with labels, those of sub-folders where none are given: to
    /// [`classify`](LabelledIndex::classify), or to find
    /// [`wrong_labels`](LabelledIndex::wrong_labels).
    pub fn labelled(&self, labels: Option<&GivenLabels>) -> Result<LabelledIndex<'_>, Error> {
        LabelledIndex::new(&self.index, labels)
    }
}

fn folder_of(images: &Images) -> Result<PathBuf, Error> {
    let folder = images.place().map(PathBuf::from).filter(|place| place.is_dir());
    folder.ok_or_else(|| {
        let what = images.place().unwrap_or("images in memory");
        Error::usage(format!("{what}: an index is of the files of a folder; give one"))
    })
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
        let (images, model) = (Images::open(&folder).unwrap(), Model::base().unwrap());
        let (file, device) = (place.path().join("photos.index"), Device::cpu(2));
        let mut warnings = vec![];
        let mut on_event = |event: &Event| {
            if let Event::Warning { message } = event {
                warnings.push(message.clone());
            }
        };
        let index = Index::build_at(&file, &images, &model, &device, &mut on_event).unwrap();
        assert!(warnings.len() == 1 && warnings[0].starts_with("broken.png"), "{warnings:?}");
        assert_eq!(index.len(), 12);
        let found = index.search_file(folder.join("04.png"), 3).unwrap();
        assert!(found[0].similarity > 0.999 && found[1].similarity > 0.999, "{found:?}");
        assert!(["04.png", "05.png"].contains(&found[0].name.as_str()));
        assert!(found[0].to_string().ends_with(&found[0].name) && found[0].path.is_file());
        let copies = index.duplicates(&DuplicateOptions::default()).unwrap();
        assert_eq!(copies.groups.len(), 6);
        assert_eq!(index.cluster(3, 0).unwrap().len(), 3);
        assert_eq!(index.select(4).unwrap().len(), 4);
        assert_eq!(index.outliers(OutlierKind::Unlike(3), &mut |_| {}).unwrap().len(), 12);
        assert_eq!(Index::open(&file, &model).unwrap().on(device).len(), 12);
        let none = index.labelled(None).err().unwrap();
        assert_eq!(none.kind(), ErrorKind::Usage);
        let pixels = Images::from_pixels(8, 8, vec![0; 192]).unwrap();
        assert_eq!(Index::build(&pixels, &model).err().unwrap().kind(), ErrorKind::Usage);
    }
}
