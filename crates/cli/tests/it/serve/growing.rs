//! A folder that is shown while it is indexed.

use std::io::{Read, Write};

use crate::common::{Sandbox, names, wait_for};
use crate::folders::{fill, picture, png};
use crate::serve::served::Served;

fn wait_for_pictures(served: &Served, pictures: u64) {
    wait_for("pictures", || {
        let about = served.json("/api/run");
        let indexing = &about["indexing"];
        indexing["done"] == indexing["total"] && about["pictures"] == pictures
    });
}

/// Reads the news until this was said.
fn heard(served: &Served, what: &str) {
    let mut stream = served.connection();
    let ask = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(ask).unwrap();
    let (mut said, mut some) = (vec![], [0; 256]);
    while !String::from_utf8_lossy(&said).contains(what) {
        let read = stream.read(&mut some).unwrap_or(0);
        assert!(read > 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&some[..read]);
    }
}

#[test]
fn pictures_come_while_one_looks_and_the_next_time_they_are_there() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("pictures");
    fill(&folder, 150);
    let served = Served::start(&sandbox, &["pictures"]);
    let first = served.json("/api/run");
    assert_eq!(first["kind"], "index");
    assert!(first["pictures"].as_u64().unwrap() >= 48, "{first}");
    assert_eq!(first["indexing"]["total"], 150);
    let name =
        |served: &Served| served.json("/api/pictures?count=1")["pictures"][0]["name"].clone();
    let before = name(&served);
    heard(&served, "event: indexing");
    let found = served.json("/api/search?id=0&k=3");
    assert_eq!(found["neighbours"].as_array().unwrap().len(), 3);
    wait_for_pictures(&served, 150);
    assert_eq!(name(&served), before, "a picture keeps its number");
    assert!(names(&folder).iter().all(|name| name.ends_with(".png")));
    // All are shown a moment before they are saved.
    let kept = || names(&sandbox.path("cache/indices"));
    // Until then its journal lies there.
    wait_for("index in the cache", || kept().len() == 1 && kept()[0].ends_with(".index"));
    drop(served);
    picture(999).save(folder.join("new.png")).unwrap();
    let served = Served::start(&sandbox, &["pictures"]);
    assert!(served.json("/api/run")["pictures"].as_u64().unwrap() >= 150);
    wait_for_pictures(&served, 151);
    let (code, found) = served.upload(&png(&picture(7)));
    assert_eq!((code, &found["neighbours"][0]["name"]), (200, &"7.png".into()));
}

/// As in caches of Hugging Face and DVC: names are links to files, and folders, that lie elsewhere.
#[cfg(unix)]
#[test]
fn links_to_files_elsewhere_are_shown_as_long_as_they_are_what_was_indexed() {
    use std::os::unix::fs::symlink;
    let sandbox = Sandbox::new();
    let (blobs, folder) = (sandbox.path("blobs"), sandbox.path("pictures"));
    fill(&blobs, 4);
    std::fs::create_dir_all(&folder).unwrap();
    fill(&sandbox.path("elsewhere"), 2);
    for i in 0..4 {
        symlink(format!("../blobs/{i}.png"), folder.join(format!("{i}.png"))).unwrap();
    }
    symlink("../elsewhere", folder.join("more")).unwrap();
    let codes = |served: &Served, view: &str| {
        let code = |i| served.get(&format!("/api/picture/{i}{view}")).0;
        (0..6).map(code).collect::<Vec<u16>>()
    };
    sandbox.run("index pictures -o linked.index").succeeded();
    for what in ["pictures", "linked.index"] {
        let served = Served::start(&sandbox, &[what]);
        wait_for("six pictures", || served.json("/api/run")["pictures"] == 6);
        assert_eq!(codes(&served, ""), [200; 6], "{what}");
        assert_eq!(codes(&served, "/small"), [200; 6], "{what}");
    }
    // Another file than the one that was indexed: the first link leads to it.
    picture(7).save(sandbox.path("private.png")).unwrap();
    std::fs::remove_file(folder.join("0.png")).unwrap();
    symlink("../private.png", folder.join("0.png")).unwrap();
    let served = Served::start(&sandbox, &["linked.index"]);
    assert_eq!(codes(&served, ""), [404, 200, 200, 200, 200, 200]);
}
