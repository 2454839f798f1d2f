//! Why a container cannot be written or read.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a container.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: FileProblem,
}

/// What is wrong with a file: a clause.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The system refused.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// Some of its bytes are not those that were written: where, and how that shows.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It is something else: what was met.
    #[error("it is no safetensors file, or only the beginning of one: {0}")]
    NotContainer(String),
    /// It was written by another version of this program.
    #[error("it has format version {0}, and this program reads version 2")]
    Version(String),
    /// It is of another program, lacks a tensor, or has another than was wanted.
    #[error("{0}")]
    Content(String),
}

impl FileProblem {
    /// Of the file at a path.
    pub fn of(self, path: &Path) -> FileError {
        FileError { path: path.into(), problem: self }
    }
}

impl FileError {
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> FileError {
        let path = path.to_path_buf();
        move |source| FileProblem::Io(source).of(&path)
    }

    pub(crate) fn damaged(path: &Path, place: impl Into<String>) -> FileError {
        FileProblem::Damaged(place.into()).of(path)
    }
}
