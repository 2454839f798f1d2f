//! `anchorhood embed` as a user runs it, and what other programs read of it.

use std::fs;
use std::path::Path;

use crate::clients;
use crate::common::names;
use crate::folders::{fill, trained};

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// One folder in every format: pyarrow, DuckDB, NumPy and Python's own readers see the same.
#[test]
fn every_format_holds_the_same() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures/cat"), 5);
    fill(&sandbox.path("pictures/dog, \"ü\""), 4);
    for ending in ["parquet", "npy", "csv", "jsonl"] {
        let out = format!("v.{ending}");
        let ran = sandbox.run(&["embed", "--model", "a", "pictures", "-o", &out]);
        let ran = ran.succeeded();
        assert!(ran.stdout.contains("9 vectors of 8"), "{}", ran.stdout);
    }
    let left: Vec<String> = names(&sandbox.path("."));
    let partial = left.iter().filter(|n| n.starts_with('.'));
    assert_eq!(partial.count(), 0, "nothing is left beside: {left:?}");
    let rows = lines(&sandbox.path("v.jsonl"));
    assert_eq!(rows.len(), 9);
    assert_eq!(rows[0]["label"], "cat");
    assert_eq!(rows[8]["path"], "dog, \"ü\"/3.png");
    let paths = ["v.parquet", "v.npy", "v.csv", "v.jsonl"].map(|n| sandbox.path(n));
    let paths: Vec<&Path> = paths.iter().map(|p| p.as_path()).collect();
    clients::python("tables.py", &["pyarrow", "duckdb", "numpy"], &paths);
}

/// Shards made in any order, with the files renamed apart, hold the rows of one process to the bit.
#[test]
fn shards_hold_the_rows_of_one_process() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures/cat"), 9);
    fill(&sandbox.path("pictures/dog"), 8);
    let embed = |more: &[&str]| {
        let words = ["embed", "--model", "a", "pictures", "-o", "v.jsonl", "--quiet"];
        sandbox.run(&[&words[..], more].concat()).succeeded()
    };
    embed(&[]);
    let file = |i: usize| sandbox.path(&format!("v-{i:05}-of-00003.jsonl"));
    for i in ["2/3", "0/3", "1/3"] {
        embed(&["--shard", i]);
    }
    let parts = (0..3).map(|i| lines(&file(i)));
    let mut rows: Vec<_> = parts.flatten().collect();
    rows.sort_by_key(|row| row["path"].as_str().unwrap().to_owned());
    assert_eq!(rows, lines(&sandbox.path("v.jsonl")));
    // A shard that is there is skipped; one made again alone is the same.
    let before = fs::read(file(1)).unwrap();
    fs::write(file(0), "mine").unwrap();
    fs::remove_file(file(1)).unwrap();
    embed(&["--shard", "0/3"]);
    embed(&["--shard", "1/3"]);
    assert_eq!(fs::read(file(0)).unwrap(), b"mine");
    assert_eq!(fs::read(file(1)).unwrap(), before);
    embed(&["--shard", "0/3", "--overwrite"]);
    assert!(fs::read(file(0)).unwrap() != b"mine");
    // More shards than files: some tables are empty, none is an error.
    for ending in ["parquet", "npy", "csv"] {
        let out = format!("many.{ending}");
        let words = ["embed", "--model", "a", "pictures", "-o", &out, "--shard"];
        for i in 0..60 {
            let shard = format!("{i}/60");
            sandbox.run(&[&words[..], &[&shard]].concat()).succeeded();
        }
    }
    for wrong in ["3/3", "x", "1"] {
        let words = ["embed", "pictures", "-o", "w.csv", "--shard", wrong];
        sandbox.run(&words).failed(2, &["--shard"]);
    }
}

#[test]
fn a_layer_and_a_checkpoint_file() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 3);
    let round = "runs/a/checkpoints/round-0.safetensors";
    let embed = |out: &str, more: &[&str]| {
        let args = [&["embed", "--model", round, "pictures", "-o", out], more].concat();
        sandbox.run(&args)
    };
    embed("conv3.jsonl", &["--layer", "conv3"]).succeeded();
    let rows = lines(&sandbox.path("conv3.jsonl"));
    assert_eq!(rows[0]["vector"].as_array().unwrap().len(), 4, "width 2 doubled once");
    assert!(rows[0]["label"].is_null());
    embed("x.jsonl", &["--layer", "conv9"]).failed(2, &["conv9", "conv1", "fc"]);
}

