//! What there is to learn from, to index and to judge on.

use std::path::{Path, PathBuf};

use anchorhood_data::{Dataset, LoadOptions, Pictures, open};

use crate::{Error, find};

/// Images: a folder, a published data set, or pixels in memory. Files are read when something is
/// done with them, in the size that it needs.
#[derive(Clone, Debug)]
pub struct Images(Place);

#[derive(Clone, Debug)]
enum Place {
    Named(String),
    InMemory(Box<Dataset>),
}

impl Images {
    /// A folder of images, `.tar` of them or list of files; `shapes`; or a published data set by
    /// its name, alone or as `NAME:PATH`. Sub-folders are classes where they look like it; labels
    /// only judge.
    pub fn open(place: impl AsRef<Path>) -> Result<Images, Error> {
        let place = place.as_ref();
        let name = place.to_str().ok_or_else(|| {
            Error::usage(format!("{}: its name is not UTF-8; rename it", place.display()))
        })?;
        anchorhood_data::check_place(name)?;
        Ok(Images(Place::Named(name.into())))
    }

    /// A data set in memory: its training part is learnt from, its test part judged on.
    pub fn in_memory(data: Dataset) -> Images {
        Images(Place::InMemory(Box::new(data)))
    }

    /// RGB pixels in memory: as many images of `height` × `width` as there are bytes for.
    pub fn from_pixels(height: usize, width: usize, bytes: Vec<u8>) -> Result<Images, Error> {
        Ok(Images::in_memory(Dataset::new("pixels", Pictures::new(height, width, bytes)?)))
    }

    /// Images that a function makes whenever they are asked for, from any thread: it is given the
    /// number of an image and its RGB bytes to fill, with the same every time.
    pub fn from_fn(
        height: usize,
        width: usize,
        count: usize,
        draw: impl Fn(usize, &mut [u8]) + Send + Sync + 'static,
    ) -> Result<Images, Error> {
        let pictures = Pictures::from_fn(height, width, count, draw)?;
        Ok(Images::in_memory(Dataset::new("drawn", pictures)))
    }

    /// Where they lie, as it can be typed; nothing of images in memory.
    pub fn place(&self) -> Option<&str> {
        match &self.0 {
            Place::Named(name) => Some(name),
            Place::InMemory(_) => None,
        }
    }

    /// Reads them.
    pub fn load(&self, options: &LoadOptions) -> Result<Dataset, Error> {
        Ok(match &self.0 {
            Place::Named(name) => open(name, options)?,
            Place::InMemory(data) => (**data).clone().with_options(options)?,
        })
    }

    /// Whether a word means images to look through (a folder, an archive, a list of files), and not
    /// an index of them.
    pub fn are_in(path: &Path) -> bool {
        find::is_folder(path)
    }

    /// Refuses a model that was given where a folder of images belongs.
    pub fn check_folders(runs: &Path, folders: &[PathBuf]) -> Result<(), Error> {
        find::check_folders(runs, folders)
    }

    pub(crate) fn dataset(&self) -> Option<&Dataset> {
        match &self.0 {
            Place::Named(_) => None,
            Place::InMemory(data) => Some(data),
        }
    }
}
