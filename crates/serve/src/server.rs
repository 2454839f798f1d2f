//! Listening, routing, stopping.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anchorhood_report::RoundNeighbourhoods;
use axum::http::{StatusCode, header};
use axum::routing::get;
use axum::{Router, middleware};
use socket2::{Domain, Socket, Type};
use tokio::sync::{Semaphore, watch};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::budget::Budget;
use crate::connections::Limits;
use crate::error::Refusal;
use crate::growing::Indexing;
use crate::live::News;
use crate::open_files::room_for;
use crate::session::Session;
use crate::site::{Contents, Site, threads};
use crate::{Asker, Catalog, Renewer, ServeError};
use crate::{api, clusters, connections, duplicates, filter, guard, live, neighbourhoods, openapi};
use crate::{outliers, upload};

/// How long requests may go on after the server was told to stop.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Connections that wait in the system's queue, at most: as many as a crowd that comes at once.
const WAITING: i32 = 1024;
/// Bytes of an answer that the system keeps for a client that reads slowly.
const SENDING: usize = 256 << 10;
/// Threads that read files, beside those that decode and search.
const READERS: usize = 8;

/// Where and to whom.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// What everybody must know, of at least 16 characters ([`draw_token`](crate::draw_token) makes
    /// one); needed where other machines can reach the address.
    pub token: Option<String>,
    /// Whether browsers reach it by https, through a proxy: its cookie is then sent by https alone.
    pub https: bool,
    /// Whether pages of this machine, such as a notebook, may show it in a frame; no other site's
    /// may in any case.
    pub framed: bool,
    /// Bytes of an uploaded picture, at most.
    pub largest_upload: usize,
    /// Bytes of all uploads under way together, at most; never less than one of the largest needs.
    pub uploads_together: usize,
    /// How long an upload may take, from its header to its last byte.
    pub longest_upload: Duration,
    /// Pixels of an uploaded picture, at most.
    pub most_pixels: u64,
    /// How long a connection may take to the end of a request's header, or wait between two
    /// requests.
    pub longest_header: Duration,
    /// Connections at a time, at most; half of them may listen to a run's news.
    pub most_connections: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 4242,
            token: None,
            https: false,
            framed: false,
            largest_upload: 32 << 20,
            uploads_together: 256 << 20,
            longest_upload: Duration::from_secs(120),
            most_pixels: 50_000_000,
            longest_header: Duration::from_secs(30),
            most_connections: 4096,
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
    limits: Limits,
    threads: usize,
    news: watch::Sender<News>,
    site: Site,
}

impl Server {
    /// Takes the port. `run` is the folder of the run whose curves are shown; without an `asker`
    /// uploads are refused.
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
            return Err(ServeError::Open { host: host.to_string() });
        }
        // A token that is none is told of before the port is taken.
        let session =
            |port| options.token.clone().map(|t| Session::new(t, port, options.https)).transpose();
        session(options.port)?;
        let listener = listen(host, options.port)?;
        let address = listener.local_addr()?;
        let threads = threads();
        let connections = room_for(options.most_connections);
        let (tell, news) = watch::channel(News::default());
        Ok(Server {
            address,
            listener,
            limits: Limits { connections, longest_header: options.longest_header },
            threads,
            news: tell,
            site: Site {
                contents: Arc::new(RwLock::new(Arc::new(Contents::new(shelf, rounds, 0)))),
                run,
                asker,
                session: session(address.port())?,
                framed: options.framed,
                uploads: Budget::new(options.uploads_together.max(options.largest_upload)),
                largest_upload: options.largest_upload,
                longest_upload: options.longest_upload,
                most_pixels: options.most_pixels,
                decoding: Arc::new(Semaphore::new(threads)),
                searching: Arc::new(Semaphore::new(threads)),
                computing: Arc::new(Semaphore::new(1)),
                reading: Arc::new(Semaphore::new(READERS)),
                listening: Arc::new(Semaphore::new(connections / 2)),
                news,
                indexing: None,
                stop,
            },
        })
    }

    /// Tells how far an indexing is.
    pub(crate) fn tell_of(&mut self, indexing: Arc<Indexing>) {
        self.site.indexing = Some(indexing);
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
            // One more computes what is kept for all, one looks for news.
            .max_blocking_threads(2 * self.threads + READERS + 2)
            .enable_all()
            .build()?;
        let mut stop = self.site.stop.clone();
        let site = Arc::new(self.site);
        let served = runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            // It takes a few seconds, so it is begun before somebody asks.
            let early = site.clone();
            tokio::spawn(async move { api::laid_out(&early, &early.now()).await.map(|_| ()) });
            tokio::spawn(live::look(site.clone(), self.news));
            tokio::select! {
                () = connections::serve(listener, router(site), self.limits, stop.clone()) => {}
                () = async { stop.wait().await; tokio::time::sleep(LAST_WORDS).await } => {}
            }
            Ok(())
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
        served
    }
}

/// A socket that listens, with room for a crowd.
fn listen(host: IpAddr, port: u16) -> Result<TcpListener, ServeError> {
    let address = SocketAddr::from((host, port));
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        // A server that was just ended leaves connections that the system still remembers.
        #[cfg(unix)]
        socket.set_reuse_address(true)?;
        socket.set_send_buffer_size(SENDING)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(WAITING)?;
        Ok(TcpListener::from(socket))
    };
    open().map_err(|e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AddrInUse => ServeError::Taken { host: host.to_string(), port },
        _ => ServeError::Failed(format!("cannot listen on {host}, port {port}: {e}")),
    })
}

/// All that is under /api, and its description: nothing there goes without.
pub(crate) fn described() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::with_openapi(openapi::about())
        .routes(routes!(openapi::document))
        .routes(routes!(api::run))
        .routes(routes!(api::pictures))
        .routes(routes!(api::picture))
        .routes(routes!(api::small))
        .routes(routes!(api::large))
        .routes(routes!(api::attention))
        .routes(routes!(api::search_by_id, upload::search_by_upload))
        .routes(routes!(neighbourhoods::neighbourhoods))
        .routes(routes!(filter::filters))
        .routes(routes!(clusters::clusters))
        .routes(routes!(clusters::cluster))
        .routes(routes!(duplicates::duplicates))
        .routes(routes!(outliers::outliers))
        .routes(routes!(api::map))
        .routes(routes!(api::curves))
        .routes(routes!(live::events))
}

fn router(site: Arc<Site>) -> Router {
    let text = |kind: &'static str, body: &'static str| {
        get(move || async move {
            ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], body)
        })
    };
    Router::new()
        .route("/", text("text/html; charset=utf-8", include_str!("page/index.html")))
        .route("/style.css", text("text/css", anchorhood_report::STYLE))
        .route("/app.css", text("text/css", include_str!("page/app.css")))
        .route("/map.js", text("text/javascript", anchorhood_report::MAP_SCRIPT))
        .route("/app.js", text("text/javascript", include_str!("page/app.js")))
        .route("/selection.js", text("text/javascript", include_str!("page/selection.js")))
        .route("/lightbox.js", text("text/javascript", include_str!("page/lightbox.js")))
        .route("/views.js", text("text/javascript", include_str!("page/views.js")))
        .merge(described().split_for_parts().0)
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
