//! Why a page cannot be served, and what a request is told that cannot be answered.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::{ToResponse, ToSchema};

/// Why the server cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody else listens there.
    #[error("port {port} on {host} is taken by another program")]
    Taken {
        /// The address.
        host: String,
        /// The port.
        port: u16,
    },
    /// An address that others can reach, without a token.
    #[error("{host}: other machines could see all pictures without a token")]
    Open {
        /// The address.
        host: String,
    },
    /// A token that can be guessed, or not be typed into an address.
    #[error(
        "a token has at least 16 letters, digits, dashes or underscores, and nothing else: a shorter one could be guessed"
    )]
    BadToken,
    /// An index from somewhere names a folder that holds nearly everything, as `/` does.
    #[error(
        "{index}: its pictures would be all those in {folder}, which holds more than pictures to be shown"
    )]
    WideFolder {
        /// The index.
        index: String,
        /// The folder it names.
        folder: String,
    },
    /// A run's memory is of other pictures than its data set has.
    #[error("{name}: the run remembers {remembered} pictures, and its data set has {pictures} now")]
    OtherPictures {
        /// The run.
        name: String,
        /// Pictures in its memory.
        remembered: usize,
        /// Pictures of its data set.
        pictures: usize,
    },
    /// The pictures and their vectors do not belong together.
    #[error("{0}")]
    Catalog(String),
    /// A model or an index cannot be read.
    #[error(transparent)]
    Search(#[from] anchorhood_index::SearchError),
    /// What a run left cannot be read.
    #[error(transparent)]
    Report(#[from] anchorhood_report::ReportError),
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
    /// Something else that failed: a sentence.
    #[error("{0}")]
    Failed(String),
    /// The system refused something else.
    #[error("the server stopped: {0}")]
    System(#[from] std::io::Error),
}

/// Seconds after which what was refused for a while may be asked again.
const AGAIN: &str = "5";

// What is told of a request that is not answered.
#[derive(Serialize, ToSchema, ToResponse)]
#[response(description = "Why not, as a sentence.")]
pub(crate) struct Refused {
    error: String,
}

/// A request that cannot be answered: a code and a sentence.
#[derive(Debug)]
pub(crate) struct Refusal(pub StatusCode, pub String);

impl ServeError {
    /// Its threads are gone.
    pub(crate) fn ended() -> ServeError {
        ServeError::Failed("the server ended unexpectedly".into())
    }
}

impl Refusal {
    pub fn bad(sentence: impl Into<String>) -> Self {
        Refusal(StatusCode::BAD_REQUEST, sentence.into())
    }

    pub fn missing(sentence: impl Into<String>) -> Self {
        Refusal(StatusCode::NOT_FOUND, sentence.into())
    }

    pub fn failed(sentence: impl ToString) -> Self {
        Refusal(StatusCode::INTERNAL_SERVER_ERROR, sentence.to_string())
    }

    pub fn busy(sentence: impl Into<String>) -> Self {
        Refusal(StatusCode::SERVICE_UNAVAILABLE, sentence.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.0, Json(Refused { error: self.1 })).into_response();
        if self.0 == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = HeaderValue::from_static(AGAIN);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}
