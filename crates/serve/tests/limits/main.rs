//! Clients that want more than their share: of memory, of time, of connections, and of what is
//! another site's.

#[path = "../common/mod.rs"]
mod common;
mod slow;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anchorhood_serve::ServeOptions;
use image::RgbImage;

use common::{catalog, visited};

const SIDE: usize = 8;
const KB: usize = 1 << 10;
const TOKEN: &str = "open-sesame-open";
/// What tells something of the pictures.
const PATHS: [&str; 10] = [
    "/api/run",
    "/api/pictures",
    "/api/picture/0",
    "/api/picture/0/small",
    "/api/picture/0/large",
    "/api/filters",
    "/api/clusters",
    "/api/clusters/0",
    "/api/duplicates",
    "/api/outliers",
];

/// A server of one picture, whose model answers always the same, for as long as `visit` lasts. It
/// tells the news of a run.
fn with_server(options: ServeOptions, visit: impl FnOnce(SocketAddr)) {
    let folder = tempfile::tempdir().unwrap();
    RgbImage::new(4, 4).save(folder.path().join("a.png")).unwrap();
    let shelf = catalog(folder.path(), vec!["a.png".into()], vec![], vec![1.0, 0.0]);
    let one = |squares: &[u8]| [1.0, 0.0].repeat(squares.len() / (SIDE * SIDE * 3));
    visited(options, shelf, Some(folder.path()), Some((SIDE, one)), visit);
}

fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let wait = Some(Duration::from_secs(20));
    stream.set_read_timeout(wait).unwrap();
    stream
}

/// The code and the header of the next answer, in small letters.
fn answer(stream: &TcpStream) -> (u16, String) {
    let mut lines = BufReader::with_capacity(1, stream).lines();
    let header = lines.by_ref().map(|l| l.expect("an answer comes"));
    let header: Vec<String> = header.take_while(|l| !l.is_empty()).collect();
    let header = header.join("\n").to_lowercase();
    let code = header.split(' ').nth(1).unwrap_or_default().parse();
    (code.unwrap_or_else(|_| panic!("{header:?}")), header)
}

fn asked(stream: &TcpStream, method: &str, path: &str, head: &str, body: &[u8]) -> (u16, String) {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{head}\r\n"
    );
    let mut to = stream;
    to.write_all(&[request.as_bytes(), body].concat()).unwrap();
    answer(stream)
}

/// An upload that says it has `length` bytes, and what it sends of them.
fn begun(address: SocketAddr, length: usize, sent: usize) -> TcpStream {
    let mut stream = connected(address);
    let head =
        format!("POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![0; sent]).unwrap();
    stream
}

fn picture() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(vec![]);
    let picture = RgbImage::new(4, 4);
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// The code of an upload with more in its header.
fn uploads(address: SocketAddr, head: &str) -> u16 {
    asked(&connected(address), "POST", "/api/search", head, &picture()).0
}

fn got(address: SocketAddr, path: &str, head: &str) -> (u16, String) {
    asked(&connected(address), "GET", path, head, b"")
}

#[test]
fn uploads_hold_so_much_together() {
    let options = ServeOptions {
        largest_upload: 512 * KB,
        uploads_together: 1024 * KB,
        ..ServeOptions::default()
    };
    with_server(options, |address| {
        // What is promised and not sent takes no room from others.
        let promising: Vec<_> = (0..40).map(|_| begun(address, 512 * KB, 3)).collect();
        assert_eq!(uploads(address, ""), 200);
        drop(promising);
        // Of six that send all but the last byte two can be held at most; some of the others are
        // told to come again.
        let greedy: Vec<_> = (0..6).map(|_| begun(address, 512 * KB, 512 * KB - 1)).collect();
        let later = Instant::now() + Duration::from_secs(6);
        let mut refused = 0;
        for stream in &greedy {
            let left = later.saturating_duration_since(Instant::now());
            let wait = left.max(Duration::from_millis(1));
            stream.set_read_timeout(Some(wait)).unwrap();
            if stream.peek(&mut [0]).is_ok_and(|n| n > 0) {
                let (code, header) = answer(stream);
                assert!(code == 503 && header.contains("retry-after: "), "{header}");
                refused += 1;
            }
        }
        assert!((1..=5).contains(&refused), "{refused}");
        drop(greedy);
        assert_eq!(uploads(address, ""), 200);
    });
}

#[test]
fn many_at_once_are_all_served() {
    with_server(ServeOptions::default(), |address| {
        let ask = || {
            for _ in 0..30 {
                assert_eq!(uploads(address, ""), 200);
                for path in ["/api/search?id=0", "/api/picture/0/small"] {
                    assert_eq!(got(address, path, "").0, 200, "{path}");
                }
            }
        };
        std::thread::scope(|threads| (0..8).for_each(|_| drop(threads.spawn(ask))));
    });
}

#[test]
fn what_is_too_long_is_refused_by_its_header() {
    let options = ServeOptions { largest_upload: 64 * KB, ..ServeOptions::default() };
    with_server(options, |address| {
        let since = Instant::now();
        // Nothing of it was sent.
        assert_eq!(answer(&begun(address, 64 * KB + 1, 0)).0, 413);
        assert_eq!(answer(&begun(address, usize::MAX / 2, 0)).0, 413);
        assert!(since.elapsed() < Duration::from_secs(4));
        // Who sends all the same hears it too.
        assert_eq!(answer(&begun(address, 300 * KB, 300 * KB)).0, 413);
        // So does who does not say how much will come.
        let mut stream = connected(address);
        let head =
            "POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for _ in 0..80 {
            let part = [b"400\r\n", &[b'x'; KB][..], b"\r\n"].concat();
            stream.write_all(&part).unwrap();
        }
        assert_eq!(answer(&stream).0, 413);
        // And who asks first is told not to send.
        let mut polite = connected(address);
        let head = "POST /api/search HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n";
        polite.write_all(head.as_bytes()).unwrap();
        assert_eq!(answer(&polite).0, 413);
    });
}

