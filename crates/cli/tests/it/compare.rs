//! Methods beside each other, and runs for so many minutes, as a user asks for them.

use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;

use crate::common::{Ran, Sandbox, names};

/// Few small pictures and a narrow network.
const TINY: &str = "shapes --shapes-train 48 --shapes-test 16 --size 16 --width 2 --batch 16 \
    --rounds 1 --threads 1";

fn compare(sandbox: &Sandbox, more: &str) -> Ran {
    sandbox.run(&format!("compare {TINY} {more}"))
}

fn written(file: &Path) -> SystemTime {
    file.metadata().unwrap().modified().unwrap()
}

/// Each with as many views, each in its folder, none trained twice; another is added to them.
#[test]
fn methods_are_given_the_same_and_trained_once() {
    let sandbox = Sandbox::new();
    let ran = compare(&sandbox, "--methods and,simclr --view-epochs 8").succeeded();
    ran.prints("8 view-epochs for each; over raw pixels; simclr; raw pixels")
        .says("and: 1 of 2; simclr: 2 of 2; round 0 epoch 1/4");
    let folder = sandbox.path("runs/compare-shapes");
    let all = ["and", "simclr"].map(|name| sandbox.config(&format!("compare-shapes/{name}")));
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

    let other = compare(&sandbox, "--methods and --view-epochs 9");
    other.failed(2, "compare-shapes; 8 view-epochs; --name");
    compare(&sandbox, "--methods and --view-epochs 8 --lr 0.5").failed(2, "learning_rate");
}

/// Its model too, which is given larger pictures than it learnt from; and what was typed is
/// compared when it goes on.
#[test]
fn a_run_of_a_comparison_is_the_one_that_train_makes() {
    let sandbox = Sandbox::new();
    let line = "--methods simclr,nat --view-epochs 4 --projector-width 8";
    compare(&sandbox, line).succeeded();
    compare(&sandbox, line).succeeded();
    let train = format!("train {TINY} --method simclr --epochs 1 --projector-width 8 --name alone");
    sandbox.run(&train).succeeded();
    let both = ["compare-shapes/simclr", "alone"];
    assert_eq!(both.map(|run| sandbox.config(run).data.embed_size), [Some(20); 2]);
    assert!(sandbox.bits(both[0]) == sandbox.bits(both[1]), "other weights");
    let model = |run: &str| sandbox.read(&format!("runs/{run}/model.safetensors"));
    assert!(model(both[0]) == model(both[1]), "another model");
    let other = "--methods nat --view-epochs 4 --projector-width 8 --features 7";
    compare(&sandbox, other).failed(2, "network.features");
}

/// All that the paper compares itself with, beside it; an epoch of a puzzle is one of each of its
/// tiles.
#[test]
fn the_papers_rivals_are_compared_too() {
    let sandbox = Sandbox::new();
    let rivals = "deepcluster,split-brain,counting,nat,jigsaw,context,colour,bigan";
    let more = "--view-epochs 18 --projector-width 8 --clusters 4 --json";
    let ran = compare(&sandbox, &format!("--methods and,{rivals} {more}"));
    let found: Value = serde_json::from_str(&ran.succeeded().stdout).unwrap();
    let runs = found["runs"].as_array().unwrap();
    for rival in rivals.split(',') {
        let run = runs.iter().find(|run| run["method"] == rival);
        let run = run.unwrap_or_else(|| panic!("no {rival}: {found}"));
        assert_eq!(run["last"]["n"], 16, "{rival}");
    }
    let config = |name: &str| sandbox.config(&format!("compare-shapes/{name}"));
    assert_eq!(["and", "context", "jigsaw"].map(|name| config(name).training.epochs), [9, 5, 1]);
}

#[test]
fn seeds_are_averaged() {
    let sandbox = Sandbox::new();
    let line = "--methods instance --view-epochs 2 --seeds 0,3 --name mine --quiet";
    let ran = compare(&sandbox, line).succeeded();
    assert!(ran.stdout.contains('±') && ran.stderr.is_empty(), "{ran:?}");
    let runs = names(&sandbox.path("runs/mine"));
    for run in ["instance", "instance-seed-3"] {
        assert!(runs.iter().any(|name| name == run), "{runs:?}");
    }
}

/// The epochs are found out once: the run that is begun with them is the same again.
#[test]
fn minutes_become_epochs_that_are_kept() {
    let sandbox = Sandbox::new();
    let line = format!("train {TINY} --features 8 --name a --minutes 0.1 --warm-up 1000");
    let ran = sandbox.run(&line).succeeded();
    let ran = ran.says("0.1 minutes are; in each of 2 rounds; pictures a second; warm-up");
    assert_eq!(ran.stderr.matches("raw pixels: kNN").count(), 1, "{}", ran.stderr);
    let training = sandbox.config("a").training;
    assert!(training.epochs > 1);
    assert!((training.warm_up - training.epochs as f64 / 10.0).abs() < 1e-9);
    assert_eq!(names(&sandbox.path("")), ["runs"], "nothing is left of measuring");
    assert_eq!(names(&sandbox.path("runs")), ["a"]);
    sandbox.run("train --config runs/a/config.toml --name b --quiet").succeeded();
    assert!(sandbox.bits("a") == sandbox.bits("b"), "other weights");
}

#[test]
fn too_few_minutes_say_how_many_would_do() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&format!("train {TINY} --minutes 0.02"));
    ran.failed(2, "too little; each of 2 rounds; give --minutes 0.1");
    assert!(!sandbox.path("runs").exists(), "no run is left behind");
    compare(&sandbox, "--methods and --minutes 0.000001").failed(2, "too little; --minutes");
    let nowhere = sandbox.run("compare nowhere/at/all --methods and --view-epochs 1");
    nowhere.failed(2, "nowhere");
}
