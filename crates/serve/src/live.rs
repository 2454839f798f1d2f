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
use crate::site::Site;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// A `changed` event, with the bytes of metrics.jsonl, whenever the file has grown (or a resumed run has shortened it), and
/// a `renewed` event, with how often that was, whenever newer vectors are shown. Both come once at the beginning, so that a
/// listener who was away misses nothing.
pub(crate) async fn events(
    State(site): State<Arc<Site>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let metrics = site.run_folder()?.join("metrics.jsonl");
    let watch = Watch {
        bytes: None,
        version: None,
        metrics,
        site,
    };
    let stream = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((Ok(event), watch))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// What one listener has heard of.
struct Watch {
    bytes: Option<u64>,
    version: Option<u64>,
    metrics: PathBuf,
    site: Arc<Site>,
}

impl Watch {
    /// The next thing to tell; nothing more once the server stops.
    async fn next(&mut self) -> Option<Event> {
        let mut stop = self.site.stop.clone();
        while !stop.has_come() {
            let bytes = tokio::fs::metadata(&self.metrics).await;
            let bytes = bytes.map_or(0, |m| m.len());
            if self.bytes != Some(bytes) {
                self.bytes = Some(bytes);
                return Some(Event::default().event("changed").data(bytes.to_string()));
            }
            let version = self.site.now().version;
            if self.version != Some(version) {
                self.version = Some(version);
                return Some(Event::default().event("renewed").data(version.to_string()));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = stop.wait() => {}
            }
        }
        None
    }
}
