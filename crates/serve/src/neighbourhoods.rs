//! What each round of a run discovered, from the surest neighbourhoods to the hardest.

use std::sync::Arc;

use anchorhood_discover::Neighbourhoods;
use anchorhood_report::RoundNeighbourhoods;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::error::Refusal;
use crate::site::Site;

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
#[derive(Debug, Deserialize)]
pub(crate) struct Which {
    round: usize,
    /// Where to begin: 0 is the surest, 1 the hardest.
    #[serde(default)]
    at: f64,
    #[serde(default = "some")]
    count: usize,
}

fn some() -> usize {
    24
}

/// `GET /api/neighbourhoods`.
pub(crate) async fn neighbourhoods(
    State(site): State<Arc<Site>>,
    Asked(which): Asked<Which>,
) -> Result<Json<Value>, Refusal> {
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
    let hoods: Vec<Value> = round.order[from..from + count]
        .iter()
        .map(|i| {
            let i = *i as usize;
            let neighbours = found.neighbours_of(i).iter().take(6);
            json!({
                "picture": now.describe(i),
                "entropy": finite(found.entropy()[i]),
                "anchor": found.anchors()[i],
                "neighbours": neighbours.map(|j| now.describe(*j as usize)).collect::<Vec<_>>(),
            })
        })
        .collect();
    Ok(Json(json!({
        "round": round.round,
        "from": from,
        "pictures": n,
        "anchors": found.anchor_count(),
        "neighbourhoods": hoods,
    })))
}

fn finite(value: f32) -> Option<f32> {
    value.is_finite().then_some(value)
}
