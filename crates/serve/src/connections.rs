//! Connections, from being taken to being closed. There are so many at most; whoever comes later
//! waits in the system's queue until one ends, and none is kept for long by somebody who does not
//! go on:
//!
//! - a client that does not come to the end of its request's header in time loses its connection,
//!   however it spreads the bytes; so does one that asks nothing more, which a browser expects of
//!   any server and answers with a new connection;
//! - an upload has a longest time ([`upload`](crate::upload));
//! - an answer must be taken ([`paced`](crate::paced)).
//!
//! By hyper's own connections: `axum::serve` sets no time for a header.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::Stop;
use crate::paced::{self, Paced};

/// Bytes of a connection that wait to be read or to be sent, at most; a header is not longer.
const BUFFER: usize = 32 << 10;

/// What is allowed to whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub connections: usize,
    pub longest_header: Duration,
}

/// The next connection. What is written to it is sent at once: an answer's last part would
/// otherwise wait for the client to confirm the one before, which clients put off for 40 ms.
async fn accept(listener: &mut TcpListener) -> (TcpStream, SocketAddr) {
    let (stream, address) = Listener::accept(listener).await;
    let _ = stream.set_nodelay(true); // of a connection that is broken already
    (stream, address)
}

/// Takes connections until the word to stop, and ends when the last request under way is answered.
pub(crate) async fn serve(
    mut listener: TcpListener,
    router: Router,
    limits: Limits,
    mut stop: Stop,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.longest_header).max_buf_size(BUFFER);
    let open = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let taken = async {
            let place = places.clone().acquire_owned().await;
            // This one goes on after errors, as when too many files are open.
            (place, accept(&mut listener).await)
        };
        let (place, (stream, _)) = tokio::select! {
            taken = taken => taken,
            () = stop.wait() => break,
        };
        let service = TowerToHyperService::new(router.clone());
        let stream = TokioIo::new(Paced::new(stream, paced::PATIENCE));
        let connection = open.watch(http.serve_connection(stream, service));
        tokio::spawn(async move {
            // A connection that breaks off concerns nobody else.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    open.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_sent_at_once() {
        crate::fixtures::block_on(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap());
            let (_client, (stream, _)) = tokio::join!(client, accept(&mut listener));
            assert!(stream.nodelay().unwrap());
        });
    }
}
