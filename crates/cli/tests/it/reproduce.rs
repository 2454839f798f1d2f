//! The paper's tables and figures, all of them, at the smallest scale, as a user asks for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use crate::common::{self, Sandbox, names};

const ALL: [&str; 12] = [
    "table1",
    "table2",
    "table3",
    "smallset",
    "table4",
    "table5",
    "neighbours",
    "rounds",
    "epochs",
    "oneoff",
    "quality",
    "attention",
];

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// When every file below a folder was last written.
fn written(folder: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(written(&path));
        } else {
            all.insert(path.clone(), path.metadata().unwrap().modified().unwrap());
        }
    }
    all
}

/// Everything the paper reports, end to end; then once more, which trains and judges nothing.
#[test]
fn everything_is_reproduced_and_never_twice() {
    let sandbox = Sandbox::new();
    let command = ["reproduce", "all", "--scale", "smoke", "--device", "cpu"];
    let told = sandbox.run(&command).succeeded();
    let root = sandbox.path("reproduced/smoke");
    for name in ALL {
        let folder = root.join(name);
        let found = json(&folder.join("results.json"));
        assert_eq!(found["experiment"], name);
        assert_eq!(found["scale"], "smoke");
        assert_eq!(found["seeds"], serde_json::json!([0]));
        assert!(found["version"].is_string() && found["seconds"].as_f64() > Some(0.0));
        assert!(found["devices"][0].as_str().unwrap().contains("CPU"));
        let smaller = found["smaller_than_the_paper"].as_array().unwrap();
        assert!(smaller.len() > 2, "it says what is smaller");
        let data = &found["data"][0];
        assert_eq!((&data["name"], &data["train"]), (&"shapes".into(), &160.into()));
        let sum = data["fingerprint"].as_str().unwrap();
        assert!(sum.starts_with("xxh3-128:") && sum.len() == 9 + 32, "{sum}");

        let cells = found["cells"].as_array().unwrap();
        let judged = cells.iter().filter(|c| !c["protocol"].is_null());
        for cell in judged.clone() {
            let mean = cell["mean"].as_f64().unwrap_or_else(|| panic!("{cell}"));
            assert!((0.0..=100.0).contains(&mean), "{cell}");
            assert_eq!(cell["pictures"], 80, "{cell}");
        }
        assert!(judged.count() > 0, "{name}");

        let table = fs::read_to_string(folder.join("results.md")).unwrap();
        assert!(table.contains("Smaller than the paper:") && table.contains("xxh3-128:"));
        for image in table.lines().filter(|line| line.starts_with("![")) {
            let file = image.split(['(', ')']).nth(1).unwrap();
            assert!(folder.join(file).is_file(), "{name}: {file}");
        }
        let plot = fs::read_to_string(folder.join("plot-1.svg")).unwrap();
        assert!(plot.trim_end().ends_with("</svg>"), "{name}");
        assert!(told.stdout.contains(&format!("{name}/results.md")), "{}", told.stdout);
    }
    shows_what_the_paper_shows(&root);

    let before = written(&root.join("runs"));
    let first = fs::read(root.join("table1/results.json")).unwrap();
    let again = sandbox.run(&command).succeeded();
    assert!(!again.stderr.contains("round 0"), "{}", again.stderr);
    assert_eq!(written(&root.join("runs")), before, "nothing is done twice");
    let second = fs::read(root.join("table1/results.json")).unwrap();
    assert_eq!(first, second, "the same results, to the byte");
}

fn shows_what_the_paper_shows(root: &Path) {
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

    let quality = json(&root.join("quality/results.json"));
    let rounds = quality["runs"][0]["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 5, "round 0 comes from the Instance run");
    for (r, round) in rounds.iter().enumerate().skip(1) {
        let count = |what: &str| round[what].as_u64().unwrap();
        assert_eq!(count("anchors"), 40 * r as u64, "a quarter more each round");
        assert_eq!(count("consistent") + count("inconsistent"), count("anchors"));
    }

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

/// A run that is begun from an Instance run ends in the bits of one that trained round 0 itself.
#[test]
fn sharing_round_0_changes_no_bit() {
    let sandbox = Sandbox::new();
    let command = ["reproduce", "quality", "--scale", "smoke", "--device", "cpu"];
    sandbox.run(&command).succeeded();
    let shared = "shapes-resnet18-and-r4-k1-linear-e2-s0";
    let runs = sandbox.path("reproduced/smoke/runs");
    let config = runs.join(shared).join("config.toml");
    let config = config.to_str().unwrap();
    let train = ["train", "--config", config, "--name", "alone", "--quiet"];
    sandbox.run(&train).succeeded();
    let last = |run: &Path| common::bits(&run.join("checkpoints/last.safetensors"));
    assert!(last(&sandbox.path("runs/alone")) == last(&runs.join(shared)));
}

/// Sets that are not there are named with their archive and the command that gets them; nothing is
/// invented.
#[test]
fn missing_data_sets_are_left_out_and_named() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("none")).unwrap();
    let told = sandbox.run(&["reproduce", "table3", "--data-folder", "none"]);
    let told = told.succeeded();
    for part in ["CUB_200_2011.tgz", "anchorhood data fetch cub200", "not run"] {
        assert!(told.stdout.contains(part), "{}", told.stdout);
    }
    let found = json(&sandbox.path("reproduced/short/table3/results.json"));
    for cell in found["cells"].as_array().unwrap() {
        assert!(cell["mean"].is_null() && cell["left_out"].is_string(), "{cell}");
        assert!(cell["paper"].is_number());
    }
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let sandbox = Sandbox::new();
    let listed = sandbox.run(&["reproduce", "--list"]).succeeded();
    for name in ALL {
        assert!(listed.stdout.contains(name), "{}", listed.stdout);
    }
    let unknown = sandbox.run(&["reproduce", "table9", "--scale", "smoke"]);
    unknown.failed(2, &["table9", "table1", "oneoff", "attention", "all"]);
    let nowhere = ["reproduce", "table3", "--data-folder", "no/such"];
    sandbox.run(&nowhere).failed(2, &["no/such"]);
    assert_eq!(sandbox.run(&["reproduce"]).code, Some(2));
    assert_eq!(sandbox.run(&["reproduce", "all", "--seeds", "0"]).code, Some(2));
    assert_eq!(sandbox.run(&["reproduce", "all", "--scale", "huge"]).code, Some(2));

    fs::write(sandbox.path("file"), "in the way").unwrap();
    let blocked = ["reproduce", "table5", "--scale", "smoke", "-o", "file"];
    sandbox.run(&blocked).failed(1, &["file", "-o"]);

    let run = "reproduced/smoke/runs/shapes-resnet18-instance-e2-s0";
    fs::create_dir_all(sandbox.path(run)).unwrap();
    fs::write(sandbox.path(run).join("finished.json"), "{").unwrap();
    let damaged = ["reproduce", "table5", "--scale", "smoke", "--device", "cpu"];
    sandbox.run(&damaged).failed(1, &["finished.json"]);
}
