//! A connection whose other end must take what it is sent: where [`ENOUGH`] bytes were not taken
//! within [`PATIENCE`] although there are more, the connection ends. Without this, somebody who
//! asks for a large picture and does not read would hold a connection for ever. One that has
//! nothing to be sent, as a stream of events without news, is not hurried.
//!
//! By hand: hyper sets no time for writing, and `tokio-io-timeout` begins anew with every byte that
//! is taken.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long the other end may take for [`ENOUGH`].
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const ENOUGH: usize = 64 << 10;

/// Watches over what is written to `stream`.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    stream: S,
    patience: Duration,
    /// Set while the other end does not take all at once: when that ends badly, and what was taken
    /// since.
    slow: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S: AsyncWrite + Unpin> Paced<S> {
    pub fn new(stream: S, patience: Duration) -> Self {
        Paced { stream, patience, slow: None }
    }

    /// Writes by `write`, and looks at what came of it.
    fn watched(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let written = write(Pin::new(&mut self.stream), cx);
        match &written {
            Poll::Pending => {
                let patience = self.patience;
                let fresh = || (Box::pin(sleep(patience)), 0);
                let (end, _) = self.slow.get_or_insert_with(fresh);
                ready!(end.as_mut().poll(cx));
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            Poll::Ready(Ok(bytes)) => self.slow = self.slow.take().and_then(|s| later(s, *bytes)),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

/// The same after more bytes were taken; nothing once they are enough.
fn later((end, taken): (Pin<Box<Sleep>>, usize), bytes: usize) -> Option<(Pin<Box<Sleep>>, usize)> {
    let taken = taken + bytes;
    (taken < ENOUGH).then_some((end, taken))
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.watched(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.watched(cx, |stream, cx| stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Asked for when everything was written: nobody is slow any more.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.slow = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::block_on;
    use tokio::net::{TcpListener, TcpStream};

    const SHORT: Duration = Duration::from_millis(200);

    /// Both ends of a connection.
    async fn connection() -> (Paced<TcpStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, server) = tokio::join!(client, listener.accept());
        (Paced::new(server.unwrap().0, SHORT), client.unwrap())
    }

    async fn write(to: &mut Paced<TcpStream>) -> io::Result<usize> {
        let bytes = [0; 8192];
        std::future::poll_fn(|cx| Pin::new(&mut *to).poll_write(cx, &bytes)).await
    }

    #[test]
    fn who_does_not_read_is_left() {
        block_on(async {
            let (mut server, _deaf) = connection().await;
            let begun = std::time::Instant::now();
            let ended = loop {
                if let Err(why) = write(&mut server).await {
                    break why;
                }
            };
            assert_eq!(ended.kind(), ErrorKind::TimedOut);
            assert!(begun.elapsed() >= SHORT);
        });
    }

    #[test]
    fn who_reads_slowly_is_not() {
        block_on(async {
            let (mut server, client) = connection().await;
            let reading = async {
                let mut into = vec![0; 1 << 20];
                loop {
                    sleep(SHORT / 10).await;
                    client.readable().await.unwrap();
                    let _ = client.try_read(&mut into);
                }
            };
            let writing = async {
                let end = std::time::Instant::now() + 4 * SHORT;
                while std::time::Instant::now() < end {
                    write(&mut server).await.unwrap();
                }
                // What comes long after the last is not late.
                std::future::poll_fn(|cx| Pin::new(&mut server).poll_flush(cx)).await.unwrap();
                sleep(2 * SHORT).await;
                write(&mut server).await.unwrap();
            };
            tokio::select! {
                () = writing => {}
                () = reading => {}
            }
        });
    }
}
