//! The questions of the page, as JSON.

use std::io::{self, Read, Take};
use std::sync::Arc;
use std::time::Instant;

use anchorhood_index::SearchError;
use anchorhood_index::curate::Hit;
use anchorhood_report::{Summary, chart_figures, read_metrics};
use anchorhood_train::evaluation::{Layout, layout};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use utoipa::{IntoParams, ToSchema};

use crate::asked::{Asked, Portion, Written, usual};
use crate::catalog::{Shown, Wanted, Whole};
use crate::error::{Refusal, Refused};
use crate::filter::Filter;
use crate::growing::IndexingProgress;
use crate::once::once;
use crate::openapi::Binary;
use crate::site::{Contents, ImageInfo, Neighbour, Site};

/// Neighbours in one answer, at most.
pub(crate) const MOST_NEIGHBOURS: usize = 500;
/// Points on the map, at most.
const MOST_ON_MAP: usize = 2000;
/// Bytes of a file that are read at a time.
const PART: u64 = 32 << 10;
pub(crate) type Shared = State<Arc<Site>>;
pub(crate) type Answer<T> = Result<Json<T>, Refusal>;

/// What is said of a copy, and of one that the browser has.
const COPY: &str = "A JPEG or PNG.";
const SAME: &str = "The picture with the tag of If-None-Match is still this one.";

/// What is shown.
#[derive(Serialize, ToSchema)]
pub(crate) struct About {
    name: String,
    kind: Kind,
    pictures: usize,
    /// The folders that names are relative to; told where no token is needed.
    #[schema(required)]
    folders: Option<Vec<Folder>>,
    dim: usize,
    recall: f64,
    classes: Vec<String>,
    rounds: Vec<usize>,
    uploads: bool,
    /// How often a newer checkpoint of the run has been taken, or more pictures of a folder, since
    /// the server started.
    renewals: u64,
    #[schema(required)]
    indexing: Option<IndexingProgress>,
    largest_upload: usize,
    version: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Run,
    Index,
}

#[derive(Serialize, ToSchema)]
struct Folder {
    /// What its pictures' names begin with, before a slash; empty where there is one folder.
    label: String,
    path: String,
}

/// What is shown here.
#[utoipa::path(get, path = "/api/run", responses(
    (status = 200, description = "The run or index.", body = About),
))]
pub(crate) async fn run(State(site): Shared) -> Json<About> {
    let now = site.now();
    let index = &now.shelf.index;
    let folders = now.shelf.folders().iter();
    let folders =
        folders.map(|f| Folder { label: f.label.clone(), path: f.path.display().to_string() });
    Json(About {
        name: now.shelf.name.clone(),
        kind: if site.run.is_some() { Kind::Run } else { Kind::Index },
        pictures: index.len(),
        // Where there is a token others look too, whom the folders of this machine do not concern.
        folders: site.session.is_none().then(|| folders.collect()),
        dim: index.parts().dim,
        recall: index.recall(),
        classes: now.classes.clone(),
        rounds: now.rounds.iter().map(|r| r.round).collect(),
        renewals: now.version,
        indexing: site.indexing.as_ref().map(|indexing| indexing.now()),
        uploads: site.asker.is_some(),
        largest_upload: site.largest_upload,
        version: anchorhood_train::VERSION,
    })
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Every {
    /// Every so manyth, so that a few stand for all.
    #[serde(default = "usual::<1>")]
    #[param(default = 1)]
    step: usize,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ImageList {
    pictures: Vec<ImageInfo>,
    /// How many there are in all.
    of: usize,
}

/// Some pictures, in order.
#[utoipa::path(get, path = "/api/pictures", params(Portion, Every, Filter), responses(
    (status = 200, description = "Pictures.", body = ImageList),
    (status = 400, response = Refused),
))]
pub(crate) async fn pictures(
    State(site): Shared,
    Asked(part): Asked<Portion>,
    Asked(every): Asked<Every>,
    Asked(filter): Asked<Filter>,
) -> Answer<ImageList> {
    let now = site.now();
    in_turn(&site.searching, move || {
        let index = &now.shelf.index;
        let all = (0..index.len()).filter(|i| filter.passes(index, *i));
        let of = match filter.is_open() {
            true => index.len(),
            false => all.clone().count(),
        };
        let some = part.every(every.step, all);
        Json(ImageList { pictures: some.map(|i| now.describe(i)).collect(), of })
    })
    .await
}

