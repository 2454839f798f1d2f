//! Stopped in any way, a run goes on as if it had never been.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anchorhood::train::Checkpoint;

use crate::common::{Ran, Sandbox, bits, losses, names};
use crate::folders;

/// Long enough to be stopped in its middle.
const LONG: &[&str] = &["--epochs", "40", "--evaluate-every", "10"];

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < Duration::from_secs(60), "no {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

fn long(more: &[&str]) -> Vec<&'static str> {
    let more: Vec<&'static str> = more.iter().map(|m| &*String::leak(m.to_string())).collect();
    [LONG, &more].concat()
}

/// A long run under way, its first epoch saved.
fn started(sandbox: &Sandbox, name: &str) -> Child {
    let child = sandbox.start(&long(&["--name", name]));
    let last = sandbox.path(&format!("runs/{name}/checkpoints/last.safetensors"));
    wait_for("first checkpoint", || last.exists());
    child
}

fn same_end(sandbox: &Sandbox, one: &str, other: &str) {
    let run = |name: &str| sandbox.path(&format!("runs/{name}"));
    let last = |name: &str| bits(&run(name).join("checkpoints/last.safetensors"));
    assert_eq!(losses(&run(one)), losses(&run(other)));
    assert!(last(one) == last(other), "other weights at the end");
}

fn unfinished(path: &Path) {
    let round = Checkpoint::load(path).unwrap().standing.position.round;
    assert!(round <= 1, "the run ended before it could be stopped");
}

#[test]
fn killed_and_resumed_it_ends_in_the_same_bits() {
    let sandbox = Sandbox::new();
    sandbox.train(&long(&["--name", "whole"])).succeeded();
    let mut child = started(&sandbox, "cut");
    signal(&child, "KILL");
    child.wait().unwrap();
    unfinished(&sandbox.path("runs/cut/checkpoints/last.safetensors"));
    // What a kill in the middle of writing leaves beside the good files.
    let partial = sandbox.path("runs/cut/checkpoints/.last.safetensors.partial");
    std::fs::write(partial, b"half a checkpo").unwrap();
    let metrics = sandbox.path("runs/cut/metrics.jsonl");
    let mut text = std::fs::read_to_string(&metrics).unwrap();
    text.push_str("{\"event\":\"epoch_en");
    std::fs::write(&metrics, text).unwrap();

    let ran = sandbox.run(&["train", "--resume", "cut", "--threads", "2"]);
    ran.succeeded().says(&["resumed at"]);
    same_end(&sandbox, "whole", "cut");
}

#[test]
fn interrupted_within_an_epoch_it_saves_and_says_how_to_go_on() {
    let sandbox = Sandbox::new();
    // One long epoch, so that the interruption falls within it.
    let more = ["--shapes-train", "4000", "--rounds", "0"];
    let whole: Vec<&str> = more.iter().copied().chain(["--name", "whole"]).collect();
    sandbox.train(&whole).succeeded();
    let cut: Vec<&str> = more.iter().copied().chain(["--name", "cut", "--json"]).collect();
    let mut child = sandbox.start(&cut);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    wait_for("step", || lines.next().unwrap().unwrap().contains("\"progress\""));
    signal(&child, "INT");
    for _ in lines {} // an unread pipe would fill up
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let ran = ran.says(&["saved", "anchorhood train --resume cut"]);
    assert!(!ran.stderr.contains("error"), "{}", ran.stderr);
    let saved = Checkpoint::load(&sandbox.path("runs/cut/checkpoints/last.safetensors")).unwrap();
    assert!(saved.standing.position.batch > 0, "{:?}", saved.standing);
    // Without a name, the latest run goes on.
    sandbox.run(&["train", "--resume"]).succeeded();
    same_end(&sandbox, "whole", "cut");
}

#[test]
fn a_finished_run_says_so_again() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a"]).succeeded();
    let before = losses(&sandbox.path("runs/a"));
    let ran = sandbox.run(&["train", "--resume", "a"]).succeeded();
    assert!(ran.stdout.contains("round 1"), "{}", ran.stdout);
    assert_eq!(losses(&sandbox.path("runs/a")), before);
}

#[test]
fn a_run_without_a_checkpoint_begins_again() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a"]).succeeded();
    sandbox.train(&["--name", "b"]).succeeded();
    std::fs::remove_dir_all(sandbox.path("runs/b/checkpoints")).unwrap();
    std::fs::create_dir(sandbox.path("runs/b/checkpoints")).unwrap();
    sandbox.run(&["train", "--resume", "b"]).succeeded();
    same_end(&sandbox, "a", "b");
}

#[test]
fn two_processes_do_not_train_one_run() {
    let sandbox = Sandbox::new();
    let mut child = started(&sandbox, "a");
    // The folder is held, not a file in it: what is deleted there lets nobody in.
    for file in names(&sandbox.path("runs/a")) {
        if file != "config.toml" {
            let _ = std::fs::remove_file(sandbox.path(&format!("runs/a/{file}"))); // folders stay
        }
    }
    let second = sandbox.run(&["train", "--resume", "a"]);
    let code = second.code;
    signal(&child, "KILL");
    child.wait().unwrap();
    assert_eq!(code, Some(1), "{second:?}");
    second.failed(1, &["runs/a", "another process"]);
}

