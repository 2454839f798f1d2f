//! What can go wrong between a name the user typed and pictures in memory.
//!
//! Every message names the thing, the reason and, where there is one, the way out.

use std::path::{Path, PathBuf};

use crate::{ImageFormat, PassedOver, dataset_names};

/// Why pictures could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The name is neither a data set nor a path.
    #[error(
        "there is no data set or folder called `{name}`{}; give {}, or the path of a folder of \
         pictures",
        .suggestion.map(|s| format!(" (did you mean `{s}`?)")).unwrap_or_default(),
        dataset_names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    )]
    UnknownName {
        /// What was asked for.
        name: String,
        /// The data set with the nearest name.
        suggestion: Option<&'static str>,
    },
    /// A path was given, and nothing is there.
    #[error("{}: there is no such file or folder", .path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// A published set without a path, and in none of its usual places.
    #[error(
        "{name} was not found; looked in {}. Get it with `anchorhood data fetch {name}`, or give \
         its place as `{name}:PATH` or in {variable}",
        .looked.join(", ")
    )]
    SetNotFound {
        /// The data set.
        name: &'static str,
        /// The environment variable that may name its place.
        variable: &'static str,
        /// Every place looked in.
        looked: Vec<String>,
    },
    /// A place that should hold a published set does not.
    #[error("{}: this is not {expected}: expected {layout} here", .path.display())]
    NotThisSet {
        /// The place.
        path: PathBuf,
        /// The set that was asked for.
        expected: &'static str,
        /// What it consists of.
        layout: &'static str,
    },
    /// A list, an archive or a file of a published set that cannot be read, or makes no sense.
    #[error("{}: {reason}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What was met, and what was expected.
        reason: String,
    },
    /// A packed set that cannot be used.
    #[error("{}: {reason}; pack the pictures again with `anchorhood data pack`", .path.display())]
    BadPack {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder without a single picture.
    #[error(
        "{}: no pictures here{}; give a folder with {} files, flat or in sub-folders",
        .path.display(), in_brackets(.passed_over), ImageFormat::names()
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
        /// What is there instead.
        passed_over: Vec<PassedOver>,
    },
    /// More than a tenth of the pictures cannot be read.
    #[error(
        "{}: {skipped} of {total} pictures cannot be read, more than the 10% that are skipped; \
         the first is {first} ({why}). Remove or repair them",
        .path.display()
    )]
    TooManyUnreadable {
        /// The folder.
        path: PathBuf,
        /// How many failed.
        skipped: usize,
        /// How many there are.
        total: usize,
        /// The first that failed.
        first: String,
        /// Why it failed.
        why: String,
    },
    /// A file where a folder or an archive was needed.
    #[error(
        "{}: neither a folder, nor a packed set, nor a .tar of pictures, nor a .txt that lists \
         files, nor a .tar.gz archive of CIFAR",
        .path.display()
    )]
    NotADataset {
        /// The file.
        path: PathBuf,
    },
    /// A packed set of another size than was asked for.
    #[error("size: {} holds pictures of {size}×{size}, not {asked}×{asked}", .path.display())]
    PackSize {
        /// The file.
        path: PathBuf,
        /// Pixels a side of its pictures.
        size: usize,
        /// What was asked for.
        asked: usize,
    },
    /// A packed set would take the place of another.
    #[error(
        "output: {} is there already, and was not made from these pictures at this size by this \
         version",
        .path.display()
    )]
    PackExists {
        /// The file.
        path: PathBuf,
    },
    /// More pictures to validate on than can be held out of training, or none.
    #[error(
        "{asked} of the {there} training pictures of {data} cannot be held out to validate on: \
         give at least 1, and leave at least 2 to train on"
    )]
    Validation {
        /// The data set.
        data: String,
        /// How many were asked for.
        asked: usize,
        /// Training pictures there are.
        there: usize,
    },
    /// Pictures to validate on, and nothing to judge them by.
    #[error("none of the training pictures of {data} can be validated on: they have no labels")]
    ValidationWithoutLabels {
        /// The data set.
        data: String,
    },
    /// An option outside its range.
    #[error("{option}: {why}")]
    BadOption {
        /// The option's name.
        option: &'static str,
        /// What it must be.
        why: String,
    },
    /// Pixels, pictures, labels or names that a program put together and that do not fit.
    #[error("{why}")]
    Unfit {
        /// Which, and what would fit.
        why: String,
    },
    /// Processes that cannot tell each other what they saw.
    #[error("the processes that open these pictures together lost each other: {why}")]
    Fellows {
        /// What was met.
        why: String,
    },
    /// Fewer pictures than one batch takes.
    #[error("{have} pictures do not fill a batch of {batch}; use a batch of at most {have}")]
    TooFewPictures {
        /// How many there are.
        have: usize,
        /// The batch size.
        batch: usize,
    },
}

/// Files that may show something, by kind.
fn in_brackets(kinds: &[PassedOver]) -> String {
    let kinds = kinds.iter().filter(|kind| kind.why.is_some());
    let kinds: Vec<String> = kinds.map(PassedOver::to_string).collect();
    if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) }
}

impl DataError {
    /// Whether something was asked for that cannot be, rather than something having failed.
    pub fn is_usage(&self) -> bool {
        use DataError::*;
        matches!(
            self,
            UnknownName { .. }
                | NotFound { .. }
                | SetNotFound { .. }
                | NotThisSet { .. }
                | EmptyFolder { .. }
                | NotADataset { .. }
                | PackSize { .. }
                | PackExists { .. }
                | BadOption { .. }
                | Validation { .. }
                | ValidationWithoutLabels { .. }
                | Unfit { .. }
        )
    }

    /// A file, a list or an archive that cannot be read, or makes no sense.
    pub(crate) fn bad(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        DataError::BadFile { path: path.into(), reason: reason.into() }
    }

    /// A file of a set that is not in its folder or archive.
    pub(crate) fn missing(path: impl Into<PathBuf>, file: &str) -> Self {
        let lost = "the copy is incomplete, unpack the archive again";
        DataError::bad(path, format!("the file {file} is missing; {lost}"))
    }

    /// A list that names so many files, of which some are not there.
    pub(crate) fn not_there(list: PathBuf, named: usize, missing: usize, first: &Path) -> Self {
        let first = first.display();
        DataError::bad(
            list,
            format!(
                "names {named} pictures, of which {missing} are not there; the first is {first}. \
                 Unpack the archive again, or see `anchorhood data check`"
            ),
        )
    }

    pub(crate) fn option(option: &'static str, why: impl Into<String>) -> Self {
        DataError::BadOption { option, why: why.into() }
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        DataError::Io { path: path.into(), source }
    }
}
