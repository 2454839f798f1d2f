//! Many who listen to a run's news take no threads. Alone in its program, whose threads it counts.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anchorhood_serve::ServeOptions;

use common::{catalog, visited};

/// Both ends of each are open files of this program, of which some systems allow a thousand.
const LISTENERS: usize = 300;

fn threads() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Threads:"));
    line?.trim().parse().ok()
}

#[test]
fn listeners_take_no_threads() {
    let Some(before) = threads() else {
        anchorhood_testing::skip("this system does not say how many threads there are");
        return;
    };
    let run = tempfile::tempdir().unwrap();
    let metrics = run.path().join("metrics.jsonl");
    std::fs::write(&metrics, "{}\n").unwrap();
    let shelf = catalog(run.path(), vec!["a.png".into()], vec![], vec![1.0, 0.0]);
    let options = ServeOptions { most_connections: 2 * LISTENERS, ..ServeOptions::default() };
    visited(options, shelf, Some(run.path()), None, |address| {
        let listen = || {
            let mut stream = TcpStream::connect(address).unwrap();
            let wait = Some(Duration::from_secs(20));
            stream.set_read_timeout(wait).unwrap();
            let ask = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(ask).unwrap();
            stream
        };
        let all: Vec<TcpStream> = (0..LISTENERS).map(|_| listen()).collect();
        for stream in &all {
            heard(stream, "event: renewed");
        }
        // Half of the connections may listen; the next one is told to come again.
        heard(&listen(), "HTTP/1.1 503");
        // A few looks later.
        std::thread::sleep(Duration::from_millis(1500));
        let more = threads().unwrap() - before;
        assert!(more < 40, "{more} threads more");
        // Everybody hears what is new.
        std::fs::write(&metrics, "{}\n{}\n").unwrap();
        for stream in &all {
            heard(stream, "data: 6");
        }
    });
}

/// Reads until this was said.
fn heard(mut stream: &TcpStream, what: &str) {
    let (mut said, mut some) = (vec![], [0; 256]);
    while !String::from_utf8_lossy(&said).contains(what) {
        let read = stream.read(&mut some).unwrap_or(0);
        assert!(read > 0, "{what:?} is not in {:?}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&some[..read]);
    }
}
