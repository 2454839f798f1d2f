//! Why nothing can be said of pictures. Each message names the thing, the reason and the way out.

use anchorhood_engine::vectors::KmeansError;

/// An error of curating.
#[derive(Debug, thiserror::Error)]
pub enum CurateError {
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
    /// Something that cannot be asked for.
    #[error("{0}")]
    Impossible(String),
}

impl From<KmeansError> for CurateError {
    fn from(error: KmeansError) -> Self {
        match error {
            KmeansError::Count { .. } => CurateError::Impossible(error.to_string()),
            KmeansError::Engine(error) => CurateError::Engine(error),
        }
    }
}

impl CurateError {
    /// Whether the user asked for something that cannot be, rather than something having failed.
    pub fn is_usage(&self) -> bool {
        matches!(self, CurateError::Impossible(_))
    }
}