/// A picture whole: its file, in a folder or an archive, or what a run was trained on.
#[utoipa::path(get, path = "/api/picture/{id}",
    params(("id" = usize, Path, description = "A picture's number, from 0.")),
    responses(
        (status = 200, description = "Its file.", body = inline(Binary), content_type = "image/*"),
        (status = 304, description = SAME),
        (status = 404, response = Refused),
    )
)]
pub(crate) async fn picture(
    State(site): Shared,
    Written(id): Written,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    shown(&site, &id, Wanted::Whole, headers).await
}

/// A file by parts, each read when the one before it was sent: a client that reads slowly, or not,
/// holds one of them. Each waits for a turn, and has it until it is read: on a disk that does not
/// answer, readers keep no more threads than there are for them.
fn read<R: Read + Send + 'static>(
    turns: Arc<Semaphore>,
    file: Take<R>,
) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold(file, move |mut file| {
        let turn = turns.clone().acquire_owned();
        async move {
            let turn = turn.await.map_err(io::Error::other)?;
            let part = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                let mut part = Vec::with_capacity(PART as usize);
                file.by_ref().take(PART).read_to_end(&mut part)?;
                Ok::<_, io::Error>((part, file))
            });
            let (part, file) = part.await.map_err(io::Error::other)??;
            Ok((!part.is_empty()).then(|| (Bytes::from(part), file)))
        }
    })
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Side {
    /// Pixels a side, at most.
    #[serde(default = "usual::<128>")]
    #[param(default = 128, minimum = 16, maximum = 512)]
    side: usize,
}

/// The square in its middle, small, from the original where that can be read; never enlarged.
#[utoipa::path(get, path = "/api/picture/{id}/small",
    params(("id" = usize, Path, description = "A picture's number, from 0."), Side),
    responses(
        (status = 200, description = COPY, body = inline(Binary), content_type = "image/*"),
        (status = 304, description = SAME),
        (status = 400, response = Refused),
        (status = 404, response = Refused),
    )
)]
pub(crate) async fn small(
    State(site): Shared,
    Written(id): Written,
    Asked(side): Asked<Side>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let wanted = Wanted::Square(side.side.clamp(16, 512));
    shown(&site, &id, wanted, headers).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Longest {
    /// Pixels of its longer side, at most.
    #[serde(default = "usual::<1600>")]
    #[param(default = 1600, minimum = 64, maximum = 2048)]
    longest: usize,
}

/// All of it, as large as a screen shows it; never enlarged.
#[utoipa::path(get, path = "/api/picture/{id}/large",
    params(("id" = usize, Path, description = "A picture's number, from 0."), Longest),
    responses(
        (status = 200, description = COPY, body = inline(Binary), content_type = "image/*"),
        (status = 304, description = SAME),
        (status = 400, response = Refused),
        (status = 404, response = Refused),
    )
)]
pub(crate) async fn large(
    State(site): Shared,
    Written(id): Written,
    Asked(longest): Asked<Longest>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let wanted = Wanted::Fitted(longest.longest.clamp(64, 2048));
    shown(&site, &id, wanted, headers).await
}

/// What a look at a file told: that the browser has this view of it, that it is at hand, or that it
/// must be made.
enum Looked {
    Had,
    AtHand(Whole),
    ToBeMade,
}

