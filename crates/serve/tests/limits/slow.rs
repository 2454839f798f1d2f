//! Clients that take their time: a header that does not come to its end loses its connection, and
//! nobody else notices.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anchorhood_serve::ServeOptions;

use crate::answer;

const LIMIT: Duration = Duration::from_millis(600);
/// Long past the limit, and still no patience for a test.
const PAST: Duration = Duration::from_millis(2000);
const WHOLE: &str = "GET /api/run HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server that is in a hurry, for as long as `visit` lasts.
fn with_server(visit: impl FnOnce(SocketAddr)) {
    crate::with_server(ServeOptions { longest_header: LIMIT, ..ServeOptions::default() }, visit);
}

fn connected(address: SocketAddr, first: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PAST)).unwrap();
    stream.write_all(first.as_bytes()).unwrap();
    stream
}

/// Everything until the server closes the connection; fails if it does not.
fn rest(mut stream: &TcpStream) -> String {
    let mut said = vec![];
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        // So a close looks when bytes were still on their way to it.
        Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
        Err(e) => panic!("the connection is still open: {e}"),
    }
    String::from_utf8(said).unwrap()
}

#[test]
fn a_header_that_does_not_end_is_not_waited_for() {
    with_server(|address| {
        let begun = Instant::now();
        let silent = connected(address, "");
        let half = connected(address, &WHOLE[..WHOLE.len() - 20]);
        let dripping = connected(address, "GET /api/run HTTP/1.1\r\nX: ");
        let mut drops = &dripping;
        let mut dripped = 0;
        while begun.elapsed() < PAST && drops.write_all(b"x").is_ok() {
            dripped += 1;
            std::thread::sleep(LIMIT / 8);
        }
        assert!(begun.elapsed() < PAST, "{dripped} bytes were taken");
        for stream in [&silent, &half, &dripping] {
            assert_eq!(rest(stream), "", "there was nothing to answer");
        }
        assert!(begun.elapsed() >= LIMIT && dripped > 4, "it waited a while");
    });
}

#[test]
fn whoever_has_asked_is_not_hurried() {
    with_server(|address| {
        // One connection for several questions, each within the limit, all of them beyond it.
        let kept = connected(address, "");
        // News go on while there are any; an upload that moves is not a header.
        let news = connected(address, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let upload = "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\n";
        let upload = connected(address, upload);
        assert!(answer(&news).1.contains("text/event-stream"));
        for _ in 0..8 {
            std::thread::sleep(LIMIT / 4);
            (&kept).write_all(WHOLE.as_bytes()).unwrap();
            let (code, header) = answer(&kept);
            assert_eq!(code, 200, "{header}");
            let length = header.split("content-length: ").nth(1).unwrap();
            let length = length.lines().next().unwrap().parse().unwrap();
            (&kept).read_exact(&mut vec![0; length]).unwrap();
            (&upload).write_all(b"x").unwrap();
        }
        assert_eq!(answer(&upload).0, 415);
        // It has said what there was at the beginning, and is open still.
        news.set_nonblocking(true).unwrap();
        let mut said = vec![];
        let open = (&news).read_to_end(&mut said).unwrap_err();
        assert_eq!(open.kind(), ErrorKind::WouldBlock);
        assert!(String::from_utf8(said).unwrap().contains("changed"));
        // A connection without questions is closed, without a word that a client could take for an
        // answer.
        assert_eq!(rest(&kept), "");
    });
}
