//! What goes wrong, as the shell sees it: a sentence and an exit code.

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
    /// The exit code of what was interrupted and saved.
    pub const STOPPED: u8 = 130;

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
        Failure { message: None, code: Failure::STOPPED }
    }

    /// Nobody reads stdout any more; there is nobody to tell.
    pub fn closed_pipe() -> Self {
        Failure {
            message: None,
            code: 141, // what a shell reports for SIGPIPE
        }
    }
}

/// Of the library's error, and of its parts' errors.
impl<E> From<E> for Failure
where
    Error: From<E>,
{
    fn from(error: E) -> Self {
        let error = Error::from(error);
        let code = match error.kind() {
            ErrorKind::Usage => 2,
            ErrorKind::Stopped => Failure::STOPPED,
            _ => 1,
        };
        Failure { message: Some(error.with_advice()), code }
    }
}
