//! What a request says, or a sentence about why that cannot be understood: never a bare code.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::Refusal;

/// What stands after the question mark.
pub(crate) struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Asked(asked)),
            Err(why) => Err(Refusal::bad(format!(
                "this question cannot be understood: {}; /api/openapi.json says what can be asked",
                why.body_text()
            ))),
        }
    }
}

/// Which part of a list.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Portion {
    #[serde(default)]
    pub from: usize,
    #[serde(default = "some")]
    pub count: usize,
}

fn some() -> usize {
    60
}

/// The picture's number in the address, as it was written.
pub(crate) struct Written(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Written {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Written(id)),
            Err(_) => Err(Refusal::missing("pictures have numbers, and this is none")),
        }
    }
}