#[test]
fn nobody_reading_is_not_a_panic() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.start(&long(&["--name", "a", "--json"]));
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    drop(stdout);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(141), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    sandbox.run(&["train", "--resume", "a"]).succeeded();
}

#[test]
fn other_settings_are_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a"]).succeeded();
    let other = ["train", "--resume", "a", "--epochs", "2", "--lr", "0.5"];
    sandbox
        .run(&other)
        .failed(2, &["runs/a", "training.epochs", "training.learning_rate", "new run"]);
    sandbox
        .run(&["train", "cifar10", "--resume", "a"])
        .failed(2, &["data.set", "cifar10", "shapes"]);
    sandbox.run(&["train", "--preset", "paper", "--resume", "a"]).failed(2, &["network.width"]);
    let same = ["train", "--resume", "a", "--epochs", "1", "--threads", "2"];
    sandbox.run(&same).succeeded();
    sandbox.run(&["train", "--resume", "b"]).failed(2, &["`b`", "runs has a"]);
}

/// Whatever of its settings the pictures or a model decided: the words that began a run go on with
/// it.
#[test]
fn the_words_that_began_a_run_go_on_with_it() {
    let sandbox = Sandbox::new();
    folders::fill(&sandbox.path("pictures"), 24);
    let part = "[network]\nwidth = 2\n[training]\nrounds = 0\n";
    std::fs::write(sandbox.path("part.toml"), part).unwrap();
    let brief = "--threads 1 --quiet --epochs 2";
    let small = "--size 16 --width 2 --rounds 1 --batch 8";
    for (name, words) in [
        ("quick", format!("pictures --preset quick {small}")),
        ("file", "pictures --config part.toml --batch 8".into()),
        ("base", "pictures --preset quick --from base --rounds 0".into()),
        ("finer", "pictures --from runs/quick --rounds 0".into()),
        ("nat", format!("pictures --method nat --features 12 {small}")),
    ] {
        let run = |which: &str| {
            let line = format!("train {words} {brief} {which} {name}");
            let words: Vec<&str> = line.split_whitespace().collect();
            sandbox.run(&words)
        };
        run("--name").succeeded();
        run("--resume").succeeded();
    }
    let other = "train pictures --preset quick --resume quick --embed-size 24";
    let words: Vec<&str> = other.split_whitespace().collect();
    sandbox.run(&words).failed(2, &["data.embed_size"]);
    let other = ["train", "--resume", "finer", "--from", "runs/file"];
    sandbox.run(&other).failed(2, &["training.from"]);
}

/// Nothing of the run is lost by trying.
#[test]
fn a_run_of_a_method_of_a_programs_own_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a", "--embed-size", "24"]).succeeded();
    let file = sandbox.path("runs/a/config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let own = text.replace("[method]\n", "[method]\nown = \"mine\"\n");
    assert_ne!(own, text);
    std::fs::write(&file, own).unwrap();
    let ran = sandbox.run(&["train", "--resume", "a"]);
    ran.failed(2, &["method.own", "`mine`"]);
    assert!(sandbox.path("runs/a/model.safetensors").is_file());
    let ran = sandbox.run(&["train", "--config", "runs/a/config.toml", "--name", "b"]);
    ran.failed(2, &["method.own"]);
    assert_eq!(names(&sandbox.path("runs")), ["a"]);
}

#[test]
fn a_damaged_checkpoint_is_named_and_nothing_is_lost() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a", "--rounds", "1"]).succeeded();
    let last = sandbox.path("runs/a/checkpoints/last.safetensors");
    let whole = std::fs::read(&last).unwrap();
    for bytes in [&whole[..whole.len() - 7], &whole[..100], b"", b"hello"] {
        std::fs::write(&last, bytes).unwrap();
        let named = ["last.safetensors", "not a whole checkpoint", "round-0"];
        sandbox.run(&["evaluate", "a"]).failed(1, &named);
        // Whoever trains on goes on from the newest that is whole, and mends it.
        let resumed = sandbox.run(&["train", "--resume", "a"]).succeeded();
        resumed.says(&["last.safetensors", "not a whole checkpoint", "round-1"]);
        sandbox.run(&["evaluate", "a"]).succeeded();
    }
    // The way out that the message names.
    let good = sandbox.path("runs/a/checkpoints/round-0.safetensors");
    std::fs::copy(good, &last).unwrap();
    sandbox.run(&["train", "--resume", "a"]).succeeded();
    assert_eq!(names(&sandbox.path("runs/a/checkpoints")).len(), 3);
    assert_eq!(losses(&sandbox.path("runs/a")).len(), 2);
}

#[test]
fn a_checkpoint_of_another_network_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a"]).succeeded();
    sandbox.train(&["--name", "b", "--width", "3"]).succeeded();
    let last = |run: &str| sandbox.path(&format!("runs/{run}/checkpoints/last.safetensors"));
    std::fs::copy(last("a"), last("b")).unwrap();
    sandbox.run(&["train", "--resume", "b"]).failed(2, &["network.width (2 ≠ 3)"]);
}
