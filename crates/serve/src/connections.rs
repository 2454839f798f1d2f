//! Connections, from being taken to being closed. A client that does not come to the end of its request's header in time
//! loses its connection, however it spreads the bytes; so does one that asks nothing more, which a browser expects of any
//! server and answers with a new connection. A request whose header is there is not hurried by this.

use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use crate::Stop;

/// Takes connections until the word to stop, and ends when the last request under way is answered.
pub(crate) async fn serve(
    mut listener: TcpListener,
    router: Router,
    longest_header: Duration,
    mut stop: Stop,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(longest_header);
    let open = GracefulShutdown::new();
    loop {
        let (stream, _) = tokio::select! {
            // This one goes on after errors, as when too many files are open.
            taken = Listener::accept(&mut listener) => taken,
            () = stop.wait() => break,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A connection that breaks off concerns nobody else.
            let _ = connection.await;
        });
    }
    drop(listener);
    open.shutdown().await;
}
