//! The paper's tables and figures, all of them, at the smallest scale, as a user asks for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use crate::common::{Sandbox, bits, files_below, holds};

pub const ALL: [&str; 12] = [
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

pub fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// When every file below a folder was last written.
fn written(folder: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let files = files_below(folder).into_keys();
    let changed = |path: &Path| folder.join(path).metadata().unwrap().modified().unwrap();
    files.map(|path| (path.clone(), changed(&path))).collect()
}

/// Reproduces one or all, end to end; then once more, which trains and judges nothing. Gives the
/// folder of what was found.
pub fn reproduced(sandbox: &Sandbox, which: &str, names: &[&str]) -> PathBuf {
    let command = format!("reproduce {which} --scale smoke --device cpu");
    let told = sandbox.run(&command).succeeded();
    let root = sandbox.path("reproduced/smoke");
    for name in names {
        let folder = root.join(name);
        let found = json(&folder.join("results.json"));
        assert_eq!((&found["experiment"], &found["scale"]), (&(*name).into(), &"smoke".into()));
        assert_eq!(found["seeds"], serde_json::json!([0]));
        assert!(found["version"].is_string() && found["seconds"].as_f64() > Some(0.0));
        holds(found["devices"][0].as_str().unwrap(), "CPU");
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
        holds(&table, "Smaller than the paper:; xxh3-128:");
        for image in table.lines().filter(|line| line.starts_with("![")) {
            let file = image.split(['(', ')']).nth(1).unwrap();
            assert!(folder.join(file).is_file(), "{name}: {file}");
        }
        let plot = fs::read_to_string(folder.join("plot-1.svg")).unwrap();
        assert!(plot.trim_end().ends_with("</svg>"), "{name}");
        holds(&told.stdout, &format!("{name}/results.md"));
    }
    let before = written(&root.join("runs"));
    let results = root.join(names[0]).join("results.json");
    let first = fs::read(&results).unwrap();
    let again = sandbox.run(&command).succeeded();
    assert!(!again.stderr.contains("round 0"), "{}", again.stderr);
    assert_eq!(written(&root.join("runs")), before, "nothing is done twice");
    assert_eq!(first, fs::read(&results).unwrap(), "the same results, to the byte");
    root
}

/// The run that shares round 0 with an Instance run ends in the bits of one that trained it itself.
#[test]
fn one_experiment_is_reproduced_and_never_twice() {
    let sandbox = Sandbox::new();
    let root = reproduced(&sandbox, "quality", &["quality"]);
    let quality = json(&root.join("quality/results.json"));
    let rounds = quality["runs"][0]["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 5, "round 0 comes from the Instance run");
    for (r, round) in rounds.iter().enumerate().skip(1) {
        let count = |what: &str| round[what].as_u64().unwrap();
        assert_eq!(count("anchors"), 40 * r as u64, "a quarter more each round");
        assert_eq!(count("consistent") + count("inconsistent"), count("anchors"));
    }
    let shared = "reproduced/smoke/runs/shapes-resnet18-and-r4-k1-linear-e2-s0";
    sandbox.run(&format!("train --config {shared}/config.toml --name alone --quiet")).succeeded();
    let last = sandbox.path(shared).join("checkpoints/last.safetensors");
    assert!(sandbox.bits("alone") == bits(&last));
}

/// Sets that are not there are named with their archive and the command that gets them; nothing is
/// invented.
#[test]
fn missing_data_sets_are_left_out_and_named() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("none")).unwrap();
    let listed = sandbox.said("reproduce --list");
    assert!(ALL.iter().all(|name| listed.contains(name)), "{listed}");
    let told = sandbox.run("reproduce table3 --data-folder none").succeeded();
    told.prints("CUB_200_2011.tgz; anchorhood data fetch cub200; not run");
    let found = json(&sandbox.path("reproduced/short/table3/results.json"));
    for cell in found["cells"].as_array().unwrap() {
        assert!(cell["mean"].is_null() && cell["left_out"].is_string(), "{cell}");
        assert!(cell["paper"].is_number());
    }
}

#[test]
fn a_damaged_record_is_named() {
    let sandbox = Sandbox::new();
    let record = "reproduced/smoke/runs/shapes-resnet18-instance-e2-s0/finished.json";
    sandbox.write(record, "{");
    let ran = sandbox.run("reproduce table5 --scale smoke --device cpu");
    ran.failed(1, "finished.json");
}
