//! What goes wrong, as the shell sees it: a sentence and an exit code.

use std::error::Error;

use anchorhood::data::DataError;
use anchorhood::report::ReportError;
use anchorhood::train::{CheckpointError, ConfigError, TrainError};

use crate::terminal::advice::sentence;

/// An end that is not success.
#[derive(Debug)]
pub struct Failure {
    /// What to say, unless it has been said.
    pub message: Option<String>,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// Something that cannot be asked for.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { message: Some(message.into()), code: 2 }
    }

    /// Something that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure { message: Some(message.into()), code: 1 }
    }

    /// What a library says: something that cannot be asked for, or that failed.
    pub fn of(usage: bool, error: &(dyn Error + 'static)) -> Self {
        Failure { message: Some(sentence(error)), code: if usage { 2 } else { 1 } }
    }

    /// A run that was interrupted and saved; all has been said.
    pub fn interrupted() -> Self {
        Failure { message: None, code: 130 }
    }

    /// Nobody reads stdout any more; there is nobody to tell.
    pub fn closed_pipe() -> Self {
        Failure {
            message: None,
            code: 141, // what a shell reports for SIGPIPE
        }
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        Failure::of(error.is_usage(), &error)
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Failure::of(error.is_usage(), &error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        TrainError::from(error).into()
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        TrainError::from(error).into()
    }
}

impl From<anchorhood::engine::Error> for Failure {
    fn from(error: anchorhood::engine::Error) -> Self {
        Failure::failed(sentence(&error))
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Checkpoint(error) => (*error).into(),
            error => Failure::failed(sentence(&error)),
        }
    }
}
