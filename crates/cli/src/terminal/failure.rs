//! What goes wrong, as the shell sees it: a sentence and an exit code.

use anchorhood::curate::CurateError;
use anchorhood::data::DataError;
use anchorhood::export::ExportError;
use anchorhood::report::ReportError;
use anchorhood::search::SearchError;
use anchorhood::serve::ServeError;
use anchorhood::train::{CheckpointError, ConfigError, TrainError};
use anchorhood::{Error, ErrorKind};

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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Usage => 2,
            _ => 1,
        };
        Failure { message: Some(error.with_advice()), code }
    }
}

/// The errors of the library's parts.
macro_rules! failures {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Error::from(error).into()
            }
        }
    )*};
}

failures! {
    anchorhood::engine::Error,
    CheckpointError,
    ConfigError,
    CurateError,
    DataError,
    ExportError,
    ReportError,
    SearchError,
    ServeError,
    TrainError,
}