async fn shown(
    site: &Site,
    id: &str,
    wanted: Wanted,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let now = site.now();
    let i = known(&now, id)?;
    let there = now.clone();
    let look = in_turn(&site.reading, move || {
        let opened = there.shelf.open(i, wanted);
        let tag = opened.tag;
        let looked = match wanted {
            _ if has(&headers, tag) => Looked::Had,
            Wanted::Whole => Looked::AtHand(opened.whole()?),
            _ => {
                opened.at_hand().map_or(Looked::ToBeMade, |copy| Looked::AtHand(Whole::Made(copy)))
            }
        };
        Ok::<_, String>((tag, looked))
    });
    Ok(match look.await?.map_err(Refusal::missing)? {
        (tag, Looked::Had) => {
            let kept = (header::CACHE_CONTROL, KEPT.to_string());
            (StatusCode::NOT_MODIFIED, [etag(tag), kept]).into_response()
        }
        (tag, Looked::AtHand(Whole::Made(shown))) => tagged(tag, shown),
        (tag, Looked::AtHand(Whole::File { kind, length, file })) => {
            let length = (header::CONTENT_LENGTH, length.to_string());
            let body = Body::from_stream(read(site.reading.clone(), file));
            ([length, etag(tag)], as_kind(kind), body).into_response()
        }
        (_, Looked::ToBeMade) => {
            let made = in_turn(&site.decoding, move || {
                let opened = now.shelf.open(i, wanted);
                let tag = opened.tag;
                opened.copy().map(|made| (tag, made))
            });
            let (tag, made) = made.await?.map_err(Refusal::missing)?;
            tagged(tag, made)
        }
    })
}

fn sent(shown: Shown) -> Response {
    (as_kind(shown.kind), Bytes::from_owner(shown.bytes)).into_response()
}

/// The same with what a browser can ask by whether it is still so.
fn tagged(tag: u64, shown: Shown) -> Response {
    ([etag(tag)], sent(shown)).into_response()
}

fn etag(tag: u64) -> (HeaderName, String) {
    (header::ETAG, format!("\"{tag:016x}\""))
}

/// Whether the browser has what bears this tag.
fn has(headers: &HeaderMap, tag: u64) -> bool {
    let asked = headers.get(header::IF_NONE_MATCH);
    let asked = asked.and_then(|v| v.to_str().ok()).unwrap_or("");
    let (_, tag) = etag(tag);
    asked.split(',').any(|one| one.trim() == tag)
}

/// A browser keeps pictures and asks each time whether they are still so: the next server at this
/// address may have another picture of this number, and a newer checkpoint looks elsewhere.
const KEPT: &str = "private, no-cache";

fn as_kind(kind: &'static str) -> [(HeaderName, &'static str); 2] {
    [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, KEPT)]
}

/// A picture's number; names and paths are none.
fn known(now: &Contents, id: &str) -> Result<usize, Refusal> {
    let n = now.shelf.len();
    let number = id.parse::<usize>().ok().filter(|i| *i < n);
    number.ok_or_else(|| {
        Refusal::missing(format!(
            "there is no picture {id:?}; pictures are numbered 0 to {}",
            n - 1
        ))
    })
}

/// A run's picture under the heat of where its network looks (Grad-CAM).
#[utoipa::path(get, path = "/api/picture/{id}/attention",
    params(("id" = usize, Path, description = "A picture's number, from 0.")),
    responses(
        (status = 200, description = "A PNG.", body = inline(Binary), content_type = "image/png"),
        (status = 404, response = Refused),
    )
)]
pub(crate) async fn attention(
    State(site): Shared,
    Written(id): Written,
) -> Result<Response, Refusal> {
    let i = known(&site.now(), &id)?;
    site.run_folder()?;
    let none = || Refusal::missing("there is no model to ask");
    let looked = site.asker.as_ref().ok_or_else(none)?.look(i).await;
    let bytes = looked.map_err(Refusal::failed)?;
    Ok(sent(Shown { kind: "image/png", bytes: bytes.into() }))
}

