//! What goes wrong, as the shell sees it: a sentence and an exit code.

use std::error::Error;

use anchorhood::curate::CurateError;
use anchorhood::data::DataError;
use anchorhood::export::ExportError;
use anchorhood::report::ReportError;
use anchorhood::search::SearchError;
use anchorhood::serve::ServeError;
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

/// The errors of the libraries, each with whether it is of something that cannot be asked for.
macro_rules! failures {
    ($($error:ty: $is_usage:expr;)*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let is_usage: fn(&$error) -> bool = $is_usage;
                Failure::of(is_usage(&error), &error)
            }
        }
    )*};
}

failures! {
    anchorhood::engine::Error: |_| false;
    CheckpointError: |_| false;
    ConfigError: |_| true;
    CurateError: CurateError::is_usage;
    DataError: DataError::is_usage;
    ExportError: |error| match error {
        ExportError::Search(error) => error.is_usage(),
        error => error.is_usage(),
    };
    ReportError: |_| false;
    SearchError: SearchError::is_usage;
    ServeError: |error| match error {
        ServeError::Search(error) => error.is_usage(),
        ServeError::Report(_) | ServeError::Engine(_) | ServeError::System(_) => false,
        ServeError::Listen { .. } | ServeError::Ended => false,
        _ => true,
    };
    TrainError: TrainError::is_usage;
}
