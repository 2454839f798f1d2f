//! Pictures unlike all others, as `anchorhood outliers` ranks them.
//!
//! All are compared with all, up to a number of products that takes seconds; of more pictures some
//! are taken, evenly.

use anchorhood_engine::Device;
use anchorhood_index::PictureIndex;
use anchorhood_index::curate::outlier_scores;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::{Answer, Shared, in_turn};
use crate::asked::{Asked, Portion};
use crate::error::{Refusal, Refused};
use crate::filter::Filter;
use crate::once::once;
use crate::sample::{evenly, most_compared, rows_of};
use crate::site::{Contents, ImageInfo, threads};

/// Nearest of each picture that tell how unlike the others it is; the command's own number, too.
const K: usize = 10;

/// Pictures with their scores, the oddest first.
#[derive(Debug)]
pub(crate) struct Outliers(Vec<(usize, f32)>);

impl Outliers {
    fn of(index: &PictureIndex) -> Result<Outliers, Refusal> {
        let dim = index.parts().dim;
        let vectors = index.vectors().map_err(Refusal::failed)?;
        let chosen = evenly(index.len(), most_compared(dim));
        let scores = match chosen.len() {
            // One alone is like itself.
            0 | 1 => vec![0.0; chosen.len()],
            _ => {
                let rows = rows_of(vectors, dim, &chosen);
                let scores = outlier_scores(&Device::cpu(threads()), &rows, dim, K, &|_| {});
                scores.map_err(Refusal::failed)?
            }
        };
        let mut ranked: Vec<(usize, f32)> = chosen.into_iter().zip(scores).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(Outliers(ranked))
    }
}

#[derive(Serialize, ToSchema)]
pub(crate) struct OutlierList {
    pictures: Vec<Outlier>,
    /// How many there are in all.
    of: usize,
    /// Pictures that were compared: all, or some evenly taken.
    compared: usize,
}

#[derive(Serialize, ToSchema)]
struct Outlier {
    #[serde(flatten)]
    image: ImageInfo,
    /// 1 less the mean similarity to the ten nearest.
    score: f64,
}

/// Pictures with the least like them first. Computed when first asked for, once; the answer waits
/// for it.
#[utoipa::path(get, path = "/api/outliers", params(Portion, Filter), responses(
    (status = 200, description = "Pictures with their scores.", body = OutlierList),
    (status = 400, response = Refused),
))]
pub(crate) async fn outliers(
    State(site): Shared,
    Asked(part): Asked<Portion>,
    Asked(filter): Asked<Filter>,
) -> Answer<OutlierList> {
    let now = site.now();
    let make = |now: &Contents| Outliers::of(&now.shelf.index);
    once(&site, &now, |now| &now.outliers, make).await?;
    in_turn(&site.searching, move || {
        let ranked = now.outliers.get().map_or(&[][..], |o| &o.0);
        let passing = filter.passing(&now.shelf.index, ranked);
        let (of, compared) = (passing.len(), ranked.len());
        let told =
            |(i, score): &(usize, f32)| Outlier { image: now.describe(*i), score: (*score).into() };
        Json(OutlierList { pictures: part.of(passing).map(told).collect(), of, compared })
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::fixtures;

    /// Vectors at these angles.
    fn index(angles: &[f32]) -> PictureIndex {
        let vectors = angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect();
        fixtures::index(Path::new(""), angles, &[], vectors)
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
