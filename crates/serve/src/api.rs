//! The questions of the page, as JSON. `openapi.json` says the same in a form that programs read.

use std::io::{self, Read, Take};
use std::sync::Arc;
use std::time::Instant;

use anchorhood_curate::Hit;
use anchorhood_evaluate::{Layout, layout};
use anchorhood_report::{Summary, chart_figures, read_metrics};
use anchorhood_search::SearchError;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;

use crate::asked::{Asked, Written};
use crate::catalog::{Shown, Wanted, Whole};
use crate::error::Refusal;
use crate::filter::Filter;
use crate::once::once;
use crate::site::{Contents, Site};

/// Neighbours in one answer, at most.
pub(crate) const MOST_NEIGHBOURS: usize = 500;
/// Pictures in one list, at most.
pub(crate) const MOST_LISTED: usize = 500;
/// Points on the map, at most.
const MOST_ON_MAP: usize = 2000;
/// Bytes of a file that are read at a time.
const PART: u64 = 32 << 10;
pub(crate) type Shared = State<Arc<Site>>;
pub(crate) type Answer = Result<Json<Value>, Refusal>;

/// `GET /api/run`: what is shown here.
pub(crate) async fn run(State(site): Shared) -> Answer {
    let now = site.now();
    let index = &now.shelf.index;
    Ok(Json(json!({
        "name": now.shelf.name,
        "kind": if site.run.is_some() { "run" } else { "index" },
        "pictures": index.len(),
        // Where there is a token others look too, whom the folders of this machine do not concern.
        "folders": site.session.is_none().then(|| now.shelf.folders()),
        "dim": index.parts().dim,
        "recall": index.recall(),
        "classes": now.classes,
        "rounds": now.rounds.iter().map(|r| r.round).collect::<Vec<_>>(),
        "renewals": now.version,
        "indexing": site.indexing.as_ref().map(|indexing| {
            let [done, total] = indexing.now();
            json!({ "done": done, "total": total })
        }),
        "uploads": site.asker.is_some(),
        "largest_upload": site.largest_upload,
        "version": anchorhood_train::VERSION,
    })))
}

/// Which part of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    #[serde(default)]
    from: usize,
    #[serde(default = "part")]
    count: usize,
    /// Every so manyth picture, so that a few stand for all.
    #[serde(default = "one")]
    step: usize,
}

fn part() -> usize {
    60
}

fn one() -> usize {
    1
}

/// `GET /api/pictures`: some pictures in order.
pub(crate) async fn pictures(
    State(site): Shared,
    Asked(part): Asked<Part>,
    Asked(filter): Asked<Filter>,
) -> Answer {
    let now = site.now();
    let turn = site.turn_to_search().await?;
    blocking(turn, move || {
        let index = &now.shelf.index;
        let all = (0..index.len()).filter(|i| filter.passes(index, *i));
        let of = match filter.is_open() {
            true => index.len(),
            false => all.clone().count(),
        };
        let some = all.skip(part.from).step_by(part.step.max(1));
        let some = some.take(part.count.min(MOST_LISTED));
        let some: Vec<Value> = some.map(|i| now.describe(i)).collect();
        Json(json!({ "pictures": some, "of": of }))
    })
    .await
}

