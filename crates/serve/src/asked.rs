//! What a request says, or a sentence about why that cannot be understood: never a bare code.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

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
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Portion {
    /// The first.
    #[serde(default)]
    #[param(default = 0)]
    from: usize,
    /// How many.
    #[serde(default = "usual::<60>")]
    #[param(default = 60, maximum = 500)]
    count: usize,
}

/// Entries of a list in one answer, at most.
pub(crate) const MOST_LISTED: usize = 500;

/// What is taken where nothing is said.
pub(crate) fn usual<const N: usize>() -> usize {
    N
}

impl Portion {
    /// What is shown of a list.
    pub fn of<T>(self, all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        self.every(1, all)
    }

    /// The same of every so manyth.
    pub fn every<T>(
        self,
        step: usize,
        all: impl IntoIterator<Item = T>,
    ) -> impl Iterator<Item = T> {
        let rest = all.into_iter().skip(self.from);
        rest.step_by(step.max(1)).take(self.count.min(MOST_LISTED))
    }
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
