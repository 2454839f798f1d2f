//! Which pictures are the same, as `anchorhood duplicates` tells it: vectors and hashes propose,
//! pixels decide.
//!
//! Every picture is read for it, which takes from seconds to minutes. It is begun when somebody
//! first asks, and done once; whoever asks meanwhile is told how far it is.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anchorhood_curate::{
    Compared, Duplicate, DuplicateGroup, DuplicateOptions, DuplicateStage, find_duplicates,
};
use anchorhood_engine::Device;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::api::{MOST_LISTED, Shared, blocking};
use crate::asked::{Asked, Portion};
use crate::error::Refusal;
use crate::filter::Filter;
use crate::sample::most_compared;
use crate::site::{Contents, Site, threads};

/// How long an answer waits before it says how far the search is.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far something is: the stage, what of it is done, and of how much.
type Progress = (DuplicateStage, usize, usize);

/// The search for copies, once somebody has asked for it.
#[derive(Debug, Default)]
pub(crate) struct Search {
    begun: AtomicBool,
    progress: Mutex<Option<Progress>>,
    ended: Notify,
    /// What came of it, or why nothing did.
    found: OnceLock<Result<Copies, String>>,
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
    fn find(now: &Contents) -> Result<Copies, Refusal> {
        let failed = |e: &dyn std::fmt::Display| Refusal::failed(e.to_string());
        let index = &now.shelf.index;
        let compared = Compared {
            look: &|i| now.shelf.look(i),
            vectors: index.vectors().map_err(|e| failed(&e))?,
            dim: index.parts().dim,
            against_from: None,
            folder_rank: &|_| 0,
            not_copies: &|_, _| false,
        };
        let (device, options) = (Device::cpu(threads()), DuplicateOptions::default());
        let tell = |stage, done, total| now.copies.tell((stage, done, total));
        let found = find_duplicates(&device, &compared, &options, &tell);
        let found = found.map_err(|e| failed(&e))?;
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
    fn tell(&self, progress: Progress) {
        let mut told = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        *told = Some(progress);
    }

    /// "Reading", 120, 5000.
    fn progress(&self) -> Value {
        let told = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (stage, done, total) = match *told {
            Some((stage, done, total)) => (words(stage), done, total),
            None => ("waiting for other computations", 0, 0),
        };
        json!({ "stage": stage, "done": done, "total": total })
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
async fn found<'a>(site: &Arc<Site>, now: &'a Arc<Contents>) -> Option<&'a Result<Copies, String>> {
    let ended = now.copies.ended.notified();
    if !now.copies.begun.swap(true, Ordering::Relaxed) {
        let (site, now) = (site.clone(), now.clone());
        // It goes on when who asked goes away.
        tokio::spawn(async move {
            let shown = now.clone();
            let found = match site.turn_to_compute().await {
                Ok(turn) => blocking(turn, move || Copies::find(&shown)).await,
                Err(refusal) => Err(refusal),
            };
            let found = found.and_then(|found| found).map_err(|Refusal(_, why)| why);
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
    let [done, total] = site.indexing.as_ref().map_or([0, 0], |i| i.now());
    let sentence = || {
        format!(
            "the pictures are still being indexed, {done} of {total} so far; copies are looked for when all are there"
        )
    };
    (done < total).then(|| Refusal::busy(sentence()))
}

/// `GET /api/duplicates`: groups of pictures that are the same, each with the one to keep; with
/// code 202 how far the search for them is.
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
        None => Ok((StatusCode::ACCEPTED, Json(now.copies.progress())).into_response()),
        Some(Err(why)) => Err(Refusal::failed(why.clone())),
        Some(Ok(_)) => {
            let turn = site.turn_to_search().await?;
            let told = blocking(turn, move || told(&now, part, &filter)).await?;
            Ok(Json(told).into_response())
        }
    }
}

fn told(now: &Contents, part: Portion, filter: &Filter) -> Value {
    let Some(Ok(copies)) = now.copies.found.get() else {
        return Value::Null; // it was there
    };
    let index = &now.shelf.index;
    let passes = |group: &&DuplicateGroup| members(group).any(|i| filter.passes(index, i));
    let passing: Vec<&DuplicateGroup> = copies.groups.iter().filter(passes).collect();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for other in passing.iter().flat_map(|group| &group.others) {
        *kinds.entry(other.kind.to_string()).or_default() += 1;
    }
    let shown = passing.iter().skip(part.from);
    let shown = shown.take(part.count.min(MOST_LISTED));
    json!({
        "of": passing.len(),
        "copies": kinds.values().sum::<usize>(),
        "kinds": kinds,
        "unread": copies.unread,
        "groups": shown.map(|group| group_in_words(now, copies, group)).collect::<Vec<_>>(),
    })
}

fn group_in_words(now: &Contents, copies: &Copies, group: &DuplicateGroup) -> Value {
    let size = |i: usize| copies.sizes.get(&i);
    let other = |d: &Duplicate| {
        let more = json!({
            "kind": d.kind.to_string(),
            "of": group.keep,
            "score": d.score,
            "height_and_width": size(d.picture),
        });
        now.describe_with(d.picture, more)
    };
    let reasons = group.why.iter().map(|reason| reason.to_string());
    let kept = json!({ "height_and_width": size(group.keep) });
    json!({
        "keep": now.describe_with(group.keep, kept),
        "why": reasons.collect::<Vec<_>>(),
        "others": group.others.iter().map(other).collect::<Vec<_>>(),
    })
}
