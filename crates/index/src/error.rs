//! Why pictures cannot be searched. Each message names the thing, the reason and the way out.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anchorhood_data::DataError;
use anchorhood_engine::vectors::KmeansError;
use anchorhood_models::WeightsError;
use anchorhood_storage::{FileError, FileProblem};
use anchorhood_train::CheckpointError;

/// An error of searching. Those that somebody tells apart have a variant of their own.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The pictures cannot be had.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The model cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
    /// Another program's weights that no network here has.
    #[error("{}: {source}", .path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: WeightsError,
    },
    /// An interrupted job with other settings lies where this one would keep its own.
    #[error("{}: an interrupted job is kept here, but {what}", .path.display())]
    OtherJob {
        /// The journal.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// A record of moved pictures that nothing shows to be this user's.
    #[error(
        "{}: {reason}. It would move {} files; nothing was moved",
        .path.display(), .moves.len()
    )]
    UnconfirmedRecord {
        /// The file.
        path: PathBuf,
        /// Why it is not believed.
        reason: String,
        /// Where each file lies, and where it would be moved to.
        moves: Vec<(PathBuf, PathBuf)>,
    },
    /// Something that cannot be asked for.
    #[error("{0}")]
    Impossible(String),
    /// Something that failed, such as reading a damaged file.
    #[error("{0}")]
    Failed(String),
    /// The system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<KmeansError> for SearchError {
    fn from(error: KmeansError) -> Self {
        match error {
            KmeansError::Count { .. } => SearchError::Impossible(error.to_string()),
            KmeansError::Engine(error) => SearchError::Engine(error),
        }
    }
}

impl From<FileError> for SearchError {
    fn from(error: FileError) -> Self {
        let FileError { path, problem } = error;
        let reason = match problem {
            FileProblem::Io(source) => return SearchError::Io { path, source },
            FileProblem::Damaged(place) => place,
            FileProblem::NotContainer(reason) => {
                format!("the file ends early, was damaged, or is no safetensors file ({reason})")
            }
            other => other.to_string(),
        };
        SearchError::damaged_index(&path)(reason)
    }
}

impl SearchError {
    /// A file that cannot be used so: a clause.
    pub(crate) fn refused(path: &Path, why: impl Display) -> SearchError {
        SearchError::Impossible(format!("{}: {why}", path.display()))
    }

    /// A file that something went wrong with: a clause.
    pub(crate) fn failed(path: &Path, why: impl Display) -> SearchError {
        SearchError::Failed(format!("{}: {why}", path.display()))
    }

    /// The bytes are no index, or not a whole one.
    pub(crate) fn damaged_index(path: &Path) -> impl Fn(String) -> SearchError {
        move |reason| {
            let way_out = "Make it again with `anchorhood index`";
            SearchError::failed(path, format!("not a whole index: {reason}. {way_out}"))
        }
    }

    /// The bytes are no model alone, or not a whole one.
    pub(crate) fn damaged_model(path: &Path) -> impl Fn(String) -> SearchError {
        move |reason| SearchError::failed(path, format!("not a whole model: {reason}"))
    }

    /// One picture that was asked for cannot be read.
    pub(crate) fn bad_picture(path: &Path, why: impl Display) -> SearchError {
        SearchError::failed(path, format!("cannot be used as a picture: {why}"))
    }

    /// A failure of the system, at a file.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> SearchError {
        let path = path.to_path_buf();
        move |source| SearchError::Io { path, source }
    }

    /// Whether the user asked for something that cannot be, rather than something having failed.
    pub fn is_usage(&self) -> bool {
        match self {
            SearchError::Data(e) => e.is_usage(),
            SearchError::OtherJob { .. }
            | SearchError::UnconfirmedRecord { .. }
            | SearchError::Impossible(_)
            | SearchError::Engine(anchorhood_engine::Error::UnknownLayer { .. }) => true,
            _ => false,
        }
    }
}
