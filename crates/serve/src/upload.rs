//! Searching by a picture that somebody sends: received within limits, decoded, given to the model,
//! compared with all. What is longer than an upload may be is refused by its header; nothing of it
//! is kept.

use std::time::{Duration, Instant};

use anchorhood_data::{Picture, Squaring};
use axum::body::{Body, BodyDataStream, HttpBody};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use tokio::time::timeout;

use crate::api::{Answer, Nearest, SearchResult, Shared, in_turn, nearest, told};
use crate::asked::Asked;
use crate::budget::Pieces;
use crate::error::{Refusal, Refused};
use crate::filter::Filter;
use crate::openapi::Binary;
use crate::site::Site;

/// For so long, and up to so many times the greatest upload, the rest of one that was refused is
/// taken and thrown away: a sender who is cut off in the midst of it would not hear why.
const HEARING: Duration = Duration::from_secs(5);
const PATIENCE: usize = 8;
/// An upload of which nothing more has come for so long is given up.
const STILL: Duration = Duration::from_secs(20);

/// The neighbours of a picture that is sent.
#[utoipa::path(post, path = "/api/search", params(Nearest, Filter),
    request_body(
        content = inline(Binary),
        content_type = "application/octet-stream",
        description = "The bytes of a JPEG, PNG, WebP, BMP or GIF file, as they are.",
    ),
    responses(
        (status = 200, description = "Most similar first.", body = SearchResult),
        (status = 400, response = Refused),
        (status = 403, response = Refused),
        (status = 408, response = Refused),
        (status = 413, response = Refused),
        (status = 415, response = Refused),
        (status = 501, response = Refused),
        (status = 503, response = Refused),
    )
)]
pub(crate) async fn search_by_upload(
    State(site): Shared,
    Asked(nearby): Asked<Nearest>,
    Asked(filter): Asked<Filter>,
    headers: HeaderMap,
    body: Body,
) -> Answer<SearchResult> {
    let begun = Instant::now();
    let asker = site.asker.as_ref().ok_or_else(without_model)?;
    let mut parts = body.into_data_stream();
    let received = async {
        acceptable(&headers, site.largest_upload)?;
        received(&site, &mut parts).await
    };
    let pieces = match received.await {
        Ok(received) => received,
        Err(refusal) => {
            // Who waits for a word before the body sends none.
            if !headers.contains_key(header::EXPECT) {
                tokio::spawn(throw_away(parts, PATIENCE * site.largest_upload));
            }
            return Err(refusal);
        }
    };
    let (most, by) = (site.most_pixels, asker.squaring());
    // Only those whose turn it is are in one.
    let square = in_turn(&site.decoding, move || {
        let (bytes, held) = pieces.joined();
        decoded(&bytes, most, by).map(|square| (square, held))
    });
    let (square, mut held) = square.await?.map_err(|(code, why)| {
        Refusal(code, format!("this is not a picture that can be used: {why}"))
    })?;
    // What the model is given waits for it, and may be more than what was sent.
    held.shrink(square.len());
    held.hold(square.len()).await?;
    let vector = asker.ask(square).await.map_err(Refusal::failed)?;
    drop(held);
    let k = nearby.count();
    let now = site.now();
    let asked = now.clone();
    let hits = in_turn(&site.searching, move || nearest(&asked, &vector, k, &filter)).await?;
    let hits = hits.map_err(Refusal::failed)?;
    Ok(told(&now, None, hits, begun))
}

fn without_model() -> Refusal {
    Refusal(
        StatusCode::NOT_IMPLEMENTED,
        "pictures cannot be searched by upload, because the index is served without its model; start the server with it".into(),
    )
}

/// Whether an upload is not refused by its header alone.
fn acceptable(headers: &HeaderMap, largest: usize) -> Result<(), Refusal> {
    if is_form(headers) {
        return Err(Refusal(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "this is a form; send the bytes of the picture alone, as `curl --data-binary @picture.jpg` does".into(),
        ));
    }
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|l| l.to_str().ok()?.parse::<u64>().ok());
    match length.is_some_and(|length| length > largest as u64) {
        true => Err(too_large(largest)),
        false => Ok(()),
    }
}

fn too_large(largest: usize) -> Refusal {
    Refusal(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the upload is larger than {} MB; send a smaller picture", largest >> 20),
    )
}

/// What kind of picture it is said to be does not count, since its bytes tell; but a form is none.
fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|k| k.as_bytes().starts_with(b"multipart/"))
}

/// The body, unless it is too large or takes too long.
async fn received(site: &Site, parts: &mut BodyDataStream) -> Result<Pieces, Refusal> {
    let longest = site.longest_upload;
    let collected = timeout(longest, collected(site, parts)).await;
    collected.unwrap_or_else(|_| {
        let sentence = format!("the upload took longer than {} s", longest.as_secs());
        Err(Refusal(StatusCode::REQUEST_TIMEOUT, sentence))
    })
}

async fn collected(site: &Site, parts: &mut BodyDataStream) -> Result<Pieces, Refusal> {
    let largest = site.largest_upload;
    // What was promised is a bound of what comes; without a promise the largest is.
    let promised = parts.size_hint().upper().map_or(largest, |most| most as usize);
    let mut pieces = Pieces::new(&site.uploads, promised.min(largest));
    let still = |_| {
        Refusal(
            StatusCode::REQUEST_TIMEOUT,
            "nothing more of the upload came; send it again".into(),
        )
    };
    while let Some(part) = timeout(STILL, parts.next()).await.map_err(still)? {
        let part = part.map_err(|e| Refusal::bad(format!("the upload broke off: {e}")))?;
        if part.len() > pieces.left() {
            return Err(too_large(largest));
        }
        pieces.add(&part).await?;
    }
    Ok(pieces)
}

/// Takes what still comes, for a while.
async fn throw_away(mut parts: BodyDataStream, mut most: usize) {
    let rest = async {
        while let Some(Ok(part)) = parts.next().await
            && part.len() <= most
        {
            most -= part.len();
        }
    };
    // Whoever sends for longer is cut off.
    let _ = timeout(HEARING, rest).await;
}

/// What the model is given of a picture. Its size is looked at before anything is decoded.
fn decoded(bytes: &[u8], most: u64, by: Squaring) -> Result<Vec<u8>, (StatusCode, String)> {
    let unusable = |why: String| (StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    match Picture::promised(bytes) {
        Some([w, h]) if u64::from(w) * u64::from(h) > most => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("{w}×{h} is more than {} megapixels", most / 1_000_000),
        )),
        _ => {
            let mut square = vec![0; by.bytes()];
            let picture = Picture::from_bytes_for(bytes, by.side()).map_err(unusable)?;
            picture.square_by(by, &mut square).map_err(unusable)?;
            Ok(square)
        }
    }
}
