//! Why something cannot be exported.

use std::path::{Path, PathBuf};

/// An error of exporting.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The system refused to write.
    #[error("{0}")]
    Write(#[from] std::io::Error),
    /// The system refused to write a file.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A place that is not to be written to.
    #[error("{}: {why}", .path.display())]
    Place {
        /// The file.
        path: PathBuf,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// A network that another program does not have.
    #[error("{0}")]
    NotThere(String),
    /// The vectors cannot be had.
    #[error(transparent)]
    Search(#[from] anchorhood_index::SearchError),
    /// A file of a folder's vectors cannot be written; they are kept where they were.
    #[error("{}: {source}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<ExportError>,
    },
    /// Something else that cannot be: a sentence.
    #[error("{0}")]
    Failed(String),
}

impl ExportError {
    /// Whether what was asked for cannot be.
    pub fn is_usage(&self) -> bool {
        matches!(self, ExportError::Place { .. } | ExportError::NotThere(_))
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ExportError {
        let path = path.to_path_buf();
        move |source| ExportError::Io { path, source }
    }

    pub(crate) fn in_file(path: &Path) -> impl FnOnce(ExportError) -> ExportError {
        let path = path.to_path_buf();
        move |source| ExportError::Table { path, source: Box::new(source) }
    }
}
