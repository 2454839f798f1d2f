//! Which pictures are the same, as `anchorhood duplicates` tells it: vectors and hashes propose,
//! pixels decide.
//!
//! Every picture is read for it, which takes from seconds to minutes. It is begun when somebody
//! first asks, and done once; whoever asks meanwhile is told how far it is.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anchorhood_engine::Device;
use anchorhood_index::curate::{
    CopyKind, Duplicate, DuplicateGroup, DuplicateOptions, DuplicateStage,
};
use anchorhood_index::{CopySearch, Decisions};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::timeout;
use utoipa::ToSchema;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use crate::api::{Shared, in_turn};
use crate::asked::{Asked, Portion};
use crate::error::{Refusal, Refused};
use crate::filter::Filter;
use crate::growing::IndexingProgress;
use crate::sample::most_compared;
use crate::site::{Contents, ImageInfo, Site, threads};

/// How long an answer waits before it says how far the search is.
const PATIENCE: Duration = Duration::from_secs(1);

/// The search for copies, once somebody has asked for it.
#[derive(Debug, Default)]
pub(crate) struct Search {
    begun: AtomicBool,
    progress: Mutex<StageProgress>,
    ended: Notify,
    /// What came of it, or why nothing did.
    found: OnceLock<Result<Arc<Copies>, String>>,
}

/// What was found.
#[derive(Debug)]
struct Copies {
    groups: Vec<DuplicateGroup>,
    /// Rows and columns of the pictures in groups.
    sizes: HashMap<usize, [u32; 2]>,
    /// Pictures that could not be read.
    unread: usize,
}

impl Copies {
    fn find(now: &Contents, decisions: &Decisions) -> Result<Copies, Refusal> {
        let search = CopySearch::new(&now.shelf.index, None).map_err(Refusal::failed)?;
        let (device, options) = (Device::cpu(threads()), DuplicateOptions::default());
        let tell = |stage, done, total| {
            *now.copies.progress() = StageProgress { stage: words(stage), done, total };
        };
        let look = |i| now.shelf.look(i);
        let found = search.find_by(&look, &device, &options, decisions, &tell);
        let found = found.map_err(Refusal::failed)?;
        let members = found.groups.iter().flat_map(members);
        let size = |i: usize| Some((i, found.looks[i].as_ref().ok()?.height_and_width));
        Ok(Copies {
            sizes: members.filter_map(size).collect(),
            unread: found.looks.iter().filter(|look| look.is_err()).count(),
            groups: found.groups,
        })
    }
}

fn members(group: &DuplicateGroup) -> impl Iterator<Item = usize> {
    std::iter::once(group.keep).chain(group.others.iter().map(|other| other.picture))
}

impl Search {
    fn progress(&self) -> MutexGuard<'_, StageProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far something is: "reading the pictures", 120, 5000.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
struct StageProgress {
    stage: &'static str,
    done: usize,
    total: usize,
}

impl Default for StageProgress {
    fn default() -> Self {
        StageProgress { stage: "waiting for other computations", done: 0, total: 0 }
    }
}

fn words(stage: DuplicateStage) -> &'static str {
    match stage {
        DuplicateStage::Reading => "reading the pictures",
        DuplicateStage::Proposing => "comparing vectors",
        DuplicateStage::Judging => "comparing pixels",
    }
}

/// What the search has found; nothing, while it goes on.
async fn found<'a>(
    site: &Arc<Site>,
    now: &'a Arc<Contents>,
) -> Option<&'a Result<Arc<Copies>, String>> {
    let ended = now.copies.ended.notified();
    if !now.copies.begun.swap(true, Ordering::Relaxed) {
        let (site, now) = (site.clone(), now.clone());
        // It goes on when who asked goes away.
        tokio::spawn(async move {
            let shown = now.clone();
            let found = in_turn(&site.computing, move || {
                let decisions = Decisions::of_user().map_err(Refusal::failed)?;
                Copies::find(&shown, &decisions)
            });
            let found = found.await;
            let found = found.flatten().map(Arc::new).map_err(|Refusal(_, why)| why);
            // There was nothing before: it is begun once.
            let _ = now.copies.found.set(found);
            now.copies.ended.notify_waiters();
        });
    }
    if now.copies.found.get().is_none() {
        let _in_time = timeout(PATIENCE, ended).await;
    }
    now.copies.found.get()
}

/// Why copies are not looked for: too many pictures to wait for, or not all of them are there.
fn refused(site: &Site, pictures: usize, dim: usize) -> Option<Refusal> {
    let most = most_compared(dim);
    if pictures > most {
        let sentence = format!(
            "{pictures} pictures are too many to be compared with each other while a page waits, which goes up to {most}; the command `anchorhood duplicates` compares any number"
        );
        return Some(Refusal(StatusCode::UNPROCESSABLE_ENTITY, sentence));
    }
    let indexing = site.indexing.as_ref().map(|indexing| indexing.now());
    let IndexingProgress { done, total } = indexing.unwrap_or_default();
    let sentence = || {
        format!(
            "the pictures are still being indexed, {done} of {total} so far; copies are looked for when all are there"
        )
    };
    (done < total).then(|| Refusal::busy(sentence()))
}

#[derive(Serialize, ToSchema)]
struct CopyGroups {
    /// How many groups there are in all.
    of: usize,
    copies: usize,
    /// How many of each kind.
    kinds: BTreeMap<String, usize>,
    /// Pictures that could not be read, and were not compared.
    unread: usize,
    groups: Vec<CopyGroup>,
}

