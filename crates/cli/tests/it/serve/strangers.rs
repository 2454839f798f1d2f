//! What strangers try, and what comes of mistakes: a sentence each, and the server stays.

use std::io::Write;

use crate::common::trained;
use crate::folders::{huge_png, picture, png};
use crate::search::indexed;
use crate::serve::served::{Served, read};

#[test]
fn uploads_that_are_refused_leave_the_server_as_it_was() {
    let sandbox = indexed("");
    let served = Served::start(&sandbox, &["p.index", "--largest-upload", "1"]);
    let refused = |bytes: &[u8], code: u16, part: &str| {
        let (got, said) = served.upload(bytes);
        let said = said["error"].as_str().unwrap_or_default().to_string();
        assert!(got == code && said.contains(part), "{got} {said}");
    };
    refused(b"a text named picture.jpg", 415, "not a JPEG");
    refused(b"", 415, "empty");
    refused(&png(&picture(1))[..60], 415, "not a picture");
    refused(&vec![0; 3 << 20], 413, "larger than 1 MB");
    refused(&huge_png(), 413, "megapixels");
    let stranger = served.agent.get(format!("{}/api/run", served.address));
    let (code, _) = read(stranger.header("Host", "evil.example").call());
    assert_eq!(code, 403, "a name that is not this machine's");

    // The bytes tell what they are, whatever is said of them; a form is no picture.
    let post = |kind: &str| {
        let sent = served.agent.post(format!("{}/api/search", served.address));
        let (code, body) = read(sent.header("Content-Type", kind).send(png(&picture(2))));
        (code, String::from_utf8(body).unwrap())
    };
    assert_eq!(post("text/html").0, 200);
    let (code, said) = post("multipart/form-data; boundary=x");
    assert!(code == 415 && said.contains("--data-binary"), "{said}");
    // A length that nobody means.
    let head = "POST /api/search HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let nonsense = served.raw(format!("{head}Content-Length: -5\r\n\r\n").as_bytes());
    assert!(nonsense.contains(" 400 "), "{nonsense}");
    // Slow ones wait by themselves, and keep nobody from being served.
    let begun = format!("{head}Content-Length: 1000\r\n\r\nabc");
    let slow: Vec<_> = (0..40).map(|_| served.connection()).collect();
    slow.iter().for_each(|mut stream| stream.write_all(begun.as_bytes()).unwrap());
    assert_eq!(served.upload(&png(&picture(3))).0, 200);
    drop(slow);
    assert_eq!(served.upload(&png(&picture(4))).0, 200);
}

/// Paths as they are written, which clients would tidy up; in every place where one could be put.
#[test]
fn no_path_leads_out() {
    let sandbox = indexed("");
    let secret = "s3cret-w0rds";
    std::fs::write(sandbox.path("secret.txt"), secret).unwrap();
    std::fs::write(sandbox.path("pictures/notes.txt"), secret).unwrap();
    let served = Served::start(&sandbox, &["p.index"]);
    let outside = sandbox.path("secret.txt").display().to_string();
    let tried = [
        "../secret.txt",
        "..%2Fsecret.txt",
        "%2e%2e%2fsecret.txt",
        "..%252fsecret.txt",
        "..\\secret.txt",
        "%2e%2e%5csecret.txt",
        "....//secret.txt",
        "notes.txt",
        "%00",
        "%ff%fe",
        "0%2F..%2F..%2Fsecret.txt",
        &outside,
        &outside.replace('/', "%2F"),
    ];
    let places = [
        "/@",
        "/../@",
        "/api/@",
        "/api/picture/@",
        "/api/picture/@/small",
        "/api/picture/@/large",
        "/api/clusters/@",
        "/api/picture/0/@",
        "/api/picture/@/attention",
        "/api/search?id=@",
        "/api/neighbourhoods?round=@",
        "/api/pictures?from=@",
    ];
    for place in places {
        for path in tried {
            let path = place.replace('@', path);
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            let answer = served.raw(request.as_bytes());
            let code = answer.split(' ').nth(1).unwrap_or_default();
            assert!(["400", "404"].contains(&code), "{path}: {answer}");
            assert!(!answer.contains(secret), "{path}: {answer}");
        }
    }
    served.json("/api/run");
}

