//! A run that trains while it is shown: newer checkpoints are taken by themselves.

use std::time::Duration;

use crate::common::{Sandbox, trained, wait_for};
use crate::folders::{picture, png};
use crate::serve::served::Served;

/// What a run does when it saves: a whole file under a name of its own, renamed.
fn save_over(sandbox: &Sandbox, bytes: &[u8]) {
    let aside = sandbox.path("runs/a/checkpoints/new");
    std::fs::write(&aside, bytes).unwrap();
    std::fs::rename(&aside, sandbox.checkpoint("a", "last")).unwrap();
}

#[test]
fn a_newer_checkpoint_is_shown() {
    let sandbox = trained("");
    let longer = trained("--epochs 3");
    let served = Served::start(&sandbox, &["a"]);
    assert_eq!(served.json("/api/run")["renewals"], 0);
    let search = || served.json("/api/search?id=3&k=10")["neighbours"].clone();
    let upload = || served.upload(&png(&picture(4))).1["neighbours"].clone();
    let (found, uploaded) = (search(), upload());

    save_over(&sandbox, &longer.read("runs/a/checkpoints/last.safetensors"));
    wait_for("renewal", || served.json("/api/run")["renewals"] == 1);
    assert_ne!(search(), found, "the vectors are newer");
    wait_for("newer model", || upload() != uploaded);
    let renewed = upload();
    let (code, heat) = served.get("/api/picture/5/attention");
    assert!(code == 200 && !heat.is_empty());

    // One that cannot be read changes nothing.
    save_over(&sandbox, b"nonsense");
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(served.json("/api/run")["renewals"], 1);
    assert_eq!(upload(), renewed);
}
