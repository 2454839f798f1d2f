//! What a run does while one looks: its metrics as they grow, as server-sent events.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};

use crate::error::Refusal;
use crate::server::Site;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// A `changed` event, with the bytes of metrics.jsonl, whenever the file has grown (or a resumed run has shortened it).
pub(crate) async fn events(
    State(site): State<Arc<Site>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let folder = site.run_folder()?;
    let metrics: PathBuf = folder.join("metrics.jsonl");
    let stop = site.stop.clone();
    let seen: Option<u64> = None;
    let stream = stream::unfold(
        (seen, metrics, stop),
        |(seen, metrics, mut stop)| async move {
            loop {
                if stop.has_come() {
                    return None;
                }
                let bytes = tokio::fs::metadata(&metrics).await.map_or(0, |m| m.len());
                if seen != Some(bytes) {
                    let event = Event::default().event("changed").data(bytes.to_string());
                    return Some((Ok(event), (Some(bytes), metrics, stop)));
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = stop.wait() => return None,
                }
            }
        },
    );
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}
