//! Which pictures are looked at: all, or those in a folder, or of a label. And which folders and
//! labels there are.

use std::collections::BTreeMap;

use anchorhood_index::PictureIndex;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::api::{Answer, Shared};
use crate::once::once;
use crate::site::Contents;

/// Folders, and labels, in one answer, at most: those with the most pictures.
const MOST: usize = 1000;

/// What pictures must have to be looked at; the empty text is no condition, so that a form can
/// leave a field empty.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only pictures in this folder or deeper.
    #[serde(default)]
    folder: String,
    /// Only pictures of this label.
    #[serde(default)]
    label: String,
}

impl Filter {
    /// Whether all pictures pass.
    pub fn is_open(&self) -> bool {
        self.folder.is_empty() && self.label.is_empty()
    }

    /// Whether a picture passes: it lies in the folder or deeper, and has the label.
    pub fn passes(&self, index: &PictureIndex, i: usize) -> bool {
        let inside = || {
            let rest = index.name(i).strip_prefix(&self.folder);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let label = index.parts().classes[i].as_ref();
        (self.folder.is_empty() || inside())
            && (self.label.is_empty() || label == Some(&self.label))
    }

    /// Those of numbered pictures that pass.
    pub fn passing<'a, T>(
        &self,
        index: &PictureIndex,
        all: &'a [(usize, T)],
    ) -> Vec<&'a (usize, T)> {
        all.iter().filter(|(i, _)| self.passes(index, *i)).collect()
    }
}

/// A folder or a label, and how many pictures it has.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Counted {
    name: String,
    pictures: usize,
}

/// What can be filtered by.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Filters {
    folders: Vec<Counted>,
    labels: Vec<Counted>,
    left_out: usize,
}

impl Filters {
    pub fn of(index: &PictureIndex) -> Filters {
        let folders = counted((0..index.len()).flat_map(|i| folders_of(index.name(i))));
        let labels = counted(index.parts().classes.iter().flatten().map(String::as_str));
        let left_out = folders.1 + labels.1;
        Filters { folders: folders.0, labels: labels.0, left_out }
    }
}

/// Every folder that a picture is in: `a` and `a/b` of `a/b/1.png`.
fn folders_of(name: &str) -> impl Iterator<Item = &str> {
    let ends = name.match_indices('/').map(|(at, _)| at);
    ends.map(|at| &name[..at]).filter(|f| !f.is_empty())
}

/// The most frequent, by name, and how many there are beside them.
fn counted<'a>(all: impl Iterator<Item = &'a str>) -> (Vec<Counted>, usize) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let left_out = counts.len().saturating_sub(MOST);
    counts.truncate(MOST);
    counts.sort_unstable();
    let named = counts.into_iter().map(|(name, n)| Counted { name: name.into(), pictures: n });
    (named.collect(), left_out)
}

/// Folders and labels that pictures can be filtered by, with how many each has; those with the
/// most, where there are more than 1,000.
#[utoipa::path(get, path = "/api/filters", responses(
    (status = 200, description = "By name.", body = Filters),
))]
pub(crate) async fn filters(State(site): Shared) -> Answer<Filters> {
    let now = site.now();
    let make = |now: &Contents| Ok(Filters::of(&now.shelf.index));
    Ok(Json(once(&site, &now, |now| &now.filters, make).await?.clone()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::fixtures;

    fn index() -> PictureIndex {
        let names = ["a/b/1.png", "a/2.png", "ab/3.png", "4.png"];
        let labels = [Some("cat"), None, Some("cat"), Some("dog")];
        fixtures::index(Path::new(""), &names, &labels, vec![1.0; 4])
    }

    #[test]
    fn folders_are_whole_names_and_hold_what_lies_deeper() {
        let passing = |folder: &str, label: &str| -> Vec<usize> {
            let filter = Filter { folder: folder.into(), label: label.into() };
            let index = index();
            (0..4).filter(|i| filter.passes(&index, *i)).collect()
        };
        assert_eq!(passing("", ""), [0, 1, 2, 3]);
        assert_eq!(passing("a", ""), [0, 1]);
        assert_eq!(passing("a/b", ""), [0]);
        assert_eq!(passing("", "cat"), [0, 2]);
        assert_eq!(passing("a", "cat"), [0]);
        assert!(passing("b", "").is_empty() && passing("", "c").is_empty());
    }

    #[test]
    fn every_folder_and_label_is_counted() {
        let filters = Filters::of(&index());
        let pair = |name: &str, pictures| Counted { name: name.into(), pictures };
        assert_eq!(filters.folders, [pair("a", 2), pair("a/b", 1), pair("ab", 1)]);
        assert_eq!(filters.labels, [pair("cat", 2), pair("dog", 1)]);
        assert_eq!(filters.left_out, 0);
        let many: Vec<String> = (0..MOST + 7).map(|i| i.to_string()).collect();
        assert_eq!(counted(many.iter().map(String::as_str)).1, 7);
    }
}
