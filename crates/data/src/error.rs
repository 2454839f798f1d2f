//! What can go wrong between a name the user typed and pictures in memory.
//!
//! Every message names the thing, the reason and, where there is one, the way out.

use std::path::{Path, PathBuf};

/// Why pictures could not be had. Kinds that somebody acts on have a variant each.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// There is no data set, file or folder of that name.
    #[error("{0}")]
    NotFound(String),
    /// A published set lies in none of its places, or something else lies in its place.
    #[error("{0}")]
    NotThisSet(String),
    /// A list, an archive, a pack or a file of a published set that cannot be read, or makes no
    /// sense.
    #[error("{}: {reason}", .path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What was met, and what was expected.
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
    /// Anything else that cannot be: an option outside its range, pixels and labels that do not
    /// fit.
    #[error("{0}")]
    Usage(String),
    /// Anything else that failed.
    #[error("{0}")]
    Failed(String),
}

impl DataError {
    /// Whether something was asked for that cannot be, rather than something having failed.
    pub fn is_usage(&self) -> bool {
        use DataError::*;
        !matches!(self, BadFile { .. } | Io { .. } | Failed(_))
    }

    /// A path at which nothing is.
    pub(crate) fn not_found(path: &Path) -> Self {
        DataError::NotFound(format!("{}: there is no such file or folder", path.display()))
    }

    /// A place that should hold a set with these files, and does not.
    pub(crate) fn not_this_set(path: &Path, set: &str, layout: &str) -> Self {
        let path = path.display();
        DataError::NotThisSet(format!("{path}: this is not {set}: expected {layout} here"))
    }

    /// More than a tenth of the pictures under `root` cannot be read, the first for this reason.
    pub(crate) fn too_many_unreadable(
        root: &Path,
        skipped: usize,
        total: usize,
        first: Option<&(String, String)>,
    ) -> Self {
        let (first, why) = first.cloned().unwrap_or_default();
        DataError::Failed(format!(
            "{}: {skipped} of {total} pictures cannot be read, more than the 10% that are \
             skipped; the first is {first} ({why}). Remove or repair them",
            root.display()
        ))
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

    /// An option that must be otherwise.
    pub(crate) fn option(option: &str, why: impl std::fmt::Display) -> Self {
        DataError::Usage(format!("{option}: {why}"))
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        DataError::Io { path: path.into(), source }
    }
}
