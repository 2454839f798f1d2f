//! Sets whose pictures are files: which files make up a split, which of them are taken, and how
//! they are read.
//!
//! Whoever knows a form on disk (a folder, a published set) writes a [`Listing`]; the rest is
//! the same for all.

pub(crate) mod archive;
pub(crate) mod choose;
pub(crate) mod decode;
mod find;
mod formats;
mod heif;
mod jpeg;
pub(crate) mod kinds;
pub(crate) mod list;
mod metadata;
mod named;
mod on_demand;
mod read;
pub(crate) mod scan;
mod semaphore;
mod survey;
mod webdataset;

use std::path::{Path, PathBuf};

pub use archive::{about as about_picture, archived_picture, bytes as picture_bytes, is_member};
pub use decode::Picture;
pub use find::{PictureFile, find_pictures};
pub use formats::{FORMATS, ImageFormat};
pub use kinds::PassedOver;
pub use metadata::ImageMetadata;
pub use named::{name_of, picture_named, unseen};
pub(crate) use on_demand::{GREY, OnDemand};
pub(crate) use read::open;
#[cfg(test)]
pub(crate) use read::open_within;

use crate::datasets::DatasetSpec;
use crate::folder::FolderLabels;
use crate::{DataError, Labels};

/// Whether a JPEG file can be read at an eighth of its size, however small it is.
pub(crate) fn reads_at_an_eighth(bytes: &[u8]) -> bool {
    let Ok(Some(frame)) = jpeg::check_whole(bytes) else {
        return false;
    };
    let small = frame.width * frame.height <= 1 << 20;
    let image = small.then(|| jpeg::eighth(bytes, &frame)).flatten();
    image.is_some_and(|(width, height, rgb)| rgb.len() == width * height * 3)
}

/// Names of what could not be read, each with the reason.
pub type Skipped = Vec<(String, String)>;

/// Which files a data set consists of; none is read yet.
#[derive(Debug)]
pub struct Listing {
    /// What to call the set.
    pub name: String,
    /// Names of files are relative to this: the folder, the archive, or the folder of the list.
    pub root: PathBuf,
    /// The files to train on.
    pub(crate) train: Part,
    /// Those to test on, where the set says so.
    pub(crate) test: Option<Part>,
    /// Whether a share of the training pictures is held out where there are labels and no test
    /// part.
    pub(crate) holds_out: bool,
    /// Folders that could not be read, each with the reason.
    pub unreadable: Skipped,
    /// Files to test on that should be there as well.
    pub(crate) missing: Vec<String>,
    /// What else was found and decided.
    pub report: FolderReport,
    /// The published set that it is.
    pub(crate) set: Option<&'static DatasetSpec>,
}

/// What was found in a folder beside pictures, and what was decided about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderReport {
    /// Whether its sub-folders are classes; none for what is no folder of pictures.
    pub labels: Option<FolderLabels>,
    /// Files that are not read, by kind: first what may show something.
    pub passed_over: Vec<PassedOver>,
}

/// Files of one split with their classes.
#[derive(Debug)]
pub(crate) struct Part {
    /// Names of the files, in their order.
    pub files: Vec<String>,
    /// The class of each, where there are classes.
    pub labels: Option<Labels>,
}

impl Listing {
    /// A published set, which lies in a folder and tells its two parts.
    pub(crate) fn published(
        set: &'static DatasetSpec,
        folder: &Path,
        train: Part,
        test: Part,
    ) -> Self {
        Listing {
            name: set.name.into(),
            root: folder.into(),
            train,
            test: Some(test),
            holds_out: false,
            unreadable: vec![],
            missing: vec![],
            report: FolderReport::default(),
            set: Some(set),
        }
    }

    /// Side of the pictures unless another is asked for.
    pub(crate) fn default_size(&self) -> usize {
        self.set.map_or(crate::folder::SIZE, |set| set.size)
    }

    /// Why there is nothing to read.
    pub(crate) fn empty(&self) -> DataError {
        let kinds = self.report.passed_over.iter().filter(|kind| kind.why.is_some());
        let kinds: Vec<String> = kinds.map(PassedOver::to_string).collect();
        let instead =
            if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        DataError::NotThisSet(format!(
            "{}: no pictures here{instead}; give a folder with {} files, flat or in sub-folders",
            self.root.display(),
            ImageFormat::names()
        ))
    }

    /// Both parts by what they are called.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, &Part)> {
        let test = self.test.as_ref().map(|part| ("test", part));
        std::iter::once(("train", &self.train)).chain(test)
    }
}

impl Part {
    /// Names of its classes; none where it has no labels.
    pub fn classes(&self) -> &[String] {
        self.labels.as_ref().map_or(&[][..], Labels::classes)
    }
}
