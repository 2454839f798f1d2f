//! `serve`, by the real program on a free port: searching by picture and by upload, what strangers try, many at once.

mod clients;
mod common;
mod folders;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::Sandbox;
use folders::{fill, picture, trained};
use serde_json::Value;

/// A server, ended when the test ends.
struct Served {
    child: Child,
    address: String,
    agent: ureq::Agent,
}

impl Served {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Served {
        let args = [&["serve"], args, &["--port", "0", "--device", "cpu"]].concat();
        let mut command = sandbox.command(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let address = line.trim().split("/?").next().unwrap().to_string();
        assert!(address.starts_with("http://"), "{line:?}");
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            .build();
        Served {
            child,
            address,
            agent: agent.into(),
        }
    }

    fn get(&self, path: &str) -> (u16, Vec<u8>) {
        read(self.agent.get(format!("{}{path}", self.address)).call())
    }

    fn json(&self, path: &str) -> Value {
        let (code, body) = self.get(path);
        assert_eq!(code, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    fn upload(&self, bytes: &[u8]) -> (u16, Value) {
        let sent = self.agent.post(format!("{}/api/search?k=5", self.address));
        let (code, body) = read(sent.send(bytes));
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }
}

fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> (u16, Vec<u8>) {
    let mut answer = answer.expect("the server answers");
    let code = answer.status().as_u16();
    (code, answer.body_mut().read_to_vec().unwrap())
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A sandbox with a run `a`, a folder of pictures and its index.
fn indexed() -> Sandbox {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 30);
    let args = ["index", "a", "pictures", "-o", "my.index", "--quiet"];
    sandbox.run(&args).succeeded();
    sandbox
}

fn png(number: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(vec![]);
    picture(number)
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

#[test]
fn an_index_is_walked_and_searched() {
    let sandbox = indexed();
    let served = Served::start(&sandbox, &["my.index"]);
    let about = served.json("/api/run");
    assert_eq!(about["kind"], "index");
    assert_eq!(about["pictures"], 30);
    assert_eq!(about["uploads"], true, "its model was found among the runs");
    let (code, page) = served.get("/");
    assert_eq!(code, 200);
    assert!(String::from_utf8(page).unwrap().contains("<!doctype html>"));

    let found = served.json("/api/search?id=7&k=5");
    let neighbours = found["neighbours"].as_array().unwrap();
    assert_eq!(neighbours.len(), 5);
    assert!(
        neighbours.iter().all(|n| n["id"] != 7),
        "itself is left out"
    );
    let likeness = |n: &Value| n["similarity"].as_f64().unwrap();
    assert!(neighbours.is_sorted_by(|a, b| likeness(a) >= likeness(b)));

    let (code, found) = served.upload(&png(12));
    assert_eq!(code, 200, "{found}");
    assert_eq!(found["neighbours"][0]["name"], "12.png");
    assert!(likeness(&found["neighbours"][0]) > 0.999);

    let id = &found["neighbours"][0]["id"];
    let (code, bytes) = served.get(&format!("/api/picture/{id}"));
    assert_eq!((code, bytes), (200, png_of(&sandbox, "12.png")));
    let (code, bytes) = served.get(&format!("/api/picture/{id}/small?side=32"));
    assert_eq!(code, 200);
    assert_eq!(image::load_from_memory(&bytes).unwrap().width(), 32);
    assert_eq!(
        served.json("/api/map")["points"].as_array().unwrap().len(),
        30
    );
    assert_eq!(served.get("/api/curves").0, 404, "an index has none");

    std::fs::remove_file(sandbox.path("pictures/12.png")).unwrap();
    let (code, body) = served.get(&format!("/api/picture/{id}"));
    let said = String::from_utf8(body).unwrap();
    assert!(code == 404 && said.contains("gone"), "{code} {said}");
}

fn png_of(sandbox: &Sandbox, name: &str) -> Vec<u8> {
    std::fs::read(sandbox.path("pictures").join(name)).unwrap()
}

#[test]
fn what_strangers_try_is_refused_and_the_server_stays() {
    let sandbox = indexed();
    std::fs::write(sandbox.path("secret.txt"), "secret").unwrap();
    let served = Served::start(&sandbox, &["my.index", "--largest-upload", "1"]);
    for path in [
        "/api/picture/../../secret.txt",
        "/api/picture/..%2F..%2Fsecret.txt",
        "/api/picture/%2Fetc%2Fpasswd",
        "/api/picture/30",
        "/api/picture/-1",
        "/api/picture/99999999999999999999",
        "/../secret.txt",
        "/secret.txt",
    ] {
        let (code, body) = served.get(path);
        assert_eq!(code, 404, "{path}");
        assert!(
            !String::from_utf8_lossy(&body).contains("secret\n"),
            "{path}"
        );
    }
    assert_eq!(served.get("/api/search").0, 400);
    assert_eq!(served.get("/api/search?id=7&k=many").0, 400);
    let refused = |bytes: &[u8], code: u16, part: &str| {
        let (got, said) = served.upload(bytes);
        let said = said["error"].as_str().unwrap_or_default().to_string();
        assert!(got == code && said.contains(part), "{got} {said}");
    };
    refused(b"a text named picture.jpg", 415, "not a JPEG");
    refused(b"", 415, "empty");
    refused(&png(1)[..60], 415, "not a picture");
    refused(&vec![0; 3 << 20], 413, "larger than 1 MB");
    refused(&huge_png(), 413, "megapixels");
    let stranger = served.agent.get(format!("{}/api/run", served.address));
    let (code, _) = read(stranger.header("Host", "evil.example").call());
    assert_eq!(code, 403, "a name that is not this machine's");
    assert_eq!(served.upload(&png(3)).0, 200, "the server is still there");
}

/// A picture of 20,000 × 20,000 by its header; nothing of it is there.
fn huge_png() -> Vec<u8> {
    let mut bytes = png(1);
    bytes[16..24].copy_from_slice(&[0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20]);
    let sum = crc(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The sum at the end of a PNG's part, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |s, _| {
            (s >> 1) ^ (0xedb8_8320 & (s & 1).wrapping_neg())
        })
    })
}

#[test]
fn many_at_once() {
    let sandbox = indexed();
    let served = Served::start(&sandbox, &["my.index"]);
    std::thread::scope(|threads| {
        for client in 0..50 {
            let served = &served;
            threads.spawn(move || {
                for i in 0..6 {
                    let id = (client + i) % 30;
                    match i % 3 {
                        0 => assert_eq!(served.upload(&png(id)).0, 200),
                        1 => drop(served.json(&format!("/api/search?id={id}"))),
                        _ => assert_eq!(served.get(&format!("/api/picture/{id}/small")).0, 200),
                    }
                }
            });
        }
    });
    served.json("/api/run");
}

#[test]
fn a_run_shows_its_rounds_and_tells_its_news() {
    let sandbox = trained(&[]);
    let served = Served::start(&sandbox, &["a"]);
    let about = served.json("/api/run");
    assert_eq!(about["kind"], "run");
    assert_eq!(about["rounds"], serde_json::json!([1]));
    let hoods = served.json("/api/neighbourhoods?round=1&at=0&count=48");
    let entropy = |h: &Value| h["entropy"].as_f64().unwrap();
    let all = hoods["neighbourhoods"].as_array().unwrap();
    assert_eq!(all.len(), 48);
    assert!(all.is_sorted_by(|a, b| entropy(a) <= entropy(b)));
    assert_eq!(served.get("/api/neighbourhoods?round=9").0, 404);
    let curves = served.json("/api/curves");
    assert!(curves["charts"].as_str().unwrap().contains("<svg"));
    assert_eq!(curves["ended"], true);

    let (code, heat) = served.get("/api/picture/5/attention");
    assert_eq!(code, 200);
    assert_eq!(image::load_from_memory(&heat).unwrap().width(), 16);
    assert_ne!(heat, served.get("/api/picture/5").1);
    assert_eq!(served.get("/api/picture/48/attention").0, 404);

    // News: once at the beginning, and again when the file grows.
    let mut news = served
        .agent
        .get(format!("{}/api/events", served.address))
        .call()
        .unwrap();
    let mut stream = BufReader::new(news.body_mut().as_reader());
    let mut changed = || {
        let mut line = String::new();
        while !line.starts_with("data:") {
            line.clear();
            assert!(
                stream.read_line(&mut line).unwrap() > 0,
                "the stream goes on"
            );
        }
        line
    };
    let before = changed();
    let metrics = sandbox.path("runs/a/metrics.jsonl");
    let mut text = std::fs::read_to_string(&metrics).unwrap();
    text.push_str("{\"event\":\"warning\",\"message\":\"news\"}\n");
    std::fs::write(&metrics, text).unwrap();
    assert_ne!(changed(), before);
}

#[test]
fn the_document_names_every_answer() {
    let sandbox = trained(&[]);
    let served = Served::start(&sandbox, &["a"]);
    let document = served.json("/api/openapi.json");
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = match path.as_str() {
            "/api/events" => continue, // it never ends
            "/api/search" => "/api/search?id=0".into(),
            "/api/neighbourhoods" => "/api/neighbourhoods?round=1".into(),
            path => path.replace("{id}", "0"),
        };
        assert_eq!(served.get(&path).0, 200, "{path}");
        let refusals = methods["get"]["responses"].as_object().unwrap();
        assert!(refusals.contains_key("200"), "{path}");
    }
}

