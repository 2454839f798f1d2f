//! Each picture's nearest, found once: which pictures are nearly the same, and which have nothing like them.
//!
//! All are compared with all, up to a number of products that takes seconds; of more pictures some are taken, evenly.

use std::borrow::Cow;
use std::sync::Arc;

use anchorhood_engine::{Device, Neighbours, Scan};
use anchorhood_search::PictureIndex;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Answer, MOST_LISTED, Shared, blocking};
use crate::asked::Asked;
use crate::error::Refusal;
use crate::filter::Filter;
use crate::once::once;
use crate::site::{Contents, Site, threads};

/// Nearest of each picture that are kept.
const K: usize = 10;
/// Products of numbers, at most: 62,500 pictures with vectors of 128.
const MOST_PRODUCTS: usize = 500_000_000_000;

/// The nearest of some pictures among them.
#[derive(Debug)]
pub(crate) struct Nearby {
    /// Which pictures, ascending.
    chosen: Vec<usize>,
    /// Numbers among the chosen.
    found: Neighbours,
    /// Pictures by their mean similarity to their nearest, the lonely first.
    lonely: Vec<(usize, f32)>,
}

impl Nearby {
    pub fn of(index: &PictureIndex) -> Result<Nearby, Refusal> {
        let failed = |e: &dyn std::fmt::Display| Refusal::failed(e.to_string());
        let dim = index.parts().dim;
        let vectors = index.vectors().map_err(|e| failed(&e))?;
        let chosen = evenly(index.len(), most_compared(dim));
        let device = Device::cpu(threads());
        let rows = device.upload(&rows_of(vectors, dim, &chosen));
        let rows = rows.map_err(|e| failed(&e))?;
        let scan = Scan {
            dim,
            entropy_temperature: None,
            k: K.min(chosen.len().saturating_sub(1)),
            same: true,
        };
        let found = match scan.k {
            0 => Neighbours::default(),
            _ => {
                let scanned = device.scan(&rows, &rows, &scan, &|_| {});
                scanned.map_err(|e| failed(&e))?.neighbours
            }
        };
        Ok(Nearby {
            lonely: lonely(&chosen, &found),
            chosen,
            found,
        })
    }

    /// Groups of pictures, each at least so similar to the first of its group, the most similar first, with the greatest similarity to
    /// it. Chains of what is alike two by two would join pictures that have nothing in common.
    fn nearly_the_same(&self, above: f32) -> Vec<(f32, Vec<usize>)> {
        let near = |i: usize| {
            let all = self.found.of(i).iter().zip(self.found.similarities_of(i));
            let all = all.map(|(j, similarity)| (*j as usize, *similarity));
            all.take_while(move |(_, similarity)| *similarity >= above)
        };
        let mut firsts: Vec<(f32, usize)> = match self.found.k {
            0 => vec![],
            _ => (0..self.chosen.len())
                .filter_map(|i| near(i).next().map(|(_, similarity)| (similarity, i)))
                .collect(),
        };
        firsts.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut taken = vec![false; self.chosen.len()];
        let mut groups = vec![];
        for (_, first) in firsts {
            let others: Vec<(usize, f32)> = near(first).filter(|(j, _)| !taken[*j]).collect();
            let (false, Some((_, similarity))) = (taken[first], others.first()) else {
                continue;
            };
            let mut group = vec![first];
            group.extend(others.iter().map(|(j, _)| *j));
            group.iter().for_each(|i| taken[*i] = true);
            group.iter_mut().for_each(|i| *i = self.chosen[*i]);
            groups.push((*similarity, group));
        }
        groups
    }
}

/// How many vectors of this length may be compared with each other.
fn most_compared(dim: usize) -> usize {
    (MOST_PRODUCTS / dim.max(1)).isqrt()
}

/// At most `most` of `n` numbers, ascending.
pub(crate) fn evenly(n: usize, most: usize) -> Vec<usize> {
    let count = n.min(most);
    (0..count).map(|i| i * n / count).collect()
}

/// The vectors of some pictures: where they lie, where it is all of them.
pub(crate) fn rows_of<'a>(vectors: &'a [f32], dim: usize, chosen: &[usize]) -> Cow<'a, [f32]> {
    if chosen.len() * dim == vectors.len() {
        return Cow::Borrowed(vectors);
    }
    let rows = chosen.iter().flat_map(|i| &vectors[i * dim..][..dim]);
    rows.copied().collect()
}

/// Why so many pictures are not looked through for copies: among some of them there would be a few by chance.
fn too_many(pictures: usize, dim: usize) -> Option<Refusal> {
    let most = most_compared(dim);
    let sentence = format!(
        "{pictures} pictures are too many to be compared with each other while a page waits, which goes up to {most}; the command `anchorhood duplicates` compares any number"
    );
    (pictures > most).then_some(Refusal(StatusCode::UNPROCESSABLE_ENTITY, sentence))
}

fn lonely(chosen: &[usize], found: &Neighbours) -> Vec<(usize, f32)> {
    let mean = |row: usize| match found.k {
        0 => 0.0,
        k => found.similarities_of(row).iter().sum::<f32>() / k as f32,
    };
    let all = chosen.iter().enumerate();
    let mut lonely: Vec<(usize, f32)> = all.map(|(row, i)| (*i, mean(row))).collect();
    lonely.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    lonely
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

async fn nearby<'a>(site: &Arc<Site>, now: &'a Arc<Contents>) -> Result<&'a Nearby, Refusal> {
    let make = |now: &Contents| Nearby::of(&now.shelf.index);
    once(site, now, |now| &now.nearby, make).await
}