/// By which picture.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ById {
    /// Its number.
    #[param(value_type = usize)]
    id: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Nearest {
    /// How many neighbours.
    #[serde(default = "usual::<24>")]
    #[param(default = 24, minimum = 1, maximum = 500)]
    k: usize,
}

impl Nearest {
    pub fn count(&self) -> usize {
        self.k.clamp(1, MOST_NEIGHBOURS)
    }
}

/// The neighbours of a picture that is here; itself is left out.
#[utoipa::path(get, path = "/api/search", params(ById, Nearest, Filter), responses(
    (status = 200, description = "Most similar first.", body = SearchResult),
    (status = 400, response = Refused),
    (status = 404, response = Refused),
))]
pub(crate) async fn search_by_id(
    State(site): Shared,
    Asked(query): Asked<ById>,
    Asked(nearby): Asked<Nearest>,
    Asked(filter): Asked<Filter>,
) -> Answer<SearchResult> {
    let now = site.now();
    let i = known(&now, &query.id)?;
    let begun = Instant::now();
    let k = nearby.count();
    let asked = now.clone();
    let hits = in_turn(&site.searching, move || {
        let index = &asked.shelf.index;
        let hits = nearest(&asked, index.vector(i)?, k + 1, &filter)?.into_iter();
        Ok(hits.filter(|h| h.index != i).take(k).collect::<Vec<_>>())
    });
    let hits: Result<_, SearchError> = hits.await?;
    let hits = hits.map_err(Refusal::failed)?;
    Ok(told(&now, Some(i), hits, begun))
}

/// The `k` pictures most like a vector, of those that pass.
pub(crate) fn nearest(
    now: &Contents,
    vector: &[f32],
    k: usize,
    filter: &Filter,
) -> Result<Vec<Hit>, SearchError> {
    let index = &now.shelf.index;
    match filter.is_open() {
        true => index.nearest(vector, k),
        false => index.nearest_where(vector, k, &|i| filter.passes(index, i)),
    }
}

/// What a search found.
#[derive(Serialize, ToSchema)]
pub(crate) struct SearchResult {
    /// The picture that was asked by, where it is here.
    #[schema(required)]
    query: Option<ImageInfo>,
    neighbours: Vec<Neighbour>,
    seconds: f64,
}

/// Neighbours in words.
pub(crate) fn told(
    now: &Contents,
    query: Option<usize>,
    hits: Vec<Hit>,
    begun: Instant,
) -> Json<SearchResult> {
    Json(SearchResult {
        query: query.map(|i| now.describe(i)),
        neighbours: hits.iter().map(|h| now.describe_similar(h.index, h.similarity)).collect(),
        seconds: begun.elapsed().as_secs_f64(),
    })
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Map {
    /// Number, x, y, label, name.
    points: Vec<(usize, f64, f64, Option<String>, String)>,
    /// How many there are in all.
    of: usize,
}

/// Where pictures lie on a sheet, alike ones near.
#[utoipa::path(get, path = "/api/map", responses(
    (status = 200, description = "Points: number, x and y in [0, 1], label, name.", body = Map),
))]
pub(crate) async fn map(State(site): Shared) -> Answer<Map> {
    let now = site.now();
    let map = laid_out(&site, &now).await?;
    let point = |(i, [x, y]): (&u32, &[f32; 2])| {
        let ImageInfo { id, name, label } = now.describe(*i as usize);
        (id, (*x).into(), (*y).into(), label, name)
    };
    let points = map.chosen.iter().zip(&map.places).map(point).collect();
    Ok(Json(Map { points, of: now.shelf.len() }))
}

