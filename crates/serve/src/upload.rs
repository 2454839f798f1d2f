//! Searching by a picture that somebody sends: received within limits, decoded, given to the model, compared with all.

use std::io::Cursor;
use std::time::{Duration, Instant};

use anchorhood_data::Picture;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use image::ImageReader;
use serde::Deserialize;
use tokio::time::timeout;

use crate::api::{self, Answer, Shared, blocking, told};
use crate::asked::Asked;
use crate::error::Refusal;

/// So many times the greatest upload is read and thrown away, so that its sender hears the refusal.
const PATIENCE: usize = 8;
/// An upload of which nothing more has come for so long is given up.
const STILL: Duration = Duration::from_secs(20);

/// How many.
#[derive(Debug, Deserialize)]
pub(crate) struct HowMany {
    #[serde(default = "api::some")]
    k: usize,
}

/// `POST /api/search`: the neighbours of a picture that is sent as the body.
pub(crate) async fn search_by_upload(
    State(site): Shared,
    Asked(query): Asked<HowMany>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let begun = Instant::now();
    let asker = site.asker.as_ref().ok_or_else(|| {
        Refusal(
            StatusCode::NOT_IMPLEMENTED,
            "pictures cannot be searched by upload, because the index is served without its model; start the server with it".into(),
        )
    })?;
    if is_form(&headers) {
        return Err(Refusal(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "this is a form; send the bytes of the picture alone, as `curl --data-binary @picture.jpg` does".into(),
        ));
    }
    let bytes = received(body, site.largest_upload).await?;
    let (most, size) = (site.most_pixels, asker.size());
    let square = {
        let _turn = site.turn_to_decode().await?;
        blocking(move || decoded(&bytes, most, size)).await?
    };
    let square = square.map_err(|(code, why)| {
        Refusal(
            code,
            format!("this is not a picture that can be used: {why}"),
        )
    })?;
    let vector = asker.ask(square).await.map_err(Refusal::failed)?;
    let k = query.k.clamp(1, api::MOST_NEIGHBOURS);
    let now = site.now();
    let asked = now.clone();
    let _turn = site.turn_to_search().await?;
    let hits = blocking(move || asked.shelf.index.nearest(&vector, k)).await?;
    let hits = hits.map_err(|e| Refusal::failed(e.to_string()))?;
    Ok(told(&now, None, hits, begun))
}

/// What kind of picture it is said to be does not count, since its bytes tell; but a form is none.
fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|k| k.as_bytes().starts_with(b"multipart/"))
}

/// The body, unless it is too large.
async fn received(body: Body, largest: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![];
    let mut length = 0;
    let mut parts = body.into_data_stream();
    let still = |_| {
        Refusal(
            StatusCode::REQUEST_TIMEOUT,
            "nothing more of the upload came; send it again".into(),
        )
    };
    while let Some(part) = timeout(STILL, parts.next()).await.map_err(still)? {
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