#[test]
fn questions_that_make_no_sense() {
    let sandbox = indexed("");
    let served = Served::start(&sandbox, &["p.index"]);
    for (path, code, part) in [
        ("/api/search", 400, "id"),
        ("/api/search?id=7&k=many", 400, "k"),
        ("/api/search?id=7&k=-1", 400, "k"),
        ("/api/search?id=30", 404, "numbered 0 to 29"),
        ("/api/search?id=-1", 404, "numbered 0 to 29"),
        ("/api/search?id=", 404, "numbered 0 to 29"),
        ("/api/picture/30/small", 404, "numbered 0 to 29"),
        ("/api/picture/30", 404, "numbered 0 to 29"),
        ("/api/picture/-1", 404, ""),
        ("/api/picture/99999999999999999999", 404, ""),
        ("/api/clusters/99", 404, "numbered 0 to"),
        ("/api/clusters?k=many", 400, "k"),
        ("/api/duplicates?from=x", 400, "from"),
        ("/api/picture/1/small?side=big", 400, "side"),
        ("/api/picture/%FF", 404, "numbers"),
        ("/api/picture/1/attention", 404, "serve a run"),
        ("/api/neighbourhoods?round=1", 404, "round"),
        ("/api/neighbourhoods", 400, "round"),
        ("/api/events", 404, "serve a run"),
        ("/nothing", 404, "openapi"),
    ] {
        let (got, said) = served.refusal(path);
        assert!(got == code && said.contains(part), "{path}: {got} {said}");
    }
    // Numbers beyond what there is are taken as far as they go.
    let many = |path: &str, list: &str| served.json(path)[list].as_array().unwrap().len();
    assert_eq!(many("/api/search?id=7&k=0", "neighbours"), 1);
    assert_eq!(many("/api/search?id=7&k=99999999", "neighbours"), 29);
    assert_eq!(many("/api/pictures?from=99&count=5", "pictures"), 0);
    assert_eq!(many("/api/pictures?step=0&count=99999", "pictures"), 30);
    let delete = served.agent.delete(format!("{}/api/run", served.address));
    assert_eq!(read(delete.call()).0, 405);
}

/// Neither shown to other users by the system nor written into a log by the program; its cookie is
/// sent by https alone, where that was asked for.
#[test]
fn a_token_can_be_kept_out_of_sight() {
    let sandbox = trained("");
    sandbox.write("word", "\n open-sesame-open\n");
    let by_file = ["a", "--token-file", "word", "--https"];
    let with = [("ANCHORHOOD_TOKEN", "a-word-that-is-hidden")];
    for (args, variables, word) in [
        (&by_file[..], &[][..], "open-sesame-open"),
        (&["a"], &with, "a-word-that-is-hidden"),
        // What is typed goes before what was set.
        (&by_file, &with, "open-sesame-open"),
    ] {
        let served = Served::start_with(&sandbox.path("."), args, variables);
        assert!(!served.line.contains("token"), "{}", served.line);
        assert_eq!(served.get("/").0, 401);
        assert_eq!(served.get(&format!("/api/run?token={}", word.to_uppercase())).0, 401);
        let page = served.agent.get(format!("{}/?token={word}", served.address)).call().unwrap();
        let cookie = page.headers()["set-cookie"].to_str().unwrap();
        assert_eq!(cookie.contains("; Secure"), args.contains(&"--https"), "{cookie}");
    }
}

/// Where other machines can reach it and no token is given, one is drawn and printed.
#[test]
fn an_open_address_draws_a_token() {
    let sandbox = indexed("");
    let mut served = Served::start(&sandbox, &["p.index", "--host", "0.0.0.0"]);
    served.address = served.address.replace("0.0.0.0", "127.0.0.1");
    let word = served.line.trim().split("/?token=").nth(1).unwrap();
    assert_eq!(word.len(), 32);
    assert_eq!(served.get("/api/pictures").0, 401);
    assert_eq!(served.get(&format!("/api/pictures?token={word}")).0, 200);
}
