//! Requests, over a connection to a server of three pictures; those that show a token go to one that asks for it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use anchorhood_data::{encode_jpeg, encode_png};
use anchorhood_discover::Neighbourhoods;
use anchorhood_report::RoundNeighbourhoods;
use anchorhood_search::{IndexParts, PictureIndex};
use anchorhood_serve::{Catalog, ServeOptions, Server, Stop, inference_queue};
use socket2::SockRef;
use tempfile::TempDir;

use crate::{Target, repair};

pub const TARGET: Target = Target {
    name: "http",
    read,
    repair: repair::request,
    seeds,
};

const SIDE: u32 = 8;
/// What a request that is answered is answered in; others are told that nothing more comes.
const SOON: Duration = Duration::from_millis(5);
const HANGS: Duration = Duration::from_secs(20);

/// A request is answered, or its connection is closed once it can no longer come to its end; and no answer is that of a
/// request that failed inside the server.
fn read(bytes: &[u8]) {
    let mut stream =
        TcpStream::connect(server(shows_token(bytes))).expect("the server takes connections");
    // A connection leaves nothing behind: there are more requests than ports.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    let _ = stream.set_nodelay(true);
    // It may be closed before all is sent.
    let _ = stream.write_all(bytes);
    let mut answer = [0; 4096];
    let length = match received(&mut stream, &mut answer, SOON) {
        Some(length) => length,
        None => {
            let _ = stream.shutdown(Shutdown::Write);
            let length = received(&mut stream, &mut answer, HANGS);
            length.expect("the server neither answers nor closes the connection")
        }
    };
    let answer = String::from_utf8_lossy(&answer[..length]);
    assert!(length == 0 || answer.starts_with("HTTP/1."), "{answer}");
    assert!(!answer.contains("failed inside the server"), "{answer}");
}

/// How many bytes came, 0 where the connection is closed, nothing where none came in time.
fn received(stream: &mut TcpStream, answer: &mut [u8], within: Duration) -> Option<usize> {
    let _ = stream.set_read_timeout(Some(within));
    match stream.read(answer) {
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        read => Some(read.unwrap_or(0)),
    }
}

const TOKEN: &str = "open-sesame";

fn shows_token(request: &[u8]) -> bool {
    let has = |what: &str| request.windows(what.len()).any(|w| w == what.as_bytes());
    has("token=") || has("Authorization") || has("Cookie")
}

/// Where the server listens, with a token or without; it serves until the process ends.
fn server(token: bool) -> SocketAddr {
    static ADDRESSES: [OnceLock<SocketAddr>; 2] = [const { OnceLock::new() }; 2];
    *ADDRESSES[usize::from(token)].get_or_init(|| {
        // Kept for as long as the server reads there.
        let folder = Box::leak(Box::new(TempDir::new().expect("a folder")));
        let (asker, queue) = inference_queue(SIDE as usize);
        let options = ServeOptions {
            port: 0,
            token: token.then(|| TOKEN.into()),
            ..ServeOptions::default()
        };
        let entropy = vec![0.5, 0.25, 1.0];
        let anchors = vec![true, false, true];
        let found = Neighbourhoods::from_parts(1, vec![1, 2, 0], anchors, entropy);
        let found = found.expect("a neighbour of each");
        let rounds = vec![RoundNeighbourhoods { round: 1, found }];
        let run = Some(folder.path().to_path_buf());
        let shelf = shelf(folder.path());
        let server = Server::bind(&options, shelf, rounds, run, Some(asker), Stop::default());
        let server = server.expect("a free port");
        let address = server.address();
        let square = (SIDE * SIDE * 3) as usize;
        std::thread::spawn(move || {
            let embed = |squares: &[u8]| Ok([1.0, 0.0].repeat(squares.len() / square));
            queue.answer(4, embed, |_| Err("there is no network".into()))
        });
        std::thread::spawn(move || server.run());
        address
    })
}

fn pixels() -> Vec<u8> {
    (0..SIDE * SIDE * 3).map(|p| p as u8).collect()
}

fn shelf(folder: &Path) -> Catalog {
    let png = encode_png(SIDE, SIDE, &pixels()).expect("a picture");
    let jpeg = encode_jpeg(SIDE, SIDE, &pixels(), 90).expect("a picture");
    for (name, bytes) in [("a.png", &png[..]), ("b.jpg", &jpeg), ("c.png", b"none")] {
        std::fs::write(folder.join(name), bytes).expect("a file");
    }
    let metrics = "{\"event\":\"round_started\",\"round\":0,\"rounds\":2}\n";
    std::fs::write(folder.join("metrics.jsonl"), metrics).expect("a file");
    let parts = IndexParts {
        folder: folder.into(),
        names: ["a.png", "b.jpg", "c.png"].map(String::from).into(),
        classes: vec![None, Some("x".into()), None],
        dim: 2,
        vectors: vec![1.0, 0.0, 0.6, 0.8, 0.0, -1.0].into(),
        ..IndexParts::default()
    };
    let index = PictureIndex::from_parts(Path::new("a.index"), parts).expect("its parts fit");
    Catalog::of_index("three".into(), index, None).expect("its pictures are there")
}

fn seeds() -> Vec<Vec<u8>> {
    let asked = [
        "/",
        "/style.css",
        "/api/openapi.json",
        "/api/run",
        "/api/pictures?from=1&count=2&step=1",
        "/api/picture/0",
        "/api/picture/2",
        "/api/picture/1/small?side=64",
        "/api/picture/1/attention",
        "/api/search?id=1&k=2",
        "/api/neighbourhoods?round=1&at=0.5&count=3",
        "/api/map",
        "/api/curves",
        "/api/events",
    ];
    let get =
        |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost:80\r\n\r\n").into_bytes();
    let mut seeds: Vec<Vec<u8>> = asked.into_iter().map(get).collect();
    seeds.push(upload(
        "",
        &encode_png(SIDE, SIDE, &pixels()).expect("a picture"),
    ));
    seeds.push(upload("Content-Type: multipart/form-data\r\n", b"--a"));
    seeds.push(upload(
        "Origin: http://elsewhere\r\nSec-Fetch-Site: cross-site\r\n",
        b"x",
    ));
    let chunked = b"POST /api/search?k=2 HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    seeds.push(chunked.to_vec());
    let shown = [
        format!("/api/run?a=b&token={TOKEN} HTTP/1.1\r\n"),
        format!("/api/run HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n"),
        "/api/run HTTP/1.1\r\nCookie: a=b; anchorhood_80=0\r\n".into(),
    ];
    let get = |rest: &String| format!("GET {rest}Host: localhost\r\n\r\n").into_bytes();
    seeds.extend(shown.iter().map(get));
    seeds
}

fn upload(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /api/search?k=2 HTTP/1.1\r\nHost: [::1]:80\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
