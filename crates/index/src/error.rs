//! Why pictures cannot be searched. Each message names the thing, the reason and the way out.

use std::path::{Path, PathBuf};

use crate::curate::CurateError;
use crate::onnx::OnnxError;
use anchorhood_data::DataError;
use anchorhood_engine::vectors::KmeansError;
use anchorhood_models::WeightsError;
use anchorhood_storage::{FileError, FileProblem};
use anchorhood_train::CheckpointError;

/// An error of searching.
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
    /// Pictures of a size that a network has no layers for.
    #[error(
        "{}: learnt with pictures of {learnt} pixels a side, and would need other first layers for {size}; choose a size nearer to {learnt}", .path.display()
    )]
    OtherSize {
        /// The model.
        path: PathBuf,
        /// What was asked for.
        size: usize,
        /// What it learnt with.
        learnt: usize,
    },
    /// A model that cannot be whitened, or not by these pictures.
    #[error("{}: cannot be whitened: {reason}", .path.display())]
    NotWhitened {
        /// The model.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// Another program's weights that no network here has.
    #[error("{}: {source}", .path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: WeightsError,
    },
    /// An ONNX model that cannot be run.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// More was asked of an ONNX model than vectors.
    #[error(
        "{}: an ONNX model makes vectors of pictures, and its layers and weights are out of reach here; give a run, a \
         checkpoint, or the weights of a ResNet",
        .path.display()
    )]
    OnlyVectors {
        /// The model.
        path: PathBuf,
    },
    /// A file of something else.
    #[error(
        "{}: is no model: neither a checkpoint or a model file of this program, nor weights of a ResNet (.safetensors, .pth), nor \
         an ONNX file (.onnx)",
        .path.display()
    )]
    NoModel {
        /// The file.
        path: PathBuf,
    },
    /// Exported weights that do not say what they are of.
    #[error(
        "{}: exported by an earlier version, which did not say all that is needed to load it here; \
         export it again from its run",
        .path.display()
    )]
    OldExport {
        /// The file.
        path: PathBuf,
    },
    /// The bytes are no model alone, or not a whole one.
    #[error("{}: not a whole model: {reason}", .path.display())]
    DamagedModel {
        /// The file.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// An index that another model made.
    #[error(
        "{}: this index was made with another model (its fingerprint is {index}, that of {} is {}); give the model it was \
         made with, or make the index again with `anchorhood index`",
        .path.display(), .model_path.display(), .model
    )]
    OtherModel {
        /// The index.
        path: PathBuf,
        /// The fingerprint in it.
        index: String,
        /// The model given.
        model_path: PathBuf,
        /// Its fingerprint.
        model: String,
    },
    /// An index whose vectors are of images that were decoded and resized in another way.
    #[error(
        "{}: this index was made by another version of the program, which decoded and resized images in another way \
         (preprocessing {version}, here {program}); bring it up to date with `anchorhood index`, which makes its vectors again",
        .path.display()
    )]
    Outdated {
        /// The index.
        path: PathBuf,
        /// The version of the preprocessing that it was made by.
        version: u32,
        /// That of this program.
        program: u32,
    },
    /// A folder of none of an index's.
    #[error(
        "{given}: the index has folders called {there}; say which of them lies there now, as LABEL=FOLDER"
    )]
    OtherFolders {
        /// What was given.
        given: String,
        /// The labels there are.
        there: String,
    },
    /// The bytes are no index, or not a whole one.
    #[error("{}: not a whole index: {reason}. Make it again with `anchorhood index`", .path.display())]
    DamagedIndex {
        /// The file.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// An interrupted job with other settings lies where this one would keep its own.
    #[error("{}: an interrupted job is kept here, but {what}", .path.display())]
    OtherJob {
        /// The journal.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// Not one picture could be read.
    #[error("{}: none of its {count} pictures can be read; the first is {first} ({why})", .folder.display())]
    NothingReadable {
        /// The folder.
        folder: PathBuf,
        /// How many files there are.
        count: usize,
        /// The first.
        first: String,
        /// Why it cannot be read.
        why: String,
    },
    /// One picture that was asked for cannot be read.
    #[error("{}: cannot be used as a picture: {why}", .path.display())]
    BadPicture {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file of labels that cannot be used.
    #[error("{}: {reason}", .path.display())]
    BadLabels {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A record of moved pictures that cannot be used.
    #[error("{}: {reason}", .path.display())]
    BadUndo {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
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
    /// A file of decisions that cannot be used.
    #[error("{}: {reason}", .path.display())]
    BadDecisions {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no place for an index that nobody named.
    #[error(
        "{}: the index of these pictures would be kept here: {source}; name another place by ANCHORHOOD_CACHE",
        .path.display()
    )]
    NoCache {
        /// The folder that cannot be made.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something that cannot be asked for.
    #[error("{0}")]
    Impossible(String),
    /// The system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// So that a function may open an index and ask what its vectors say.
impl From<CurateError> for SearchError {
    fn from(error: CurateError) -> Self {
        match error {
            CurateError::Engine(error) => SearchError::Engine(error),
            CurateError::Impossible(reason) => SearchError::Impossible(reason),
        }
    }
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
        SearchError::DamagedIndex { path, reason }
    }
}

impl SearchError {
    pub(crate) fn damaged_index(path: &Path) -> impl Fn(String) -> SearchError {
        let path = path.to_path_buf();
        move |reason| SearchError::DamagedIndex { path: path.clone(), reason }
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
            SearchError::OtherModel { .. }
            | SearchError::Outdated { .. }
            | SearchError::OnlyVectors { .. }
            | SearchError::NoModel { .. }
            | SearchError::OldExport { .. }
            | SearchError::OtherJob { .. }
            | SearchError::OtherFolders { .. }
            | SearchError::BadLabels { .. }
            | SearchError::BadUndo { .. }
            | SearchError::BadDecisions { .. }
            | SearchError::UnconfirmedRecord { .. }
            | SearchError::Impossible(_)
            | SearchError::Engine(anchorhood_engine::Error::UnknownLayer { .. }) => true,
            _ => false,
        }
    }
}
