//! Why something cannot be exported.

/// An error of exporting.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The system refused to write.
    #[error("{0}")]
    Write(#[from] std::io::Error),
    /// A layer that ONNX says otherwise.
    #[error("{layer}: {why}, which cannot be exported")]
    Layer {
        /// The layer's name.
        layer: String,
        /// What is special about it.
        why: String,
    },
    /// A network that another program does not have.
    #[error("{0}")]
    NotThere(String),
    /// A vector of another length than was announced.
    #[error("a vector of {got} values in a table of {expected}")]
    Length {
        /// The table's.
        expected: usize,
        /// The vector's.
        got: usize,
    },
}