/// `GET /api/outliers`: pictures with the least like them first.
pub(crate) async fn outliers(
    State(site): Shared,
    Asked(part): Asked<Portion>,
    Asked(filter): Asked<Filter>,
) -> Answer {
    let now = site.now();
    nearby(&site, &now).await?;
    let turn = site.turn_to_search().await?;
    blocking(turn, move || {
        let lonely = now.nearby.get().map_or(&[][..], |n| &n.lonely);
        let index = &now.shelf.index;
        let passing: Vec<_> = lonely
            .iter()
            .filter(|(i, _)| filter.passes(index, *i))
            .collect();
        let shown = passing.iter().skip(part.from);
        let shown: Vec<Value> = shown
            .take(part.count.min(MOST_LISTED))
            .map(|(i, similarity)| now.describe_similar(*i, *similarity))
            .collect();
        let (of, compared) = (passing.len(), lonely.len());
        Json(json!({ "pictures": shown, "of": of, "compared": compared }))
    })
    .await
}

/// From how similar on, and which part.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Above {
    #[serde(default = "nearly_the_same")]
    above: f32,
}

fn nearly_the_same() -> f32 {
    0.98
}

/// `GET /api/duplicates`: groups of pictures that are nearly the same.
pub(crate) async fn duplicates(
    State(site): Shared,
    Asked(Above { above }): Asked<Above>,
    Asked(part): Asked<Portion>,
    Asked(filter): Asked<Filter>,
) -> Answer {
    let now = site.now();
    if let Some(refusal) = too_many(now.shelf.len(), now.shelf.index.parts().dim) {
        return Err(refusal);
    }
    // What is no number is taken for the default, and groups of what is hardly alike would be one.
    let above = match above.is_finite() {
        true => above.clamp(0.5, 1.0),
        false => nearly_the_same(),
    };
    nearby(&site, &now).await?;
    let turn = site.turn_to_search().await?;
    blocking(turn, move || {
        let found = now.nearby.get().map(|n| n.nearly_the_same(above));
        let mut found = found.unwrap_or_default();
        let index = &now.shelf.index;
        found.retain(|(_, group)| group.iter().any(|i| filter.passes(index, *i)));
        let shown = found
            .iter()
            .skip(part.from)
            .take(part.count.min(MOST_LISTED));
        let shown = shown.map(|(similarity, group)| {
            let told = group.iter().map(|i| now.describe(*i));
            json!({ "similarity": similarity, "pictures": told.collect::<Vec<_>>() })
        });
        Json(json!({
            "above": above,
            "of": found.len(),
            "pictures": found.iter().map(|(_, group)| group.len()).sum::<usize>(),
            "groups": shown.collect::<Vec<_>>(),
        }))
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
        let parts = IndexParts {
            names: (0..n).map(|i| format!("{i}.png")).collect(),
            classes: vec![None; n],
            dim: 2,
            vectors: angles
                .iter()
                .flat_map(|a| [a.cos(), a.sin()])
                .collect::<Vec<f32>>()
                .into(),
            ..IndexParts::default()
        };
        PictureIndex::from_parts(Path::new("x.index"), parts).unwrap()
    }

    #[test]
    fn copies_are_grouped_and_the_lonely_come_first() {
        // Two pairs, one closer than the other, a triple, and one alone.
        let angles = [0.0, 0.01, 1.0, 1.05, 2.0, 2.02, 2.025, 4.0];
        let nearby = Nearby::of(&index(&angles)).unwrap();
        assert_eq!(nearby.lonely[0].0, 7);
        assert_eq!(nearby.lonely.len(), 8);
        let groups = |above| -> Vec<Vec<usize>> {
            let found = nearby.nearly_the_same(above);
            found.into_iter().map(|(_, group)| group).collect()
        };
        assert_eq!(groups(0.999_9), [vec![5, 6], vec![0, 1]]);
        assert_eq!(groups(0.998), [vec![5, 6, 4], vec![0, 1], vec![2, 3]]);
        // A chain of small steps is no group: its ends are not alike.
        let chain: Vec<f32> = (0..40).map(|i| i as f32 * 0.05).collect();
        let found = Nearby::of(&index(&chain)).unwrap().nearly_the_same(0.998);
        assert!(found.len() > 10 && found.iter().all(|(_, group)| group.len() <= 3));
        assert!(nearby.nearly_the_same(1.0).is_empty());
    }

    #[test]
    fn one_picture_has_no_copies() {
        let nearby = Nearby::of(&index(&[0.5])).unwrap();
        assert!(nearby.nearly_the_same(0.5).is_empty());
        assert_eq!(nearby.lonely, [(0, 0.0)]);
    }

    #[test]
    fn of_many_some_are_taken_evenly() {
        assert_eq!(most_compared(128), 62_500);
        assert_eq!(evenly(3, 5), [0, 1, 2]);
        assert_eq!(evenly(10, 4), [0, 2, 5, 7]);
        assert!(evenly(0, 4).is_empty());
        let vectors = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(*rows_of(&vectors, 1, &evenly(4, 2)), [1.0, 3.0]);
        assert!(matches!(rows_of(&vectors, 2, &[0, 1]), Cow::Borrowed(_)));
        assert!(too_many(62_500, 128).is_none());
        let Refusal(code, why) = too_many(1_281_167, 2048).unwrap();
        assert!(code == 422 && why.contains("up to 15625"), "{why}");
    }
}
