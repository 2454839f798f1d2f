//! Listening, routing, stopping.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anchorhood_report::RoundNeighbourhoods;
use axum::http::{StatusCode, header};
use axum::routing::get;
use axum::{Router, middleware};
use tokio::sync::{Semaphore, watch};

use crate::error::Refusal;
use crate::neighbourhoods::neighbourhoods;
use crate::site::{Contents, Site};
use crate::{Asker, Catalog, Renewer, ServeError, api, connections, guard, live, upload};

/// How long requests may go on after the server was told to stop.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Where and to whom.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// What everybody must know; needed where other machines can reach the address.
    pub token: Option<String>,
    /// Bytes of an uploaded picture, at most.
    pub largest_upload: usize,
    /// Pixels of an uploaded picture, at most.
    pub most_pixels: u64,
    /// How long a connection may take to the end of a request's header, or wait between two requests.
    pub longest_header: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 4242,
            token: None,
            largest_upload: 32 << 20,
            most_pixels: 50_000_000,
            longest_header: Duration::from_secs(30),
        }
    }
}

/// Tells a server to stop; copies tell the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>, Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        let (send, receive) = watch::channel(false);
        Stop(receive, Arc::new(send))
    }
}

impl Stop {
    /// Asks for the end.
    pub fn now(&self) {
        self.1.send_replace(true);
    }

    pub(crate) fn has_come(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn wait(&mut self) {
        // The sender lives in `self`, so waiting ends by its word alone.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// A server that has its port and does not listen yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    longest_header: Duration,
    site: Site,
}

impl Server {
    /// Takes the port. `run` is the folder of the run whose curves are shown; without an `asker` uploads are refused.
    pub fn bind(
        options: &ServeOptions,
        shelf: Catalog,
        rounds: Vec<RoundNeighbourhoods>,
        run: Option<PathBuf>,
        asker: Option<Asker>,
        stop: Stop,
    ) -> Result<Server, ServeError> {
        let host = options.host;
        if !host.is_loopback() && options.token.is_none() {
            return Err(ServeError::Open {
                host: host.to_string(),
            });
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let typed = |t: &String| t.len() >= 8 && t.chars().all(plain);
        if options.token.as_ref().is_some_and(|t| !typed(t)) {
            return Err(ServeError::BadToken);
        }
        let (name, port) = (host.to_string(), options.port);
        let listener = TcpListener::bind((host, port)).map_err(|e| match e.kind() {
            std::io::ErrorKind::AddrInUse => ServeError::Taken { host: name, port },
            _ => ServeError::Listen {
                host: name,
                port,
                reason: e.to_string(),
            },
        })?;
        listener.set_nonblocking(true)?;
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Server {
            address: listener.local_addr()?,
            listener,
            longest_header: options.longest_header,
            site: Site {
                contents: Arc::new(RwLock::new(Arc::new(Contents::new(shelf, rounds, 0)))),
                run,
                asker,
                token: options.token.clone(),
                largest_upload: options.largest_upload,
                most_pixels: options.most_pixels,
                decoding: Semaphore::new(threads),
                searching: Semaphore::new(threads),
                stop,
            },
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What can replace the pictures' vectors while it serves.
    pub fn renewer(&self) -> Renewer {
        Renewer(self.site.contents.clone())
    }

    /// Serves until it is told to stop; requests under way are finished, within reason.
    pub fn run(self) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let mut stop = self.site.stop.clone();
        let site = Arc::new(self.site);
        let served = runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            // It takes a few seconds, so it is begun before somebody asks.
            let early = site.clone();
            tokio::task::spawn_blocking(move || {
                api::laid_out(&early.now());
            });
            tokio::select! {
                () = connections::serve(listener, router(site), self.longest_header, stop.clone()) => {}
                () = async { stop.wait().await; tokio::time::sleep(LAST_WORDS).await } => {}
            }
            Ok(())
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
        served
    }
}

pub(crate) fn router(site: Arc<Site>) -> Router {
    let text = |kind: &'static str, body: &'static str| {
        get(move || async move {
            (
                [
                    (header::CONTENT_TYPE, kind),
                    (header::CACHE_CONTROL, "no-cache"),
                ],
                body,
            )
        })
    };
    Router::new()
        .route(
            "/",
            text("text/html; charset=utf-8", include_str!("page/index.html")),
        )
        .route("/style.css", text("text/css", anchorhood_report::STYLE))
        .route("/app.css", text("text/css", include_str!("page/app.css")))
        .route(
            "/map.js",
            text("text/javascript", anchorhood_report::MAP_SCRIPT),
        )
        .route(
            "/app.js",
            text("text/javascript", include_str!("page/app.js")),
        )
        .route(
            "/api/openapi.json",
            text("application/json", include_str!("openapi.json")),
        )
        .route("/api/run", get(api::run))
        .route("/api/pictures", get(api::pictures))
        .route("/api/picture/{id}", get(api::picture))
        .route("/api/picture/{id}/small", get(api::small))
        .route("/api/picture/{id}/attention", get(api::attention))
        .route(
            "/api/search",
            get(api::search_by_id).post(upload::search_by_upload),
        )
        .route("/api/neighbourhoods", get(neighbourhoods))
        .route("/api/map", get(api::map))
        .route("/api/curves", get(api::curves))
        .route("/api/events", get(live::events))
        .fallback(|| async {
            Refusal::missing(
                "there is nothing here; / is the page, /api/openapi.json lists the rest",
            )
        })
        .method_not_allowed_fallback(|| async {
            Refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                "this cannot be asked in this way; /api/openapi.json says how".into(),
            )
        })
        .layer(middleware::from_fn_with_state(site.clone(), guard::guard))
        .with_state(site)
}