#[test]
fn an_upload_by_drops_is_given_up() {
    let longest = Duration::from_millis(700);
    let options = ServeOptions { longest_upload: longest, ..ServeOptions::default() };
    with_server(options, |address| {
        let (since, mut dripping) = (Instant::now(), begun(address, 1000, 1));
        dripping.set_nonblocking(true).unwrap();
        while dripping.peek(&mut [0]).is_err() && since.elapsed() < 5 * longest {
            let _ = dripping.write(b"x");
            std::thread::sleep(longest / 10);
        }
        assert!((longest..4 * longest).contains(&since.elapsed()), "{:?}", since.elapsed());
        dripping.set_nonblocking(false).unwrap();
        assert_eq!(answer(&dripping).0, 408);
    });
}

#[test]
fn connections_are_so_many_at_most() {
    let options = ServeOptions { most_connections: 8, ..ServeOptions::default() };
    with_server(options, |address| {
        let mut kept: Vec<_> = (0..8).map(|_| connected(address)).collect();
        for stream in &kept {
            assert_eq!(asked(stream, "GET", "/api/openapi.json", "", b"").0, 200);
        }
        let mut later = connected(address);
        let ask = b"GET /api/run HTTP/1.1\r\nHost: localhost\r\n\r\n";
        later.write_all(ask).unwrap();
        let short = Some(Duration::from_millis(300));
        later.set_read_timeout(short).unwrap();
        assert!(later.peek(&mut [0]).is_err(), "there is no place for it");
        kept.pop();
        later.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(answer(&later).0, 200);
    });
}

#[test]
fn pages_of_other_sites_are_refused() {
    with_server(ServeOptions::default(), |address| {
        for said in [
            "Origin: http://evil.example\r\n",
            "Origin: null\r\n",
            "Sec-Fetch-Site: cross-site\r\n",
            "Sec-Fetch-Site: same-site\r\n",
        ] {
            assert_eq!(uploads(address, said), 403, "{said}");
            for path in PATHS {
                assert_eq!(got(address, path, said).0, 403, "{path}: {said}");
            }
        }
        let own = "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n";
        assert_eq!(uploads(address, own), 200);
        let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
        assert_eq!(got(address, "/", link).0, 200);
        for path in ["/", "/app.js", "/views.js", "/nothing"].iter().chain(&PATHS) {
            let (_, header) = got(address, path, "");
            for told in [
                "cross-origin-resource-policy: same-origin",
                "x-content-type-options: nosniff",
                "frame-ancestors 'none'",
                "cache-control: ",
            ] {
                assert!(header.contains(told), "{path}: {told}: {header}");
            }
        }
    });
}

#[test]
fn nothing_is_told_without_the_token() {
    let options = ServeOptions { token: Some(TOKEN.into()), ..ServeOptions::default() };
    with_server(options, |address| {
        for path in PATHS {
            assert_eq!(got(address, path, "").0, 401);
            let right = format!("Authorization: Bearer {TOKEN}\r\n");
            assert_eq!(got(address, path, &right).0, 200, "{path}");
        }
    });
}

#[test]
fn what_makes_no_sense_is_a_sentence_or_the_nearest_that_does() {
    with_server(ServeOptions::default(), |address| {
        for (path, code) in [
            ("/api/picture/0/large?longest=0", 200),
            ("/api/picture/0/large?longest=99999999", 200),
            ("/api/picture/0/large?longest=-1", 400),
            ("/api/picture/1/large", 404),
            ("/api/clusters?k=0", 200),
            ("/api/clusters?k=99999999999", 200),
            ("/api/clusters?k=many", 400),
            ("/api/clusters/1", 404),
            ("/api/clusters/-1", 404),
            ("/api/clusters/%FF", 404),
            ("/api/clusters/0?from=99999999999&count=99999999999", 200),
            ("/api/duplicates?from=99999999999&count=99999999999", 200),
            ("/api/duplicates?from=first", 400),
            ("/api/outliers?from=18446744073709551615&count=9", 200),
            ("/api/outliers?from=-1", 400),
            ("/api/pictures?folder=../..&label=x", 200),
            ("/api/pictures?folder=%FF", 200),
            ("/api/pictures?from=18446744073709551615&step=18446744073709551615", 200),
            ("/api/search?id=0&folder=/etc", 200),
        ] {
            let (got, header) = got(address, path, "");
            assert_eq!(got, code, "{path}: {header}");
        }
    });
}

#[test]
fn a_picture_that_the_browser_has_is_not_sent_again() {
    with_server(ServeOptions::default(), |address| {
        for path in ["/api/picture/0", "/api/picture/0/small", "/api/picture/0/large"] {
            let (code, header) = got(address, path, "");
            assert!(code == 200 && header.contains("cache-control: private, no-cache"));
            let tag = header.split("etag: ").nth(1).unwrap();
            let tag = tag.lines().next().unwrap();
            let has = format!("If-None-Match: \"other\", {tag}\r\n");
            let (code, again) = got(address, path, &has);
            assert!(code == 304 && again.contains(tag), "{path}: {again}");
            let other = "If-None-Match: \"other\"\r\n";
            assert_eq!(got(address, path, other).0, 200);
        }
    });
}