#[derive(Serialize, ToSchema)]
struct CopyGroup {
    keep: SizedImage,
    /// What the kept one has before the others, most important first.
    why: Vec<String>,
    others: Vec<CopiedImage>,
}

#[derive(Serialize, ToSchema)]
struct SizedImage {
    #[serde(flatten)]
    image: ImageInfo,
    /// Rows and columns of the whole picture.
    #[schema(required)]
    height_and_width: Option<[u32; 2]>,
}

#[derive(Serialize, ToSchema)]
struct CopiedImage {
    #[serde(flatten)]
    image: SizedImage,
    #[schema(schema_with = kinds)]
    kind: String,
    /// The picture that it is a copy of: the kept one.
    of: usize,
    /// Correlation of their detail: 1 where all pixels are the same.
    score: f64,
}

fn kinds() -> Object {
    let of = ObjectBuilder::new().schema_type(Type::String);
    of.enum_values(Some(CopyKind::NAMES)).build()
}

/// Groups of pictures that are the same, told by their pixels, the largest first, each with the one
/// to keep: what the command `duplicates` finds. Looked for when first asked for, once; meanwhile
/// 202 says how far it is.
#[utoipa::path(get, path = "/api/duplicates", params(Portion, Filter), responses(
    (status = 200, description = "Groups.", body = CopyGroups),
    (status = 202, description = "How far the search is; ask again.", body = StageProgress),
    (status = 400, response = Refused),
    (status = 422, response = Refused),
    (status = 503, response = Refused),
))]
pub(crate) async fn duplicates(
    State(site): Shared,
    Asked(part): Asked<Portion>,
    Asked(filter): Asked<Filter>,
) -> Result<Response, Refusal> {
    let now = site.now();
    if let Some(refusal) = refused(&site, now.shelf.len(), now.shelf.index.parts().dim) {
        return Err(refusal);
    }
    match found(&site, &now).await {
        None => Ok((StatusCode::ACCEPTED, Json(*now.copies.progress())).into_response()),
        Some(Err(why)) => Err(Refusal::failed(why)),
        Some(Ok(copies)) => {
            let (copies, now) = (copies.clone(), now.clone());
            let told = in_turn(&site.searching, move || told(&now, &copies, part, &filter)).await?;
            Ok(Json(told).into_response())
        }
    }
}

fn told(now: &Contents, copies: &Copies, part: Portion, filter: &Filter) -> CopyGroups {
    let index = &now.shelf.index;
    let passes = |group: &&DuplicateGroup| members(group).any(|i| filter.passes(index, i));
    let passing: Vec<&DuplicateGroup> = copies.groups.iter().filter(passes).collect();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for other in passing.iter().flat_map(|group| &group.others) {
        *kinds.entry(other.kind.to_string()).or_default() += 1;
    }
    CopyGroups {
        of: passing.len(),
        copies: kinds.values().sum(),
        kinds,
        unread: copies.unread,
        groups: part.of(passing).map(|group| group_in_words(now, copies, group)).collect(),
    }
}

fn group_in_words(now: &Contents, copies: &Copies, group: &DuplicateGroup) -> CopyGroup {
    let sized = |i: usize| SizedImage {
        image: now.describe(i),
        height_and_width: copies.sizes.get(&i).copied(),
    };
    let other = |d: &Duplicate| CopiedImage {
        image: sized(d.picture),
        kind: d.kind.to_string(),
        of: group.keep,
        score: d.score.into(),
    };
    CopyGroup {
        keep: sized(group.keep),
        why: group.why.iter().map(|reason| reason.to_string()).collect(),
        others: group.others.iter().map(other).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_index::decide_not_duplicates;
    use anchorhood_storage::Disk;

    use crate::catalog::Catalog;
    use crate::fixtures;

    fn image(number: u32) -> image::RgbImage {
        let wave = |x: u32, y: u32| ((x * x * (number + 1)) as f32 * 0.01 + y as f32 * 0.3).sin();
        image::RgbImage::from_fn(64, 48, |x, y| {
            image::Rgb([(128.0 + 90.0 * wave(x, y)) as u8, x as u8, y as u8])
        })
    }

    /// The page shows what the command tells.
    #[test]
    fn names_of_one_file_are_no_copies_and_decisions_count() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().canonicalize().unwrap();
        for (name, number) in [("a.png", 1), ("copy.png", 1), ("other.png", 5)] {
            image(number).save(folder.join(name)).unwrap();
        }
        std::fs::hard_link(folder.join("other.png"), folder.join("hard.png")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("other.png", folder.join("link.png")).unwrap();
        #[cfg(not(unix))]
        std::fs::hard_link(folder.join("other.png"), folder.join("link.png")).unwrap();
        let names = ["a.png", "copy.png", "hard.png", "link.png", "other.png"];
        let vectors = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]];
        let index = fixtures::index(&folder, &names, &[], vectors.as_flattened().to_vec());
        let pair = CopySearch::new(&index, None).unwrap().decided(0, 1).unwrap();
        let now = Contents::new(Catalog::of_index("x".into(), index, None).unwrap(), vec![], 0);
        let found = Copies::find(&now, &Decisions::default()).unwrap();
        let groups: Vec<Vec<usize>> = found.groups.iter().map(|g| members(g).collect()).collect();
        assert_eq!((groups, found.unread), (vec![vec![0, 1]], 0));
        let file = folder.join("decisions.jsonl");
        decide_not_duplicates(&Disk::shared(), &file, pair).unwrap();
        let decisions = Decisions::load(&Disk, &file).unwrap();
        assert!(Copies::find(&now, &decisions).unwrap().groups.is_empty());
    }
}
