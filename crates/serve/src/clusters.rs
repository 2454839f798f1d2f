//! Pictures divided into clusters, each around its most typical ones.

use std::sync::Arc;

use anchorhood_engine::Device;
use anchorhood_index::PictureIndex;
use anchorhood_index::curate::{Cluster as Members, kmeans_clusters};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::openapi::{Object, ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};

use crate::api::{Answer, Shared, in_turn};
use crate::asked::{Asked, Portion, Written, usual};
use crate::error::{Refusal, Refused};
use crate::filter::Filter;
use crate::once::once;
use crate::sample::{evenly, rows_of};
use crate::site::{Contents, Neighbour, Site, threads};

/// Numbers of clusters that can be had; each division is made once and kept.
pub(crate) const DIVISIONS: [usize; 6] = [6, 12, 24, 48, 96, 192];
/// Numbers that are read in a round of k-means, at most: 200,000 pictures with vectors of 128. Of
/// more, some are taken evenly.
const MOST_VALUES: usize = 25_600_000;
/// Typical pictures of a cluster in the list of all.
const MOST_TYPICAL: usize = 24;
/// Clusters, where nothing is said of it.
const USUAL: usize = 12;

/// A division into clusters, the largest first, members by how typical they are.
#[derive(Debug)]
pub(crate) struct Division {
    clusters: Vec<Members>,
    /// Pictures that were divided.
    pictures: usize,
}

impl Division {
    fn of(index: &PictureIndex, k: usize) -> Result<Division, Refusal> {
        let dim = index.parts().dim;
        let vectors = index.vectors().map_err(Refusal::failed)?;
        let chosen = evenly(index.len(), MOST_VALUES / dim.max(1));
        let rows = rows_of(vectors, dim, &chosen);
        if chosen.is_empty() {
            return Err(Refusal::missing("there are no pictures to divide"));
        }
        let device = Device::cpu(threads());
        let found = kmeans_clusters(&device, &rows, dim, k.min(chosen.len()), 0);
        let mut clusters = found.map_err(Refusal::failed)?;
        clusters.iter_mut().flatten().for_each(|(row, _)| *row = chosen[*row]);
        Ok(Division { clusters, pictures: chosen.len() })
    }
}

/// Into how many.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HowMany {
    #[serde(default = "usual::<USUAL>")]
    #[param(schema_with = choices)]
    k: usize,
}

fn choices() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .description(Some("Into how many; the nearest of the choices is taken."))
        .enum_values(Some(DIVISIONS))
        .default(Some(USUAL.into()))
        .build()
}

impl HowMany {
    /// The place of the division with the number of clusters that is nearest to the one asked for.
    fn place(self) -> usize {
        let apart = |at: &usize| DIVISIONS[*at].abs_diff(self.k);
        (0..DIVISIONS.len()).min_by_key(apart).unwrap_or(0)
    }
}

async fn division<'a>(
    site: &Arc<Site>,
    now: &'a Arc<Contents>,
    place: usize,
) -> Result<&'a Division, Refusal> {
    let make = move |now: &Contents| Division::of(&now.shelf.index, DIVISIONS[place]);
    once(site, now, move |now| &now.divisions[place], make).await
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Clusters {
    k: usize,
    choices: [usize; DIVISIONS.len()],
    /// Pictures that were divided: all, or some evenly taken.
    divided: usize,
    clusters: Vec<Summary>,
}

#[derive(Serialize, ToSchema)]
struct Summary {
    cluster: usize,
    size: usize,
    /// To the centre, in the mean.
    similarity: f64,
    typical: Vec<Neighbour>,
}

/// Clusters (k-means), the largest first, by their most typical pictures. Computed when first asked
/// for, once; the answer waits for it.
#[utoipa::path(get, path = "/api/clusters", params(HowMany, Filter), responses(
    (status = 200, description = "Clusters with pictures that pass.", body = Clusters),
    (status = 400, response = Refused),
))]
pub(crate) async fn clusters(
    State(site): Shared,
    Asked(how_many): Asked<HowMany>,
    Asked(filter): Asked<Filter>,
) -> Answer<Clusters> {
    let (now, place) = (site.now(), how_many.place());
    division(&site, &now, place).await?;
    in_turn(&site.searching, move || {
        let found = now.divisions[place].get();
        let clusters = found.map_or(&[][..], |d| &d.clusters);
        let told = clusters.iter().enumerate();
        let told = told.filter_map(|(number, cluster)| summary(&now, &filter, number, cluster));
        Json(Clusters {
            k: DIVISIONS[place],
            choices: DIVISIONS,
            divided: found.map_or(0, |d| d.pictures),
            clusters: told.collect(),
        })
    })
    .await
}

