//! Searching by picture and by upload, what a run tells, many at once.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::common::trained;
use crate::folders::{picture, png};
use crate::search::indexed;
use crate::serve::served::Served;

#[test]
fn an_index_is_walked_and_searched() {
    let sandbox = indexed("");
    // Without a name it has the folder's.
    sandbox.run("index --model a pictures").succeeded();
    let served = Served::start(&sandbox, &["pictures.index"]);
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
    assert!(neighbours.iter().all(|n| n["id"] != 7), "itself is left out");
    let likeness = |n: &Value| n["similarity"].as_f64().unwrap();
    assert!(neighbours.is_sorted_by(|a, b| likeness(a) >= likeness(b)));

    let (code, found) = served.upload(&png(&picture(12)));
    assert_eq!(code, 200, "{found}");
    assert_eq!(found["neighbours"][0]["name"], "12.png");
    assert!(likeness(&found["neighbours"][0]) > 0.999);

    let id = &found["neighbours"][0]["id"];
    let (code, bytes) = served.get(&format!("/api/picture/{id}"));
    assert_eq!((code, bytes), (200, sandbox.read("pictures/12.png")));
    let (code, bytes) = served.get(&format!("/api/picture/{id}/small?side=32"));
    assert_eq!(code, 200);
    let small = image::load_from_memory(&bytes).unwrap();
    assert_eq!(small.width(), 16, "never larger than it is");
    // A browser that kept it would show it for another server's picture of this number.
    let asked =
        format!("GET /api/picture/{id} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answer = served.raw(asked.as_bytes()).to_lowercase();
    assert!(answer.contains("no-cache") && !answer.contains("max-age"));
    assert_eq!(served.json("/api/map")["points"].as_array().unwrap().len(), 30);
    assert_eq!(served.get("/api/curves").0, 404, "an index has none");

    std::fs::remove_file(sandbox.path("pictures/12.png")).unwrap();
    let (code, body) = served.get(&format!("/api/picture/{id}"));
    let said = String::from_utf8(body).unwrap();
    assert!(code == 404 && said.contains("gone"), "{code} {said}");
}

#[test]
fn many_at_once() {
    let sandbox = indexed("");
    let served = Served::start(&sandbox, &["p.index"]);
    std::thread::scope(|threads| {
        for client in 0..50 {
            let served = &served;
            threads.spawn(move || {
                for i in 0..6 {
                    let id = (client + i) % 30;
                    match i % 3 {
                        0 => assert_eq!(served.upload(&png(&picture(id))).0, 200),
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
    let sandbox = trained("");
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
    let mut news = served.agent.get(format!("{}/api/events", served.address)).call().unwrap();
    let mut stream = BufReader::new(news.body_mut().as_reader());
    let mut changed = || {
        let mut line = String::new();
        while !line.starts_with("data:") {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "the stream goes on");
        }
        line
    };
    let before = changed();
    let metrics = sandbox.path("runs/a/metrics.jsonl");
    let mut text = std::fs::read_to_string(&metrics).unwrap();
    text.push_str("{\"event\":\"warning\",\"mess\n");
    std::fs::write(&metrics, text).unwrap();
    assert_ne!(changed(), before);
    let damaged = served.json("/api/curves");
    assert_eq!(damaged["charts"], curves["charts"]);
    assert_eq!(curves["warning"], Value::Null);
    let warning = damaged["warning"].as_str().unwrap();
    assert!(warning.starts_with("1 line of metrics.jsonl"), "{warning}");
}

#[test]
fn the_document_names_every_answer() {
    let sandbox = trained("");
    let served = Served::start(&sandbox, &["a"]);
    let document = served.json("/api/openapi.json");
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = match path.as_str() {
            "/api/events" => continue, // it never ends
            "/api/search" => "/api/search?id=0".into(),
            "/api/neighbourhoods" => "/api/neighbourhoods?round=1".into(),
            path => path.replace("{id}", "0").replace("{cluster}", "0"),
        };
        // What takes long says for a while that it is not done.
        let status = (0..60).map(|_| served.get(&path).0).find(|s| *s != 202);
        assert_eq!(status, Some(200), "{path}");
        let refusals = methods["get"]["responses"].as_object().unwrap();
        assert!(refusals.contains_key("200"), "{path}");
    }
}
