//! Trainings that take long.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::common::{Sandbox, names};
use crate::folders;
use crate::reproduce::{ALL, json, reproduced};

#[test]
#[ignore = "long: trains all of the paper's methods"]
fn everything_is_reproduced_and_never_twice() {
    let sandbox = Sandbox::new();
    let root = reproduced(&sandbox, "all", &ALL);
    let cell = |name: &str, row: &str, column: &str| -> Value {
        let found = json(&root.join(name).join("results.json"));
        let cells = found["cells"].as_array().unwrap();
        let is = |c: &&Value| c["row"] == row && c["column"] == column;
        cells.iter().find(is).unwrap_or_else(|| panic!("{row}")).clone()
    };
    let supervised = cell("table1", "linear / conv5: Supervised", "CIFAR-10");
    assert_eq!(supervised["paper"], 91.8);
    assert!(supervised["difference"].is_null(), "shapes are compared with nothing");
    let theirs = cell("table1", "kNN / FC: DeepCluster", "SVHN");
    assert_eq!(theirs["paper"], 84.9);
    assert!(theirs["mean"].is_number(), "rivals are run too: {theirs}");
    let nat = cell("table1", "kNN / FC: NAT", "CIFAR-10");
    assert!(nat["paper"].is_null() && nat["mean"].is_number(), "{nat}");
    let table = fs::read_to_string(root.join("table1/results.md")).unwrap();
    let jigsaw = table.lines().find(|l| l.starts_with("| shapes-alexnet-jigsaw"));
    let jigsaw = jigsaw.unwrap_or_else(|| panic!("{table}"));
    assert!(jigsaw.contains("arrangement ") && jigsaw.contains("by guessing"));
    let tasks = fs::read_to_string(root.join("table1/tasks.svg")).unwrap();
    assert!(tasks.contains("shapes-alexnet-counting") && tasks.contains("accuracy "));

    let attention = json(&root.join("attention/results.json"));
    let pictures = attention["pictures"].as_array().unwrap();
    let failures = pictures.iter().filter(|p| p["failure"] == true).count();
    assert_eq!(failures, 1, "one failure, as in the paper");
    assert!(pictures.len() >= 3, "{attention}");
    let table = fs::read_to_string(root.join("attention/results.md")).unwrap();
    assert_eq!(table.matches(".png)").count(), pictures.len());
    let strips = names(&root.join("attention"));
    let strips = strips.iter().filter(|n| n.ends_with(".png")).count();
    assert_eq!(strips, pictures.len());
}

/// Nobody said how long: no longer than five minutes on a CPU, whatever machine that is. Here a
/// thread of a wide network makes it a slow one.
#[test]
#[ignore = "long: trains a wide network"]
fn the_default_is_shortened_where_a_machine_is_slow() {
    let sandbox = Sandbox::new();
    folders::fill(&sandbox.path("pictures"), 1000);
    let line = "train pictures --size 16 --width 48 --threads 1 --name slow";
    let mut running = sandbox.command(line).stderr(Stdio::piped()).spawn().unwrap();
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
    let training = sandbox.config("slow").training;
    let epochs = (training.rounds + 1) * training.epochs;
    assert!((3..500).contains(&epochs), "{epochs}");
    assert!((2..=4).contains(&training.rounds), "{}", training.rounds);
}