/// The map, made once.
pub(crate) async fn laid_out<'a>(
    site: &Arc<Site>,
    now: &'a Arc<Contents>,
) -> Result<&'a Layout, Refusal> {
    let make = |now: &Contents| {
        let index = &now.shelf.index;
        // Every block was found right when the shelf was made, and is not looked at again.
        let vectors = index.vectors().unwrap_or_default();
        Ok(layout(vectors, index.parts().dim, MOST_ON_MAP))
    };
    once(site, now, |now| &now.map, make).await
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Curves {
    charts: String,
    table: String,
    epochs: usize,
    ended: bool,
    /// The last accuracy.
    #[schema(required)]
    last: Option<f64>,
    /// How many lines of metrics.jsonl are no events and were left out.
    #[schema(required)]
    warning: Option<String>,
}

/// A run's charts as they are now.
#[utoipa::path(get, path = "/api/curves", responses(
    (status = 200, description = "SVG figures, and the table of rounds.", body = Curves),
    (status = 404, response = Refused),
))]
pub(crate) async fn curves(State(site): Shared) -> Answer<Curves> {
    let metrics = site.run_folder()?.join("metrics.jsonl");
    let drawn = in_turn(&site.reading, move || {
        let log = read_metrics(&metrics)?;
        let summary = Summary::of(&log.events);
        let html = chart_figures(&summary)?;
        Ok::<_, anchorhood_report::ReportError>((summary, html, log.left_out))
    });
    let (summary, html, left_out) = drawn.await?.map_err(Refusal::failed)?;
    Ok(Json(Curves {
        charts: html,
        table: summary.table(),
        epochs: summary.epochs.len(),
        ended: summary.ended.is_some(),
        last: summary.evaluations.last().map(|e| e.accuracy.top1),
        warning: left_out.map(|left_out| left_out.to_string()),
    }))
}

/// Work that would keep other requests waiting, on a thread of its own, when it has a turn; whoever
/// came first is first. It goes on when who asked goes away, and has its turn until it ends.
pub(crate) async fn in_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let turn = turns.clone().acquire_owned().await;
    let turn = turn.map_err(|_| Refusal::failed("the server is stopping"))?;
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    done.await.map_err(inside)
}

pub(crate) fn inside(_: JoinError) -> Refusal {
    Refusal::failed("this request failed inside the server; others go on")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use futures_util::StreamExt;

    use super::*;

    const TURNS: usize = 3;

    /// A file on a disk that does not answer until the other end of `answer` is gone.
    struct Stalled {
        begun: Sender<()>,
        answer: Receiver<()>,
        left: usize,
    }

    impl Read for Stalled {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let _ = self.begun.send(());
            let _ = self.answer.recv();
            let now = self.left.min(into.len());
            self.left -= now;
            into[..now].fill(7);
            Ok(now)
        }
    }

    #[test]
    fn reads_that_stall_leave_threads_for_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(TURNS + 1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let turns = Arc::new(Semaphore::new(TURNS));
            let (begun, begins) = channel();
            let (answers, sent): (Vec<_>, Vec<_>) = (0..4 * TURNS)
                .map(|_| {
                    let (hold, answer) = channel();
                    let file = Stalled { begun: begun.clone(), answer, left: 100_000 };
                    let parts = read(turns.clone(), file.take(70_000));
                    let parts = parts.map(|part| part.unwrap().len()).collect::<Vec<_>>();
                    (hold, tokio::spawn(parts))
                })
                .unzip();
            for _ in 0..TURNS {
                begins.recv_timeout(Duration::from_secs(20)).unwrap();
            }
            let other = tokio::task::spawn_blocking(|| 5);
            let other = tokio::time::timeout(Duration::from_secs(20), other);
            assert_eq!(other.await.expect("a thread is left").unwrap(), 5);
            assert!(begins.try_recv().is_err(), "no more are read than have a turn");
            drop(answers);
            for parts in sent {
                assert_eq!(parts.await.unwrap().iter().sum::<usize>(), 70_000);
            }
        });
    }
}
