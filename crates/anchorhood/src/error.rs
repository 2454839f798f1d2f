//! What goes wrong: one error for all of the library.

use std::error::Error as StdError;
use std::fmt;

use anchorhood_data::DataError;
use anchorhood_export::ExportError;
use anchorhood_index::SearchError;
use anchorhood_report::ReportError;
use anchorhood_reproduce::ReproduceError;
use anchorhood_serve::ServeError;
use anchorhood_train::{CheckpointError, ConfigError, TrainError};

use crate::advice::advice;

/// Something that cannot be asked for, or that failed: a sentence that names the thing and the
/// reason, and [`advice`](Error::advice) where there is a way out.
pub struct Error {
    kind: ErrorKind,
    inner: Box<dyn StdError + Send + Sync>,
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller's: what was asked for cannot be. The same again fails again.
    Usage,
    /// The machine's or a file's: something failed.
    Failed,
    /// Nobody's: it was asked to stop, and what was done is kept.
    Stopped,
}

impl Error {
    /// Something that cannot be asked for.
    pub fn usage(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Usage, inner: Box::new(Sentence(message.into())) }
    }

    /// Something that failed.
    pub fn failed(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Failed, inner: Box::new(Sentence(message.into())) }
    }

    /// Something that was asked to stop, and can go on.
    pub fn stopped(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Stopped, inner: Box::new(Sentence(message.into())) }
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The way out, where there is one: a clause that follows the sentence. It names settings by
    /// the flags of the command line.
    pub fn advice(&self) -> Option<String> {
        advice(&*self.inner)
    }

    /// The sentence with the way out.
    pub fn with_advice(&self) -> String {
        match self.advice() {
            Some(advice) => format!("{self}; {advice}"),
            None => self.to_string(),
        }
    }

    /// The error of the part of the library that noticed it.
    pub fn inner(&self) -> &(dyn StdError + 'static) {
        &*self.inner
    }

    /// The same, said of something.
    pub(crate) fn of(self, subject: &str) -> Error {
        let message = format!("{subject}: {}", self.with_advice());
        Error { kind: self.kind, inner: Box::new(Sentence(message)) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.with_advice())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source()
    }
}

/// An error that is a sentence and nothing more.
#[derive(Debug)]
struct Sentence(String);

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Sentence {}

/// The errors of the parts, each with whether it is of something that cannot be asked for.
macro_rules! errors {
    ($($error:ty: $is_usage:expr;)*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                let is_usage: fn(&$error) -> bool = $is_usage;
                let kind = if is_usage(&error) { ErrorKind::Usage } else { ErrorKind::Failed };
                Error { kind, inner: Box::new(error) }
            }
        }
    )*};
}

errors! {
    anchorhood_engine::Error: |_| false;
    CheckpointError: |_| false;
    ConfigError: |_| true;
    DataError: DataError::is_usage;
    ExportError: |error| match error {
        ExportError::Search(error) => error.is_usage(),
        error => error.is_usage(),
    };
    ReportError: |_| false;
    SearchError: SearchError::is_usage;
    ServeError: |error| match error {
        ServeError::Search(error) => error.is_usage(),
        ServeError::Report(_) | ServeError::Engine(_) => false,
        ServeError::Failed(_) | ServeError::System(_) => false,
        _ => true,
    };
    TrainError: TrainError::is_usage;
}

impl From<ReproduceError> for Error {
    fn from(error: ReproduceError) -> Self {
        let kind = match &error {
            ReproduceError::Stopped => ErrorKind::Stopped,
            error if error.is_usage() => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        };
        Error { kind, inner: Box::new(error) }
    }
}

/// Something that cannot be asked for, as `format!` says it.
macro_rules! usage {
    ($($text:tt)*) => {
        crate::Error::usage(format!($($text)*))
    };
}

pub(crate) use usage;
