//! A run that trains while it is shown: newer checkpoints are taken by themselves.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::Sandbox;
use crate::folders::trained;
use crate::serve::served::{Served, png};

/// What a run does when it saves: a whole file under a name of its own, renamed.
fn save_over(sandbox: &Sandbox, bytes: &[u8]) {
    let aside = sandbox.path("runs/a/checkpoints/new");
    std::fs::write(&aside, bytes).unwrap();
    std::fs::rename(&aside, last(sandbox, "a")).unwrap();
}

fn last(sandbox: &Sandbox, run: &str) -> std::path::PathBuf {
    sandbox.path(&format!("runs/{run}/checkpoints/last.safetensors"))
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn a_newer_checkpoint_is_shown() {
    let sandbox = trained(&[]);
    let longer = ["--name", "b", "--quiet", "--epochs", "3"];
    sandbox.train(&longer).succeeded();
    let served = Served::start(&sandbox, &["a"]);
    assert_eq!(served.json("/api/run")["renewals"], 0);
    let search = || served.json("/api/search?id=3&k=10")["neighbours"].clone();
    let upload = || served.upload(&png(4)).1["neighbours"].clone();
    let (found, uploaded) = (search(), upload());

    save_over(&sandbox, &read(&last(&sandbox, "b")));
    let until = Instant::now() + Duration::from_secs(20);
    while served.json("/api/run")["renewals"] == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(served.json("/api/run")["renewals"], 1);
    assert_ne!(search(), found, "the vectors are newer");
    let mut renewed = uploaded.clone();
    while renewed == uploaded && Instant::now() < until {
        renewed = upload();
    }
    assert_ne!(renewed, uploaded, "so is the model");
    let (code, heat) = served.get("/api/picture/5/attention");
    assert!(code == 200 && !heat.is_empty());

    // One that cannot be read changes nothing.
    save_over(&sandbox, b"nonsense");
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(served.json("/api/run")["renewals"], 1);
    assert_eq!(upload(), renewed);
}
