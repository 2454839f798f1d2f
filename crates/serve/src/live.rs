//! What a run does while one looks: its metrics as they grow, as server-sent events. One task looks for everybody; a listener
//! is a place in memory that is woken when there is something to tell, and needs no thread.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::error::Refusal;
use crate::site::Site;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// What there is to tell: the bytes of metrics.jsonl, and how often newer vectors came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct News {
    bytes: u64,
    version: u64,
}

/// Looks until the server stops; then every listener hears the end.
pub(crate) async fn look(site: Arc<Site>, tell: watch::Sender<News>) {
    let (Ok(run), mut stop) = (site.run_folder(), site.stop.clone()) else {
        return;
    };
    let metrics = run.join("metrics.jsonl");
    while !stop.has_come() {
        let news = News {
            bytes: length(&metrics).await,
            version: site.now().version,
        };
        tell.send_if_modified(|old| std::mem::replace(old, news) != news);
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = stop.wait() => {}
        }
    }
}

async fn length(file: &Path) -> u64 {
    tokio::fs::metadata(file).await.map_or(0, |m| m.len())
}

/// A `changed` event, with the bytes of metrics.jsonl, whenever the file has grown (or a resumed run has shortened it), and
/// a `renewed` event, with how often that was, whenever newer vectors are shown. Both come once at the beginning, so that a
/// listener who was away misses nothing.
pub(crate) async fn events(
    State(site): State<Arc<Site>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    site.run_folder()?;
    let place = site.listening.clone().try_acquire_owned();
    let full = |_| Refusal::busy("too many listen to the news of this run; look again in a while");
    let listener = Listener {
        news: site.news.clone(),
        bytes: None,
        version: None,
        _place: place.map_err(full)?,
    };
    let stream = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok(event), listener))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// What one listener has heard of.
struct Listener {
    news: watch::Receiver<News>,
    bytes: Option<u64>,
    version: Option<u64>,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// The next thing to tell; nothing more once the server stops.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let News { bytes, version } = *self.news.borrow_and_update();
            if self.bytes.replace(bytes) != Some(bytes) {
                return Some(Event::default().event("changed").data(bytes.to_string()));
            }
            if self.version.replace(version) != Some(version) {
                return Some(Event::default().event("renewed").data(version.to_string()));
            }
            self.news.changed().await.ok()?;
        }
    }
}