/// `GET /api/picture/{id}`: a picture whole.
pub(crate) async fn picture(
    State(site): Shared,
    Written(id): Written,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let now = site.now();
    let i = known(&now, &id)?;
    let turn = site.turn_to_read().await?;
    let whole = blocking(turn, move || {
        let opened = now.shelf.open(i, Wanted::Whole);
        let tag = opened.tag;
        match has(&headers, tag) {
            true => Ok((tag, None)),
            false => opened.whole().map(|whole| (tag, Some(whole))),
        }
    });
    Ok(match whole.await?.map_err(Refusal::missing)? {
        (tag, None) => unchanged(tag),
        (tag, Some(Whole::Made(shown))) => tagged(tag, shown),
        (tag, Some(Whole::File { kind, length, file })) => {
            let length = (header::CONTENT_LENGTH, length.to_string());
            let body = Body::from_stream(read(site.reading.clone(), file));
            ([length, etag(tag)], as_kind(kind), body).into_response()
        }
    })
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

/// How large.
#[derive(Debug, Deserialize)]
pub(crate) struct Side {
    #[serde(default = "side")]
    side: usize,
}

fn side() -> usize {
    128
}

/// `GET /api/picture/{id}/small`: the square in its middle, small.
pub(crate) async fn small(
    State(site): Shared,
    Written(id): Written,
    Asked(side): Asked<Side>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let wanted = Wanted::Square(side.side.clamp(16, 512));
    copy(&site, &id, wanted, headers).await
}

/// How long its longer side may be.
#[derive(Debug, Deserialize)]
pub(crate) struct Longest {
    #[serde(default = "longest")]
    longest: usize,
}

fn longest() -> usize {
    1600
}

/// `GET /api/picture/{id}/large`: all of it, as large as a screen shows it.
pub(crate) async fn large(
    State(site): Shared,
    Written(id): Written,
    Asked(longest): Asked<Longest>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let wanted = Wanted::Fitted(longest.longest.clamp(64, 2048));
    copy(&site, &id, wanted, headers).await
}

/// What a look at a file told: that the browser has this copy, that it is at hand, or that it must
/// be made.
enum Looked {
    Had,
    AtHand(Shown),
    ToBeMade,
}

async fn copy(
    site: &Site,
    id: &str,
    wanted: Wanted,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let now = site.now();
    let i = known(&now, id)?;
    let (turn, there) = (site.turn_to_read().await?, now.clone());
    let look = blocking(turn, move || {
        let opened = there.shelf.open(i, wanted);
        let looked = match has(&headers, opened.tag) {
            true => Looked::Had,
            false => opened.at_hand().map_or(Looked::ToBeMade, Looked::AtHand),
        };
        (opened.tag, looked)
    });
    Ok(match look.await? {
        (tag, Looked::Had) => unchanged(tag),
        (tag, Looked::AtHand(shown)) => tagged(tag, shown),
        (_, Looked::ToBeMade) => {
            let turn = site.turn_to_decode().await?;
            let made = blocking(turn, move || {
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

fn unchanged(tag: u64) -> Response {
    let kept = (header::CACHE_CONTROL, KEPT.to_string());
    (StatusCode::NOT_MODIFIED, [etag(tag), kept]).into_response()
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

/// `GET /api/picture/{id}/attention`: a run's picture under the heat of where its network looks.
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
#[derive(Debug, Deserialize)]
pub(crate) struct ById {
    id: String,
    #[serde(default = "some")]
    k: usize,
}

pub(crate) fn some() -> usize {
    24
}

/// `GET /api/search?id=7`: the neighbours of a picture that is here, itself left out.
pub(crate) async fn search_by_id(
    State(site): Shared,
    Asked(query): Asked<ById>,
    Asked(filter): Asked<Filter>,
) -> Answer {
    let now = site.now();
    let i = known(&now, &query.id)?;
    let begun = Instant::now();
    let k = query.k.clamp(1, MOST_NEIGHBOURS);
    let asked = now.clone();
    let turn = site.turn_to_search().await?;
    let hits = blocking(turn, move || {
        let index = &asked.shelf.index;
        let hits = nearest(&asked, index.vector(i)?, k + 1, &filter)?.into_iter();
        Ok(hits.filter(|h| h.index != i).take(k).collect::<Vec<_>>())
    });
    let hits: Result<_, SearchError> = hits.await?;
    let hits = hits.map_err(|e| Refusal::failed(e.to_string()))?;
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

/// Neighbours in words.
pub(crate) fn told(
    now: &Contents,
    query: Option<usize>,
    hits: Vec<Hit>,
    begun: Instant,
) -> Json<Value> {
    let neighbours: Vec<Value> =
        hits.iter().map(|h| now.describe_similar(h.index, h.similarity)).collect();
    Json(json!({
        "query": query.map(|i| now.describe(i)),
        "neighbours": neighbours,
        "seconds": begun.elapsed().as_secs_f64(),
    }))
}

/// `GET /api/map`: where the pictures lie, alike ones near.
pub(crate) async fn map(State(site): Shared) -> Answer {
    let now = site.now();
    let map = laid_out(&site, &now).await?;
    let points: Vec<Value> = map
        .chosen
        .iter()
        .zip(&map.places)
        .map(|(i, place)| {
            json!([
                i,
                place[0],
                place[1],
                now.shelf.index.parts().classes[*i as usize],
                now.shelf.index.name(*i as usize)
            ])
        })
        .collect();
    Ok(Json(json!({ "points": points, "of": now.shelf.len() })))
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

/// `GET /api/curves`: the run's charts as they are now.
pub(crate) async fn curves(State(site): Shared) -> Answer {
    let metrics = site.run_folder()?.join("metrics.jsonl");
    let turn = site.turn_to_read().await?;
    let drawn = blocking(turn, move || {
        let log = read_metrics(&metrics)?;
        let summary = Summary::of(&log.events);
        let html = chart_figures(&summary)?;
        Ok::<_, anchorhood_report::ReportError>((summary, html, log.left_out))
    });
    let (summary, html, left_out) = drawn.await?.map_err(|e| Refusal::failed(e.to_string()))?;
    Ok(Json(json!({
        "charts": html,
        "table": summary.table(),
        "epochs": summary.epochs.len(),
        "ended": summary.ended.is_some(),
        "last": summary.evaluations.last().map(|e| e.accuracy.top1),
        "warning": left_out.map(|left_out| left_out.to_string()),
    })))
}

/// Work that would keep other requests waiting, on a thread of its own. It goes on when who asked
/// goes away, and has its turn until it ends.
pub(crate) async fn blocking<T: Send + 'static>(
    turn: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
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
