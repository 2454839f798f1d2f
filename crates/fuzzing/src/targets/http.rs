//! Requests, over a connection to a server of a few pictures, while newer checkpoints come.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use anchorhood_data::{Pictures, Split, encode_jpeg, encode_png};
use anchorhood_index::{IndexParts, IndexedFolder, PictureIndex, Thumbnails};
use anchorhood_report::RoundNeighbourhoods;
use anchorhood_serve::{Catalog, ServeOptions, Server, Stop, inference_queue};
use anchorhood_train::discovery::Neighbourhoods;
use socket2::SockRef;
use tempfile::TempDir;

use super::unpack::tar_of;

const SIDE: u32 = 8;
/// What a request that is answered is answered in; others are told that nothing more comes.
const SOON: Duration = Duration::from_millis(5);
const HANGS: Duration = Duration::from_secs(20);

/// A request is answered, or its connection is closed once it can no longer come to its end; and no
/// answer is that of a request that failed inside the server.
pub fn read(bytes: &[u8]) -> Option<()> {
    let mut stream =
        TcpStream::connect(server(Shows::by(bytes))).expect("the server takes connections");
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
    if length == answer.len() {
        // There is more of it, which is taken slowly, or not at all.
        let _ = received(&mut stream, &mut vec![0; 1 << 20], SOON);
    }
    let answer = String::from_utf8_lossy(&answer[..length]);
    assert!(length == 0 || answer.starts_with("HTTP/1."), "{answer}");
    assert!(!answer.contains("failed inside the server"), "{answer}");
    Some(())
}

/// How many bytes came, 0 where the connection is closed, nothing where none came in time.
fn received(stream: &mut TcpStream, answer: &mut [u8], within: Duration) -> Option<usize> {
    let _ = stream.set_read_timeout(Some(within));
    match stream.read(answer) {
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        read => Some(read.unwrap_or(0)),
    }
}

const TOKEN: &str = "open-sesame-open";

fn shows_token(request: &[u8]) -> bool {
    let has = |what: &str| request.windows(what.len()).any(|w| w == what.as_bytes());
    has("token=") || has("Authorization") || has("Cookie")
}

/// What a request is sent to: a server of an index, one of a run, and one of a run that asks for a
/// token.
#[derive(Clone, Copy)]
enum Shows {
    Index,
    Run,
    RunWithToken,
}

impl Shows {
    fn by(request: &[u8]) -> Shows {
        match (shows_token(request), request.len() % 2) {
            (true, _) => Shows::RunWithToken,
            (false, 0) => Shows::Index,
            (false, _) => Shows::Run,
        }
    }
}

/// Where a server listens; it serves until the process ends, and what it shows is replaced again
/// and again.
fn server(shows: Shows) -> SocketAddr {
    static ADDRESSES: [OnceLock<SocketAddr>; 3] = [const { OnceLock::new() }; 3];
    *ADDRESSES[shows as usize].get_or_init(|| {
        // Kept for as long as the server reads there.
        let folder = Box::leak(Box::new(TempDir::new().expect("a folder"))).path();
        fill(folder);
        let (catalog, run, token): (fn(&Path) -> Catalog, _, _) = match shows {
            Shows::Index => (of_index, None, None),
            Shows::Run => (of_run, Some(folder.to_path_buf()), None),
            Shows::RunWithToken => (of_run, Some(folder.to_path_buf()), Some(TOKEN.into())),
        };
        let (asker, queue) = inference_queue(SIDE as usize);
        let options = ServeOptions { port: 0, token, ..ServeOptions::default() };
        let (catalog_now, stop) = (catalog(folder), Stop::default());
        let server = Server::bind(&options, catalog_now, rounds(), run, Some(asker), stop);
        let server = server.expect("a free port");
        let (address, renewer) = (server.address(), server.renewer());
        let square = (SIDE * SIDE * 3) as usize;
        std::thread::spawn(move || {
            let embed = |squares: &[u8]| Ok([1.0, 0.0].repeat(squares.len() / square));
            queue.answer(4, embed, |_| Err("there is no network".into()))
        });
        std::thread::spawn(move || server.run());
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(RENEWED);
                let renewed = renewer.renew(catalog(folder), rounds());
                renewed.expect("there are as many pictures");
            }
        });
        address
    })
}

/// How often a newer checkpoint comes.
const RENEWED: Duration = Duration::from_millis(100);

fn rounds() -> Vec<RoundNeighbourhoods> {
    let entropy = vec![0.5, 0.25, 1.0];
    let anchors = vec![true, false, true];
    let found = Neighbourhoods::from_parts(1, vec![1, 2, 0], anchors, entropy);
    let found = found.expect("a neighbour of each");
    vec![RoundNeighbourhoods { round: 1, found }]
}

fn pixels() -> Vec<u8> {
    (0..SIDE * SIDE * 3).map(|p| p as u8).collect()
}