#[test]
fn broken_pictures_are_named_and_the_rest_embedded() {
    let sandbox = trained(&[]);
    let folder = sandbox.path("pictures");
    fill(&folder, 4);
    fs::write(folder.join("text.jpg"), "this is no picture").unwrap();
    fs::write(folder.join("empty.png"), "").unwrap();
    let ran = sandbox.run(&["embed", "--model", "a", "pictures", "-o", "v.jsonl"]);
    ran.succeeded().says(&[
        "text.jpg: skipped: it is not a JPEG",
        "empty.png: skipped: the file is empty",
        "2 of 6 pictures could not be read",
    ]);
    assert_eq!(lines(&sandbox.path("v.jsonl")).len(), 4);
}

#[test]
fn what_cannot_be_asked_for() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 3);
    fs::create_dir(sandbox.path("empty")).unwrap();
    fs::create_dir(sandbox.path("bad")).unwrap();
    fs::write(sandbox.path("bad/text.jpg"), "no").unwrap();
    let embed = |model: &str, folder: &str, out: &str| {
        sandbox.run(&["embed", "--model", model, folder, "-o", out])
    };
    embed("a", "empty", "v.npy").failed(2, &["empty", "no pictures here"]);
    embed("a", "nowhere", "v.npy").failed(2, &["nowhere", "no such file or folder"]);
    embed("a", "bad", "v.npy").failed(1, &["none of its 1 pictures", "text.jpg"]);
    embed("a", "pictures", "v.xlsx").failed(2, &["v.xlsx", ".parquet, .npy, .csv, .jsonl"]);
    embed("a", "pictures", "no/v.npy").failed(2, &["no folder no"]);
    embed("b", "pictures", "v.npy").failed(2, &["no run called `b`", "runs has a"]);
    embed("pictures/0.png", "pictures", "v.npy").failed(2, &["0.png", "is no model"]);
    assert!(!sandbox.path("v.npy").exists());
    fs::write(sandbox.path("v.npy"), "mine").unwrap();
    embed("a", "pictures", "v.npy").failed(2, &["v.npy", "exists already", "--overwrite"]);
    assert_eq!(fs::read(sandbox.path("v.npy")).unwrap(), b"mine");
    fs::write(sandbox.path("w.paths.csv"), "mine").unwrap();
    embed("a", "pictures", "w.npy").failed(2, &["w.paths.csv", "exists already"]);
    assert_eq!(fs::read(sandbox.path("w.paths.csv")).unwrap(), b"mine");
}

/// A job killed in the middle, with a record half-written, ends in the same bytes as one that was
/// left alone.
#[test]
fn an_interrupted_job_goes_on() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 150);
    let embed = |out: &str, more: &[&str]| {
        let args =
            [&["embed", "--model", "a", "pictures", "--batch", "16", "-o", out], more].concat();
        sandbox.run(&args)
    };
    embed("whole.parquet", &[]).succeeded();
    // A journal as a crash leaves it: a second name keeps what the job removes when its table is
    // written.
    let (journal, kept) = (sandbox.path(".cut.parquet.journal"), sandbox.path("kept"));
    fs::write(&journal, "").unwrap();
    fs::hard_link(&journal, &kept).unwrap();
    embed("cut.parquet", &[]).succeeded();
    fs::remove_file(sandbox.path("cut.parquet")).unwrap();
    let bytes = fs::read(&kept).unwrap();
    fs::write(&journal, &bytes[..bytes.len() * 2 / 3]).unwrap();
    assert!(!sandbox.path("cut.parquet").exists());

    // Another model, folder or layer must not be mixed into it.
    embed("cut.parquet", &["--layer", "fc"]).failed(2, &["interrupted job", "layer", "--restart"]);
    let ran = embed("cut.parquet", &[]).succeeded();
    ran.says(&["cut off or damaged", "going on with an interrupted job"]);
    assert!(!journal.exists());
    let read = |name: &str| fs::read(sandbox.path(name)).unwrap();
    assert_eq!(read("cut.parquet"), read("whole.parquet"));
}