/// A cluster in words; none where no picture of it passes.
fn summary(now: &Contents, filter: &Filter, number: usize, cluster: &Members) -> Option<Summary> {
    let passing = filter.passing(&now.shelf.index, cluster);
    let mean = passing.iter().map(|(_, s)| f64::from(*s)).sum::<f64>() / passing.len() as f64;
    let typical = passing.iter().take(MOST_TYPICAL);
    (!passing.is_empty()).then(|| Summary {
        cluster: number,
        size: passing.len(),
        similarity: mean,
        typical: typical.map(|(i, s)| now.describe_similar(*i, *s)).collect(),
    })
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Cluster {
    cluster: usize,
    k: usize,
    /// How many there are in all.
    of: usize,
    pictures: Vec<Neighbour>,
}

/// The pictures of a cluster, the most typical first.
#[utoipa::path(get, path = "/api/clusters/{cluster}",
    params(("cluster" = usize, Path, description = "Its number, from 0."), HowMany, Portion, Filter),
    responses(
        (status = 200, description = "Pictures near the centre.", body = Cluster),
        (status = 400, response = Refused),
        (status = 404, response = Refused),
    )
)]
pub(crate) async fn cluster(
    State(site): Shared,
    Written(number): Written,
    Asked(how_many): Asked<HowMany>,
    Asked(part): Asked<Portion>,
    Asked(filter): Asked<Filter>,
) -> Answer<Cluster> {
    let (now, place) = (site.now(), how_many.place());
    let clusters = division(&site, &now, place).await?.clusters.len();
    let number = number.parse().ok().filter(|n: &usize| *n < clusters);
    let number = number.ok_or_else(|| {
        Refusal::missing(format!(
            "there is no such cluster; they are numbered 0 to {}",
            clusters.saturating_sub(1)
        ))
    })?;
    in_turn(&site.searching, move || {
        let found = now.divisions[place].get();
        let cluster = found.map_or(&[][..], |d| &d.clusters[number][..]);
        let passing = filter.passing(&now.shelf.index, cluster);
        Json(Cluster {
            cluster: number,
            k: DIVISIONS[place],
            of: passing.len(),
            pictures: part.of(passing).map(|(i, s)| now.describe_similar(*i, *s)).collect(),
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::fixtures::index;

    #[test]
    fn heaps_are_clusters_the_largest_first() {
        let angles =
            (0..30).map(|i| f32::from(!(i as u8).is_multiple_of(3)) * 2.0 + i as f32 * 1e-3);
        let vectors = angles.flat_map(|a| [a.cos(), a.sin()]).collect();
        let heaps = index(Path::new(""), &[""; 30], &[], vectors);
        let division = Division::of(&heaps, 2).unwrap();
        let sizes: Vec<usize> = division.clusters.iter().map(Vec::len).collect();
        assert_eq!((sizes, division.pictures), (vec![20, 10], 30));
        assert!(division.clusters[1].iter().all(|(i, _)| i % 3 == 0));
        let typical = division.clusters[0].iter().map(|(_, s)| *s);
        assert!(typical.collect::<Vec<f32>>().is_sorted_by(|a, b| a >= b));
        // Never more clusters than pictures.
        let one = index(Path::new(""), &["0.png"], &[], vec![1.0]);
        assert_eq!(Division::of(&one, 192).unwrap().clusters.len(), 1);
    }

    #[test]
    fn the_nearest_number_of_clusters_is_taken() {
        let of = |k| DIVISIONS[HowMany { k }.place()];
        assert_eq!([0, 10, 25, 1000, usize::MAX].map(of), [6, 12, 24, 192, 192]);
    }
}
