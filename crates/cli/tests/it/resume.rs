//! Stopped in any way, a run goes on as if it had never been.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;

use anchorhood::RunConfig;
use anchorhood::research::Checkpoint;

use crate::common::{Ran, Sandbox, names, signal, trained, wait_for};
use crate::folders;

/// Long enough to be stopped in its middle.
const LONG: &str = "--epochs 40 --evaluate-every 10";

/// A long run under way, its first epoch saved.
fn started(sandbox: &Sandbox, name: &str) -> Child {
    let child = sandbox.start(&format!("{LONG} --name {name}"));
    let last = sandbox.checkpoint(name, "last");
    wait_for("first checkpoint", || last.exists());
    child
}

fn same_end(sandbox: &Sandbox, one: &str, other: &str) {
    assert_eq!(sandbox.losses(one), sandbox.losses(other));
    assert!(sandbox.bits(one) == sandbox.bits(other), "other weights at the end");
}

fn unfinished(path: &Path) {
    let round = Checkpoint::load(path).unwrap().standing.position.round;
    assert!(round <= 1, "the run ended before it could be stopped");
}

#[test]
fn killed_and_resumed_it_ends_in_the_same_bits() {
    let sandbox = trained(LONG);
    let mut child = started(&sandbox, "cut");
    signal(child.id(), "KILL");
    child.wait().unwrap();
    unfinished(&sandbox.checkpoint("cut", "last"));
    // What a kill in the middle of writing leaves beside the good files.
    sandbox.write("runs/cut/checkpoints/.last.safetensors.partial", b"half a checkpo");
    let text = sandbox.text("runs/cut/metrics.jsonl") + "{\"event\":\"epoch_en";
    sandbox.write("runs/cut/metrics.jsonl", text);

    sandbox.run("train --resume cut --threads 2").succeeded().says("resumed at");
    same_end(&sandbox, "a", "cut");
}

#[test]
fn interrupted_within_an_epoch_it_saves_and_says_how_to_go_on() {
    // One long epoch, so that the interruption falls within it.
    let long = "--shapes-train 1200 --batch 4 --rounds 0";
    let sandbox = trained(long);
    let mut child = sandbox.start(&format!("{long} --name cut --json"));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    wait_for("step", || lines.next().unwrap().unwrap().contains("\"progress\""));
    signal(child.id(), "INT");
    for _ in lines {} // an unread pipe would fill up
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let ran = ran.says("saved; anchorhood train --resume cut");
    assert!(!ran.stderr.contains("error"), "{}", ran.stderr);
    let saved = Checkpoint::load(&sandbox.checkpoint("cut", "last")).unwrap();
    assert!(saved.standing.position.batch > 0, "{:?}", saved.standing);
    // Without a name, the latest run goes on.
    sandbox.run("train --resume").succeeded();
    same_end(&sandbox, "a", "cut");
}

#[test]
fn a_finished_run_says_so_again_and_one_without_a_checkpoint_begins_again() {
    let sandbox = trained("");
    let (before, bits) = (sandbox.losses("a"), sandbox.bits("a"));
    sandbox.run("train --resume a").succeeded().prints("round 1");
    assert_eq!(sandbox.losses("a"), before);
    std::fs::remove_dir_all(sandbox.path("runs/a/checkpoints")).unwrap();
    std::fs::create_dir(sandbox.path("runs/a/checkpoints")).unwrap();
    sandbox.run("train --resume a --threads 2").succeeded();
    assert_eq!(sandbox.losses("a"), before);
    assert!(sandbox.bits("a") == bits, "other weights at the end");
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
    let second = sandbox.run("train --resume a");
    signal(child.id(), "KILL");
    child.wait().unwrap();
    second.failed(1, "runs/a; another process");
}

#[test]
fn nobody_reading_is_not_a_panic() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.start(&format!("{LONG} --name a --json"));
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    drop(stdout);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(141), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    sandbox.run("train --resume a").succeeded();
}

/// Whatever of its settings the pictures or a model decided: the words that began a run go on with
/// it.
#[test]
fn the_words_that_began_a_run_go_on_with_it() {
    let sandbox = Sandbox::new();
    folders::fill(&sandbox.path("pictures"), 24);
    sandbox.write("part.toml", "[network]\nwidth = 2\n[training]\nrounds = 0\n");
    let small = "--size 16 --width 2 --rounds 1 --batch 8";
    for (name, words) in [
        ("quick", format!("--preset quick {small}")),
        ("file", "--config part.toml --batch 8".into()),
        ("finer", "--from runs/quick --rounds 0".into()),
        ("nat", format!("--method nat --features 12 {small}")),
    ] {
        for which in ["--name", "--resume"] {
            let brief = "--threads 1 --quiet --epochs 2";
            let line = format!("train pictures {words} {brief} {which} {name}");
            sandbox.run(&line).succeeded();
        }
    }
    let other = sandbox.run("train pictures --preset quick --resume quick --embed-size 24");
    other.failed(2, "data.embed_size");
    sandbox.run("train --resume finer --from runs/file").failed(2, "training.from");
}

/// What a method that another program added has learnt can be used here, and not gone on with.
#[test]
fn a_run_of_a_method_that_is_not_here_is_refused_and_its_model_used() {
    let sandbox = trained("");
    let config = "runs/a/config.toml";
    let text = sandbox.text(config).replace("name = \"and\"", "name = \"vicreg\"");
    sandbox.write(config, &text);
    for name in ["last", "round-0", "round-1"] {
        let path = sandbox.checkpoint("a", name);
        let mut checkpoint = Checkpoint::load(&path).unwrap();
        checkpoint.config = RunConfig::from_toml(&text, "a test").unwrap();
        checkpoint.method = "vicreg".into();
        checkpoint.save(&path).unwrap();
    }
    for words in ["train --resume a", "train --config runs/a/config.toml --name b"] {
        sandbox.run(words).failed(2, "method.name; `vicreg`; anchorhood");
    }
    sandbox.run("train --method vicreg").failed(2, "vicreg");
    assert_eq!(names(&sandbox.path("runs")), ["a"]);
    sandbox.run("evaluate a").succeeded();
    sandbox.run("report a").succeeded();
}

#[test]
fn a_damaged_checkpoint_is_named_and_nothing_is_lost() {
    let sandbox = trained("");
    let last = "runs/a/checkpoints/last.safetensors";
    let whole = sandbox.read(last);
    for bytes in [&whole[..whole.len() - 7], b""] {
        sandbox.write(last, bytes);
        let named = "last.safetensors; not a whole checkpoint";
        sandbox.run("evaluate a").failed(1, &format!("{named}; round-0"));
        // Whoever trains on goes on from the newest that is whole, and mends it.
        let resumed = sandbox.run("train --resume a").succeeded();
        resumed.says(&format!("{named}; round-1"));
        sandbox.run("evaluate a").succeeded();
    }
    // The way out that the message names.
    std::fs::copy(sandbox.checkpoint("a", "round-0"), sandbox.path(last)).unwrap();
    sandbox.run("train --resume a").succeeded();
    assert_eq!(names(&sandbox.path("runs/a/checkpoints")).len(), 3);
    assert_eq!(sandbox.losses("a").len(), 2);
    // That of another network is none of this run's.
    let other = trained("--width 3");
    std::fs::copy(other.checkpoint("a", "last"), sandbox.path(last)).unwrap();
    sandbox.run("train --resume a").failed(2, "network.width (3 ≠ 2)");
}
