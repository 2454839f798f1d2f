//! What a run does while one looks: its metrics as they grow, as server-sent events. One task looks
//! for everybody; a listener is a place in memory that is woken when there is something to tell,
//! and needs no thread.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::error::{Refusal, Refused};
use crate::growing::IndexingProgress;
use crate::site::Site;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// What there is to tell: the bytes of a run's metrics.jsonl, how often newer vectors came, and how
/// far an indexing is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct News {
    bytes: Option<u64>,
    version: u64,
    indexed: Option<IndexingProgress>,
}

/// Looks until the server stops; then every listener hears the end.
pub(crate) async fn look(site: Arc<Site>, tell: watch::Sender<News>) {
    if has_news(&site).is_err() {
        return;
    }
    let mut stop = site.stop.clone();
    let metrics = site.run.as_ref().map(|run| run.join("metrics.jsonl"));
    while !stop.has_come() {
        let news = News {
            bytes: match &metrics {
                Some(metrics) => Some(length(metrics).await),
                None => None,
            },
            version: site.now().version,
            indexed: site.indexing.as_ref().map(|indexing| indexing.now()),
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

/// Refuses where neither a run nor an indexing has something to tell.
fn has_news(site: &Site) -> Result<(), Refusal> {
    match site.indexing {
        Some(_) => Ok(()),
        None => site.run_folder().map(|_| ()),
    }
}

/// Tells whenever a run has something new.
///
/// Server-sent events named `changed` (the data is the length of metrics.jsonl, which has grown, or
/// was shortened when the run was resumed) and `renewed` (the data is `renewals` of /api/run: a
/// newer checkpoint is shown, or more pictures); of a folder that is indexed also `indexing` (the
/// data is `indexing` of /api/run). Each comes once at the beginning, so that a listener who was
/// away misses nothing.
#[utoipa::path(get, path = "/api/events", responses(
    (status = 200, description = "Events.", body = String, content_type = "text/event-stream"),
    (status = 404, response = Refused),
    (status = 503, response = Refused),
))]
pub(crate) async fn events(
    State(site): State<Arc<Site>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    has_news(&site)?;
    let place = site.listening.clone().try_acquire_owned();
    let full = |_| Refusal::busy("too many listen to the news of this run; look again in a while");
    let listener = Listener { news: site.news.clone(), heard: None, _place: place.map_err(full)? };
    let stream = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok(event), listener))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// What one listener has heard of.
struct Listener {
    news: watch::Receiver<News>,
    /// All of it is told at first.
    heard: Option<News>,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// The next thing to tell; nothing more once the server stops.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let now = *self.news.borrow_and_update();
            if let Some(event) = self.told(now) {
                return Some(event);
            }
            self.news.changed().await.ok()?;
        }
    }

    /// The first thing that is new, which is then heard of.
    fn told(&mut self, now: News) -> Option<Event> {
        let never = News { version: u64::MAX, ..News::default() };
        let heard = self.heard.get_or_insert(never);
        let event = |name: &str, data: String| Some(Event::default().event(name).data(data));
        if heard.bytes != now.bytes {
            heard.bytes = now.bytes;
            return event("changed", now.bytes.unwrap_or(0).to_string());
        }
        if heard.version != now.version {
            heard.version = now.version;
            return event("renewed", now.version.to_string());
        }
        if heard.indexed != now.indexed {
            heard.indexed = now.indexed;
            let told = Event::default().event("indexing");
            return told.json_data(now.indexed.unwrap_or_default()).ok();
        }
        None
    }
}
