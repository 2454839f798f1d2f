//! What each round of a run discovered, from the surest neighbourhoods to the hardest.

use anchorhood_report::RoundNeighbourhoods;
use anchorhood_train::discovery::Neighbourhoods;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::api::{Answer, Shared};
use crate::asked::{Asked, usual};
use crate::error::{Refusal, Refused};
use crate::site::ImageInfo;

/// A round with its pictures in order.
#[derive(Debug)]
pub(crate) struct Round {
    pub round: usize,
    pub found: Neighbourhoods,
    pub order: Vec<u32>,
}

impl Round {
    pub fn new(RoundNeighbourhoods { round, found }: RoundNeighbourhoods) -> Round {
        Round { order: found.by_entropy(), round, found }
    }
}

/// Which neighbourhoods.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Which, from 1.
    #[param(minimum = 1)]
    round: usize,
    /// Where to begin: 0 at the surest, 1 at the hardest.
    #[serde(default)]
    #[param(default = 0, minimum = 0, maximum = 1)]
    at: f64,
    /// How many.
    #[serde(default = "usual::<24>")]
    #[param(default = 24, maximum = 200)]
    count: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Discovered {
    round: usize,
    from: usize,
    pictures: usize,
    anchors: usize,
    neighbourhoods: Vec<Neighbourhood>,
}

#[derive(Serialize, ToSchema)]
struct Neighbourhood {
    picture: ImageInfo,
    #[schema(required)]
    entropy: Option<f64>,
    anchor: bool,
    neighbours: Vec<ImageInfo>,
}

/// What a round of a run discovered, by entropy.
#[utoipa::path(get, path = "/api/neighbourhoods", params(Which), responses(
    (status = 200, description = "Neighbourhoods.", body = Discovered),
    (status = 400, response = Refused),
    (status = 404, response = Refused),
))]
pub(crate) async fn neighbourhoods(
    State(site): Shared,
    Asked(which): Asked<Which>,
) -> Answer<Discovered> {
    let now = site.now();
    let round = now.rounds.iter().find(|r| r.round == which.round);
    let Some(round) = round else {
        let there: Vec<usize> = now.rounds.iter().map(|r| r.round).collect();
        return Err(Refusal::missing(format!(
            "there are no neighbourhoods of round {}; there are of {there:?}",
            which.round
        )));
    };
    let found = &round.found;
    let n = round.order.len();
    let count = which.count.clamp(1, 200).min(n);
    let at = if which.at.is_finite() { which.at.clamp(0.0, 1.0) } else { 0.0 };
    let from = (at * (n - count) as f64).round() as usize;
    let described = |i: &u32| {
        let i = *i as usize;
        let neighbours = found.neighbours_of(i).iter().take(6);
        Neighbourhood {
            picture: now.describe(i),
            entropy: Some(found.entropy()[i].into()).filter(|e: &f64| e.is_finite()),
            anchor: found.anchors()[i],
            neighbours: neighbours.map(|j| now.describe(*j as usize)).collect(),
        }
    };
    Ok(Json(Discovered {
        round: round.round,
        from,
        pictures: n,
        anchors: found.anchor_count(),
        neighbourhoods: round.order[from..from + count].iter().map(described).collect(),
    }))
}
