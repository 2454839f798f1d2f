//! Why an experiment cannot be run, or not to its end.

use std::path::{Path, PathBuf};

use anchorhood_data::DataError;
use anchorhood_report::ReportError;
use anchorhood_train::{CheckpointError, TrainError};

use crate::Allowance;

/// An error of an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// No experiment is called so.
    #[error("there is no experiment called `{name}`; there is {known}, and `all`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// An experiment has no such row.
    #[error("{experiment} has no row called `{row}`; it has {known}")]
    UnknownRow {
        /// Which experiment.
        experiment: &'static str,
        /// What was asked for.
        row: String,
        /// What there is.
        known: String,
    },
    /// A file or folder that cannot be written or read.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of an earlier call that is not what this program writes.
    #[error(
        "{}: not a record of a finished run: {reason}; remove it to judge again",
        .path.display()
    )]
    Record {
        /// Which.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// A comparison that was begun with another allowance.
    #[error("{}: the comparison here was begun with {begun} for each method", .folder.display())]
    OtherAllowance {
        /// Its folder.
        folder: PathBuf,
        /// What its methods were given.
        begun: Allowance,
    },
    /// A data set that is not on disk; rows that need it are left out.
    #[error("{why}")]
    Missing {
        /// Which, and how to get it.
        why: String,
    },
    /// It was asked to stop, and what was trained is saved.
    #[error("stopped and saved; the same command goes on")]
    Stopped,
    /// A run failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The pictures cannot be had.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
    /// A run's events cannot be read, or a plot not drawn.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl From<CheckpointError> for ReproduceError {
    fn from(error: CheckpointError) -> Self {
        ReproduceError::Train(error.into())
    }
}

impl ReproduceError {
    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Self + '_ {
        move |source| ReproduceError::Io { path: path.into(), source }
    }

    /// Whether the user asked for something that cannot be, rather than something having failed.
    pub fn is_usage(&self) -> bool {
        match self {
            ReproduceError::Unknown { .. }
            | ReproduceError::UnknownRow { .. }
            | ReproduceError::OtherAllowance { .. } => true,
            ReproduceError::Train(e) => e.is_usage(),
            ReproduceError::Data(e) => e.is_usage(),
            _ => false,
        }
    }
}
