//! Pictures unlike all others, as `anchorhood outliers` ranks them.
//!
//! All are compared with all, up to a number of products that takes seconds; of more pictures some
//! are taken, evenly.

use anchorhood_curate::outlier_scores;
use anchorhood_engine::Device;
use anchorhood_search::PictureIndex;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::api::{Answer, MOST_LISTED, Shared, blocking};
use crate::asked::{Asked, Portion};
use crate::error::Refusal;
use crate::filter::Filter;
use crate::once::once;
use crate::sample::{evenly, most_compared, rows_of};
use crate::site::{Contents, threads};

/// Nearest of each picture that tell how unlike the others it is; the command's own number, too.
const K: usize = 10;

/// Pictures with their scores, the oddest first.
#[derive(Debug)]
pub(crate) struct Outliers(Vec<(usize, f32)>);

impl Outliers {
    fn of(index: &PictureIndex) -> Result<Outliers, Refusal> {
        let failed = |e: &dyn std::fmt::Display| Refusal::failed(e.to_string());
        let dim = index.parts().dim;
        let vectors = index.vectors().map_err(|e| failed(&e))?;
        let chosen = evenly(index.len(), most_compared(dim));
        let scores = match chosen.len() {
            // One alone is like itself.
            0 | 1 => vec![0.0; chosen.len()],
            _ => {
                let rows = rows_of(vectors, dim, &chosen);
                let scores = outlier_scores(&Device::cpu(threads()), &rows, dim, K, &|_| {});
                scores.map_err(|e| failed(&e))?
            }
        };
        let mut ranked: Vec<(usize, f32)> = chosen.into_iter().zip(scores).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(Outliers(ranked))
    }
}

/// `GET /api/outliers`: pictures with the least like them first.
pub(crate) async fn outliers(
    State(site): Shared,
    Asked(part): Asked<Portion>,
    Asked(filter): Asked<Filter>,
) -> Answer {
    let now = site.now();
    let make = |now: &Contents| Outliers::of(&now.shelf.index);
    once(&site, &now, |now| &now.outliers, make).await?;
    let turn = site.turn_to_search().await?;
    blocking(turn, move || {
        let ranked = now.outliers.get().map_or(&[][..], |o| &o.0);
        let index = &now.shelf.index;
        let passing = ranked.iter().filter(|(i, _)| filter.passes(index, *i));
        let passing: Vec<_> = passing.collect();
        let shown = passing.iter().skip(part.from);
        let shown: Vec<Value> = shown
            .take(part.count.min(MOST_LISTED))
            .map(|(i, score)| now.describe_with(*i, json!({ "score": score })))
            .collect();
        let (of, compared) = (passing.len(), ranked.len());
        Json(json!({ "pictures": shown, "of": of, "compared": compared }))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anchorhood_search::IndexParts;

    use super::*;

    /// Vectors at these angles.
    fn index(angles: &[f32]) -> PictureIndex {
        let n = angles.len();
        let vectors: Vec<f32> = angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect();
        let parts = IndexParts {
            names: (0..n).map(|i| format!("{i}.png")).collect(),
            classes: vec![None; n],
            dim: 2,
            vectors: vectors.into(),
            ..IndexParts::default()
        };
        PictureIndex::from_parts(Path::new("x.index"), parts).unwrap()
    }

    #[test]
    fn the_lonely_come_first_with_the_scores_of_the_command() {
        let index = index(&[0.0, 0.01, 1.0, 1.05, 2.0, 2.02, 2.025, 4.0]);
        let Outliers(ranked) = Outliers::of(&index).unwrap();
        assert_eq!((ranked[0].0, ranked.len()), (7, 8));
        let (device, vectors) = (Device::cpu(1), index.vectors().unwrap());
        let told = outlier_scores(&device, vectors, 2, K, &|_| {}).unwrap();
        assert!(ranked.iter().all(|(i, score)| told[*i] == *score));
    }

    #[test]
    fn one_picture_is_no_outlier() {
        assert_eq!(Outliers::of(&index(&[0.5])).unwrap().0, [(0, 0.0)]);
    }
}
