//! Why a container cannot be written or read.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a container.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Some of its bytes are not those that were written.
    #[error("{}: it is damaged: {place}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, and how that shows.
        place: String,
    },
    /// It is something else.
    #[error(
        "{}: it is no safetensors file, or only the beginning of one: {reason}",
        .path.display()
    )]
    NotContainer {
        /// The file.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// It was written by another version of this program.
    #[error("{}: it has format version {found}, and this program reads version 2", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// It is of another program, lacks a tensor, or has another than was wanted.
    #[error("{}: {reason}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is missing or other.
        reason: String,
    },
}

impl FileError {
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> FileError {
        let path = path.to_path_buf();
        move |source| FileError::Io { path: path.clone(), source }
    }

    pub(crate) fn damaged(path: &Path, place: impl Into<String>) -> FileError {
        FileError::Damaged { path: path.into(), place: place.into() }
    }
}
