//! Why a file of another program cannot be run.

use std::path::PathBuf;

use crate::onnx::Source;

/// An error of running ONNX files.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OnnxError {
    /// The library is not on this machine.
    #[error(
        "ONNX files are run by ONNX Runtime, which was not found: {looked}. Install it (pip: \
         onnxruntime; apt: libonnxruntime-dev; brew: onnxruntime), or let ANCHORHOOD_ONNXRUNTIME \
         name its library"
    )]
    NoRuntime {
        /// Where it was looked for.
        looked: String,
    },
    /// The library that the user named cannot be used.
    #[error("ANCHORHOOD_ONNXRUNTIME names {}, which {why}", .place.display())]
    BadRuntime {
        /// What was named.
        place: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be read.
    #[error("{}: {why}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// Not an ONNX file, or not a whole one.
    #[error("{}: not a whole ONNX file: {why}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was met.
        why: String,
    },
    /// An ONNX file that does not make vectors of pictures.
    #[error("{}: this ONNX model does not make one vector of a picture: {why}", .path.display())]
    NoEncoder {
        /// The file.
        path: PathBuf,
        /// What it does.
        why: String,
    },
    /// Pictures are prepared for it in a way that is not followed here.
    #[error(
        "{}: images {why}, {says}; this program does not do so, and the vectors would be others \
         than the model's. Where another way will do, change that entry", .path.display()
    )]
    Preprocessing {
        /// The file.
        path: PathBuf,
        /// Who says so.
        says: Source,
        /// What is done.
        why: String,
    },
    /// The library refused the file, or failed to run it.
    #[error("{}: ONNX Runtime {version} cannot run it: {why}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The library's version.
        version: String,
        /// What it said.
        why: String,
    },
}
