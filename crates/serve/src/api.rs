//! The questions of the page, as JSON. `openapi.json` says the same in a form that programs read.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Instant;

use anchorhood_data::Picture;
use anchorhood_report::{Layout, Summary, chart_figures, layout, read_metrics};
use anchorhood_search::Hit;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use image::ImageReader;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Refusal;
use crate::shelf::Shown;
use crate::site::{Contents, Site};

/// Neighbours in one answer, at most.
const MOST_NEIGHBOURS: usize = 500;
/// Pictures in one list, at most.
const MOST_LISTED: usize = 500;
/// Points on the map, at most.
const MOST_ON_MAP: usize = 2000;
/// So many times the greatest upload is read and thrown away, so that its sender hears the refusal.
const PATIENCE: usize = 8;

type Shared = State<Arc<Site>>;
type Answer = Result<Json<Value>, Refusal>;

/// `GET /api/run`: what is shown here.
pub(crate) async fn run(State(site): Shared) -> Answer {
    let now = site.now();
    let index = &now.shelf.index;
    Ok(Json(json!({
        "name": now.shelf.name,
        "kind": if site.run.is_some() { "run" } else { "index" },
        "pictures": index.len(),
        "dim": index.parts().dim,
        "recall": index.recall(),
        "classes": now.classes,
        "rounds": now.rounds.iter().map(|r| r.found.round).collect::<Vec<_>>(),
        "renewals": now.version,
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
pub(crate) async fn pictures(State(site): Shared, Query(part): Query<Part>) -> Answer {
    let now = site.now();
    let n = now.shelf.len();
    let all = (part.from.min(n)..n).step_by(part.step.max(1));
    let some: Vec<Value> = all
        .take(part.count.min(MOST_LISTED))
        .map(|i| now.describe(i))
        .collect();
    Ok(Json(json!({ "pictures": some, "of": n })))
}

/// `GET /api/picture/{id}`: a picture whole.
pub(crate) async fn picture(
    State(site): Shared,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let now = site.now();
    let i = known(&now, &id)?;
    let shown = blocking(move || now.shelf.whole(i)).await?;
    shown.map(sent).map_err(Refusal::missing)
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

/// `GET /api/picture/{id}/small`: a small square copy.
pub(crate) async fn small(
    State(site): Shared,
    Path(id): Path<String>,
    Query(side): Query<Side>,
) -> Result<Response, Refusal> {
    let now = site.now();
    let i = known(&now, &id)?;
    let side = side.side.clamp(16, 512);
    if let Some(shown) = now.shelf.small_at_hand(i, side) {
        return Ok(sent(shown));
    }
    let _turn = site.turn().await?;
    let shown = blocking(move || now.shelf.small(i, side)).await?;
    shown.map(sent).map_err(Refusal::missing)
}

fn sent(shown: Shown) -> Response {
    let headers = [
        (header::CONTENT_TYPE, shown.kind),
        (header::CACHE_CONTROL, "private, max-age=600"),
    ];
    (headers, Bytes::from_owner(shown.bytes)).into_response()
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
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let i = known(&site.now(), &id)?;
    site.run_folder()?;
    let none = || Refusal::missing("there is no model to ask");
    let looked = site.asker.as_ref().ok_or_else(none)?.look(i).await;
    let bytes = looked.map_err(Refusal::failed)?;
    Ok(sent(Shown {
        kind: "image/png",
        bytes: bytes.into(),
    }))
}

/// By which picture.
#[derive(Debug, Deserialize)]
pub(crate) struct ById {
    id: String,
    #[serde(default = "some")]
    k: usize,
}

/// How many.
#[derive(Debug, Deserialize)]
pub(crate) struct HowMany {
    #[serde(default = "some")]
    k: usize,
}

fn some() -> usize {
    24
}

/// `GET /api/search?id=7`: the neighbours of a picture that is here, itself left out.
pub(crate) async fn search_by_id(State(site): Shared, Query(query): Query<ById>) -> Answer {
    let now = site.now();
    let i = known(&now, &query.id)?;
    let begun = Instant::now();
    let k = query.k.clamp(1, MOST_NEIGHBOURS);
    let asked = now.clone();
    let hits = blocking(move || {
        let index = &asked.shelf.index;
        let hits = index.nearest(index.vector(i), k + 1).into_iter();
        hits.filter(|h| h.index != i).take(k).collect::<Vec<_>>()
    });
    Ok(told(&now, Some(i), hits.await?, begun))
}

/// `POST /api/search`: the neighbours of a picture that is sent as the body.
pub(crate) async fn search_by_upload(
    State(site): Shared,
    Query(query): Query<HowMany>,
    body: Body,
) -> Answer {
    let begun = Instant::now();
    let asker = site.asker.as_ref().ok_or_else(|| {
        Refusal(
            StatusCode::NOT_IMPLEMENTED,
            "pictures cannot be searched by upload, because the index is served without its model; start the server with --model".into(),
        )
    })?;
    let bytes = received(body, site.largest_upload).await?;
    let (most, size) = (site.most_pixels, asker.size());
    let square = {
        let _turn = site.turn().await?;
        blocking(move || decoded(&bytes, most, size)).await?
    };
    let square = square.map_err(|(code, why)| {
        Refusal(
            code,
            format!("this is not a picture that can be used: {why}"),
        )
    })?;
    let vector = asker.ask(square).await.map_err(Refusal::failed)?;
    let k = query.k.clamp(1, MOST_NEIGHBOURS);
    let now = site.now();
    let asked = now.clone();
    let hits = blocking(move || asked.shelf.index.nearest(&vector, k)).await?;
    Ok(told(&now, None, hits, begun))
}

/// The body, unless it is too large.
async fn received(body: Body, largest: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![];
    let mut length = 0;
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|e| Refusal::bad(format!("the upload broke off: {e}")))?;
        length += part.len();
        match length <= largest {
            true => bytes.extend_from_slice(&part),
            false => bytes.clear(),
        }
        if length / PATIENCE > largest {
            break;
        }
    }
    if length > largest {
        return Err(Refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the upload is larger than {} MB; send a smaller picture",
                largest >> 20
            ),
        ));
    }
    Ok(bytes)
}

/// What the model is given of a picture. Its size is looked at before anything is decoded.
fn decoded(bytes: &[u8], most: u64, size: usize) -> Result<Vec<u8>, (StatusCode, String)> {
    let unusable = |why: String| (StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let dimensions = reader.ok().and_then(|r| r.into_dimensions().ok());
    match dimensions {
        Some((w, h)) if u64::from(w) * u64::from(h) > most => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("{w}×{h} is more than {} megapixels", most / 1_000_000),
        )),
        _ => {
            let mut square = vec![0; size * size * 3];
            let picture = Picture::from_bytes(bytes).map_err(unusable)?;
            picture.square(size, &mut square).map_err(unusable)?;
            Ok(square)
        }
    }
}

fn told(now: &Contents, query: Option<usize>, hits: Vec<Hit>, begun: Instant) -> Json<Value> {
    let neighbours: Vec<Value> = hits
        .iter()
        .map(|h| {
            let mut told = now.describe(h.index);
            told["similarity"] = json!(h.similarity);
            told
        })
        .collect();
    Json(json!({
        "query": query.map(|i| now.describe(i)),
        "neighbours": neighbours,
        "seconds": begun.elapsed().as_secs_f64(),
    }))
}

/// `GET /api/map`: where the pictures lie, alike ones near.
pub(crate) async fn map(State(site): Shared) -> Answer {
    let now = site.now();
    let asked = now.clone();
    let map = blocking(move || laid_out(&asked).clone()).await?;
    let points: Vec<Value> = map
        .chosen
        .iter()
        .zip(&map.places)
        .map(|(i, place)| {
            json!([
                i,
                place[0],
                place[1],
                now.shelf.index.parts().classes[*i as usize]
            ])
        })
        .collect();
    Ok(Json(json!({ "points": points, "of": now.shelf.len() })))
}

/// The map, made once.
pub(crate) fn laid_out(now: &Contents) -> &Layout {
    let parts = now.shelf.index.parts();
    let make = || layout(&parts.vectors, parts.dim, MOST_ON_MAP);
    now.map.get_or_init(make)
}

/// `GET /api/curves`: the run's charts as they are now.
pub(crate) async fn curves(State(site): Shared) -> Answer {
    let metrics = site.run_folder()?.join("metrics.jsonl");
    let drawn = blocking(move || {
        let summary = Summary::of(&read_metrics(&metrics)?);
        let html = chart_figures(&summary)?;
        Ok::<_, anchorhood_report::ReportError>((summary, html))
    });
    let (summary, html) = drawn.await?.map_err(|e| Refusal::failed(e.to_string()))?;
    Ok(Json(json!({
        "charts": html,
        "table": summary.table(),
        "epochs": summary.epochs.len(),
        "ended": summary.ended.is_some(),
        "last": summary.evaluations.last().map(|e| e.accuracy.top1),
    })))
}

/// Work that would keep other requests waiting, on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Refusal::failed("this request failed inside the server; others go on"))
}