#[test]
fn a_token_keeps_others_out() {
    let sandbox = trained(&[]);
    let args = ["a", "--host", "0.0.0.0", "--token", "open-sesame"];
    let mut served = Served::start(&sandbox, &args);
    served.address = served.address.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(served.get("/").0, 401);
    assert_eq!(served.get("/api/run?token=open-sesamf").0, 401);
    assert_eq!(served.get("/api/run?token=open-sesame").0, 200);
    let bearer = served.agent.get(format!("{}/api/run", served.address));
    assert_eq!(
        read(bearer.header("Authorization", "Bearer open-sesame").call()).0,
        200
    );
}

#[test]
fn what_cannot_be_served() {
    let sandbox = indexed();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = |args: &[&str]| sandbox.run(&[&["serve"], args].concat());
    run(&["a", "--port", &port]).failed(2, &["port", &port, "taken", "--port"]);
    run(&["a", "--host", "0.0.0.0"]).failed(2, &["--token"]);
    run(&["a", "--host", "0.0.0.0", "--token", "short"]).failed(2, &["--token", "8"]);
    run(&["nothing"]).failed(2, &["nothing"]);
    let other = ["--name", "b", "--quiet", "--seed", "5"];
    sandbox.train(&other).succeeded();
    run(&["my.index", "--model", "b"]).failed(2, &["another model"]);
    std::fs::write(sandbox.path("bad.index"), "nonsense").unwrap();
    run(&["bad.index"]).failed(1, &["not a whole index"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_cleanly() {
    let sandbox = trained(&[]);
    let mut served = Served::start(&sandbox, &["a"]);
    // Somebody is listening for news: that must not keep the server.
    let news = served
        .agent
        .get(format!("{}/api/events", served.address))
        .call();
    let pid = served.child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(sent.unwrap().success());
    let begun = Instant::now();
    let status = served.child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    let mut rest = vec![];
    let _ = news.unwrap().body_mut().as_reader().read_to_end(&mut rest);
}

/// A real browser drops a picture, reads the grid and clicks a neighbour.
#[test]
fn a_browser_walks_from_picture_to_picture() {
    let sandbox = indexed();
    let served = Served::start(&sandbox, &["my.index"]);
    let query = sandbox.path("pictures/3.png");
    let address = std::path::PathBuf::from(&served.address);
    let _skipped_or_done = clients::python("browser.py", &["playwright"], &[&address, &query]);
}
