//! Methods beside each other, and runs for so many minutes, as a user asks for them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::SystemTime;

use anchorhood::train::RunConfig;
use serde_json::Value;

use crate::common::{Ran, Sandbox, bits, names};
use crate::folders;

/// Few small pictures and a narrow network.
const TINY: &str = "shapes --shapes-train 48 --shapes-test 16 --size 16 --width 2 --batch 16 --rounds 1 --threads 1";

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn compare(sandbox: &Sandbox, more: &str) -> Ran {
    sandbox.run(&words(&format!("compare {TINY} {more}")))
}

fn config(run: &Path) -> RunConfig {
    let text = fs::read_to_string(run.join("config.toml")).unwrap();
    RunConfig::from_toml(&text, "a test").unwrap()
}

fn written(file: &Path) -> SystemTime {
    file.metadata().unwrap().modified().unwrap()
}

/// Each with as many views, each in its folder, none trained twice; another is added to them.
#[test]
fn methods_are_given_the_same_and_trained_once() {
    let sandbox = Sandbox::new();
    let ran = compare(&sandbox, "--methods and,simclr --view-epochs 8").succeeded();
    for part in ["8 view-epochs for each", "over raw pixels", "simclr", "raw pixels"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    ran.says(&["and: 1 of 2", "simclr: 2 of 2", "round 0 epoch 1/4"]);
    let folder = sandbox.path("runs/compare-shapes");
    let all = ["and", "simclr"].map(|name| config(&folder.join(name)));
    assert_eq!(all.clone().map(|c| c.training.epochs), [4, 2]);
    assert_eq!(all.map(|c| c.view_epochs()), [8, 8]);
    let files = ["json", "md", "svg"].map(|e| format!("comparison.{e}"));
    let expected = [&["allowance.json".to_string(), "and".into()][..], &files, &["simclr".into()]];
    assert_eq!(names(&folder), expected.concat());

    let metrics = folder.join("and/metrics.jsonl");
    let before = written(&metrics);
    let more = compare(&sandbox, "--methods and,simclr,instance --view-epochs 8 --json");
    let found: Value = serde_json::from_str(&more.succeeded().stdout).unwrap();
    assert_eq!(found["allowance"], serde_json::json!({"view_epochs": 8}));
    assert_eq!(found["runs"].as_array().unwrap().len(), 3);
    for run in found["runs"].as_array().unwrap() {
        assert_eq!((&run["view_epochs"], &run["last"]["n"]), (&8.into(), &16.into()));
        let last = run["curve"].as_array().unwrap().last().unwrap();
        assert_eq!(last[1], run["last"]["top1"]);
    }
    assert_eq!(written(&metrics), before, "it was trained already");

    compare(&sandbox, "--methods and --view-epochs 9")
        .failed(2, &["compare-shapes", "8 view-epochs", "--name"]);
    compare(&sandbox, "--methods and --view-epochs 8 --lr 0.5").failed(2, &["learning_rate"]);
}

/// Its model too, which is given larger pictures than it learnt from; and what was typed is
/// compared when it goes on.
#[test]
fn a_run_of_a_comparison_is_the_one_that_train_makes() {
    let sandbox = Sandbox::new();
    let line = "--methods simclr,nat --view-epochs 4 --projector-width 8";
    compare(&sandbox, line).succeeded();
    compare(&sandbox, line).succeeded();
    let more = "--method simclr --epochs 1 --projector-width 8 --name alone";
    let train = format!("train {TINY} {more}");
    sandbox.run(&words(&train)).succeeded();
    let compared = sandbox.path("runs/compare-shapes/simclr");
    let alone = sandbox.path("runs/alone");
    let sizes = [&compared, &alone].map(|run| config(run).data.embed_size);
    assert_eq!(sizes, [Some(20); 2]);
    let last = |run: &Path| bits(&run.join("checkpoints/last.safetensors"));
    assert!(last(&compared) == last(&alone), "other weights");
    let model = |run: &Path| fs::read(run.join("model.safetensors")).unwrap();
    assert!(model(&compared) == model(&alone), "another model");
    let other = "--methods nat --view-epochs 4 --projector-width 8 --features 7";
    compare(&sandbox, other).failed(2, &["network.features"]);
}

/// All that the paper compares itself with, beside it; an epoch of a puzzle is one of each of its
/// tiles.
#[test]
fn the_papers_rivals_are_compared_too() {
    let sandbox = Sandbox::new();
    let rivals = "deepcluster,split-brain,counting,nat,jigsaw,context,colour,bigan";
    let ran = compare(
        &sandbox,
        &format!("--methods and,{rivals} --view-epochs 18 --projector-width 8 --clusters 4 --json"),
    );
    let found: Value = serde_json::from_str(&ran.succeeded().stdout).unwrap();
    let runs = found["runs"].as_array().unwrap();
    for rival in rivals.split(',') {
        let run = runs.iter().find(|run| run["method"] == rival);
        let run = run.unwrap_or_else(|| panic!("no {rival}: {found}"));
        assert_eq!(run["last"]["n"], 16, "{rival}");
    }
    let folder = sandbox.path("runs/compare-shapes");
    let epochs = ["and", "context", "jigsaw"].map(|name| config(&folder.join(name)));
    assert_eq!(epochs.map(|c| c.training.epochs), [9, 5, 1]);
}

#[test]
fn seeds_are_averaged() {
    let sandbox = Sandbox::new();
    let ran =
        compare(&sandbox, "--methods instance --view-epochs 2 --seeds 0,3 --name mine --quiet");
    let ran = ran.succeeded();
    assert!(ran.stdout.contains('±') && ran.stderr.is_empty(), "{ran:?}");
    let runs = names(&sandbox.path("runs/mine"));
    for run in ["instance", "instance-seed-3"] {
        assert!(runs.iter().any(|name| name == run), "{runs:?}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let sandbox = Sandbox::new();
    for (more, parts) in [
        ("--methods and --view-epochs 2 --minutes 1", &["--minutes"][..]),
        ("--methods and --minutes 1 --epochs 2", &["--epochs"]),
        ("--methods and,magic --minutes 1", &["magic"]),
        ("--methods and --minutes 0", &["minutes above 0"]),
        ("--methods and --minutes 1 --knn-features memory", &["--knn-features"]),
        ("--methods and --view-epochs 1 --name ../x", &["../x"]),
    ] {
        compare(&sandbox, more).failed(2, parts);
    }
    assert!(!sandbox.path("runs").exists(), "nothing is left behind");
}

/// The epochs are found out once: the run that is begun with them is the same again.
#[test]
fn minutes_become_epochs_that_are_kept() {
    let sandbox = Sandbox::new();
    let line = format!("train {TINY} --features 8 --name a --minutes 0.1 --warm-up 1000");
    let ran = sandbox.run(&words(&line)).succeeded();
    let ran = ran.says(&["0.1 minutes are", "in each of 2 rounds", "pictures a second", "warm-up"]);
    assert_eq!(ran.stderr.matches("raw pixels: kNN").count(), 1, "{}", ran.stderr);
    let run = sandbox.path("runs/a");
    let training = config(&run).training;
    assert!(training.epochs > 1);
    assert!((training.warm_up - training.epochs as f64 / 10.0).abs() < 1e-9);
    assert_eq!(names(&sandbox.path("")), ["runs"], "nothing is left of measuring");
    assert_eq!(names(&sandbox.path("runs")), ["a"]);
    let again = ["train", "--config", "runs/a/config.toml", "--name", "b", "--quiet"];
    sandbox.run(&again).succeeded();
    let last = |run: &str| bits(&sandbox.path(&format!("runs/{run}/checkpoints/last.safetensors")));
    assert!(last("a") == last("b"), "other weights");
}

/// Nobody said how long: no longer than five minutes on a CPU, whatever machine that is. Here a
/// thread of a wide network makes it a slow one.
#[test]
fn the_default_is_shortened_where_a_machine_is_slow() {
    let sandbox = Sandbox::new();
    folders::fill(&sandbox.path("pictures"), 1000);
    let line = "train pictures --size 16 --width 48 --threads 1 --name slow";
    let mut command = sandbox.command(&words(line));
    let mut running = command.stderr(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(running.stderr.take().unwrap()).lines();
    let mut told = told.map(Result::unwrap);
    let fitted = told.find(|line| line.starts_with("4.5 minutes are"));
    let of = told.next().unwrap_or_default();
    let begun = told.any(|line| line.starts_with("round 0: every picture")); // its folder is there
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(fitted.is_some() && begun, "it was not shortened");
    // 100 epochs in each of five rounds are the most that few pictures have.
    assert!(of.contains("500 in all; --minutes or --epochs"), "{of}");
    let training = config(&sandbox.path("runs/slow")).training;
    let epochs = (training.rounds + 1) * training.epochs;
    assert!((3..500).contains(&epochs), "{epochs}");
    assert!((2..=4).contains(&training.rounds), "{}", training.rounds);
}

#[test]
fn too_few_minutes_say_how_many_would_do() {
    let sandbox = Sandbox::new();
    let line = format!("train {TINY} --minutes 0.02");
    sandbox.run(&words(&line)).failed(2, &["too little", "each of 2 rounds", "give --minutes 0.1"]);
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
    for other in ["--epochs 3", "--resume a"] {
        let line = format!("train --minutes 1 {other}");
        sandbox.run(&words(&line)).failed(2, &["--minutes"]);
    }
}