/// The pictures of an index, and a run's metrics.
fn fill(folder: &Path) {
    let png = encode_png(SIDE, SIDE, &pixels()).expect("a picture");
    let jpeg = encode_jpeg(SIDE, SIDE, &pixels(), 90).expect("a picture");
    // More than the system keeps for a client that does not read.
    let long = [&png[..], &vec![0; 4 << 20]].concat();
    let metrics = b"{\"event\":\"round_started\",\"round\":0,\"rounds\":2}\nno event\n";
    for (name, bytes) in [
        ("a.png", &png[..]),
        ("b.jpg", &jpeg),
        ("none.png", b"no picture"),
        ("long.png", &long),
        ("a.gif", b"GIF89a"),
        ("a.bmp", b"BM"),
        ("a.webp", b"RIFF\0\0\0\0WEBP"),
        ("unlisted.png", &png),
        ("metrics.jsonl", metrics),
        ("shard.tar", &tar_of(&[("sub/a.png", &png)])),
    ] {
        std::fs::write(folder.join(name), bytes).expect("a file");
    }
    #[cfg(unix)]
    for (to, link) in [("a.png", "link.png"), ("unlisted.png", "out.png")] {
        std::os::unix::fs::symlink(to, folder.join(link)).expect("a link");
    }
}

const NAMES: [&str; 13] = [
    "a.png",
    "b.jpg",
    "none.png",
    "long.png",
    "a.gif",
    "a.bmp",
    "a.webp",
    "link.png",
    "out.png",
    "../out.png",
    "gone.png",
    "shard.tar/sub/a.png",
    "shard.tar/gone.png",
];

fn of_index(folder: &Path) -> Catalog {
    let mut thumbnails = Thumbnails::default();
    let jpeg = encode_jpeg(SIDE, SIDE, &pixels(), 90).expect("a picture");
    let small = [&jpeg[..], b"", b"no picture"].into_iter().chain([&b""[..]; 10]);
    small.for_each(|bytes| thumbnails.push(bytes));
    let class = |i: usize| (i % 2 == 1).then(|| format!("class {i}"));
    let parts = IndexParts {
        folders: vec![IndexedFolder::alone(folder)],
        names: NAMES.map(String::from).into(),
        classes: (0..NAMES.len()).map(class).collect(),
        dim: 2,
        vectors: [0.6, 0.8].repeat(NAMES.len()).into(),
        thumbnails: Some(thumbnails),
        ..IndexParts::default()
    };
    let index = PictureIndex::from_parts(Path::new("a.index"), parts).expect("its parts fit");
    let folder = Some(folder); // as by `--folder`
    Catalog::of_index("some".into(), index, folder).expect("its pictures are there")
}

fn of_run(_: &Path) -> Catalog {
    let pictures = Pictures::new(SIDE as usize, SIDE as usize, pixels().repeat(3));
    let split = Split::from(pictures.expect("three pictures"));
    let vectors = [1.0, 0.0, 0.6, 0.8, 0.0, -1.0];
    let catalog = Catalog::of_run("a run".into(), split, &vectors, 2, "model".into());
    catalog.expect("a vector of each")
}

pub fn seeds() -> Vec<Vec<u8>> {
    let asked = [
        "/",
        "/style.css",
        "/api/openapi.json",
        "/api/run",
        "/api/pictures?from=1&count=2&step=1",
        "/api/picture/1/small?side=64",
        "/api/picture/1/large?longest=64",
        "/api/picture/1/attention",
        "/api/search?id=1&k=2",
        "/api/neighbourhoods?round=1&at=0.5&count=3",
        "/api/pictures?folder=sub&label=class+1",
        "/api/search?id=0&folder=sub",
        "/api/filters",
        "/api/clusters?k=6&label=class+1",
        "/api/clusters/0?k=6&from=1&count=2",
        "/api/duplicates?above=0.9&from=0&count=2",
        "/api/outliers?from=1&count=2&folder=sub",
        "/api/map",
        "/api/curves",
        "/api/events",
    ];
    let pictures = (0..NAMES.len()).flat_map(|i| {
        let path = format!("/api/picture/{i}");
        let copies = ["small?side=4", "large?longest=70"].map(|copy| format!("{path}/{copy}"));
        copies.into_iter().chain([path])
    });
    // Of both lengths, for both servers.
    let get = |path: String| {
        let to = |host: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        [to("localhost:80"), to("localhost:808")]
    };
    let paths = asked.map(String::from).into_iter().chain(pictures);
    let mut seeds: Vec<Vec<u8>> = paths.flat_map(get).collect();
    let png = encode_png(SIDE, SIDE, &pixels()).expect("a picture");
    for (headers, body) in [
        ("", &png[..]),
        ("Content-Type: multipart/form-data\r\n", b"--a"),
        ("Origin: http://elsewhere\r\nSec-Fetch-Site: cross-site\r\n", b"x"),
    ] {
        seeds.push(upload(headers, body));
    }
    let chunked = b"POST /api/search?k=2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\
        Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
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
