//! `anchorhood embed` as a user runs it.

use std::fs;

use serde_json::Value;

use crate::common::{Sandbox, names, trained};
use crate::folders::fill;

fn lines(sandbox: &Sandbox, file: &str) -> Vec<Value> {
    sandbox.text(file).lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// One folder in every format, as `v.parquet`, `v.npy`, `v.csv` and `v.jsonl`.
pub fn every_format() -> Sandbox {
    let sandbox = trained("");
    fill(&sandbox.path("pictures/cat"), 5);
    fill(&sandbox.path("pictures/dog, \"ü\""), 4);
    for ending in ["parquet", "npy", "csv", "jsonl"] {
        let ran = sandbox.run(&format!("embed --model a pictures -o v.{ending}"));
        ran.succeeded().prints("9 vectors of 8");
    }
    sandbox
}

#[test]
fn a_folder_is_embedded_in_every_format() {
    let sandbox = every_format();
    let left: Vec<String> = names(&sandbox.path("."));
    let partial = left.iter().filter(|n| n.starts_with('.'));
    assert_eq!(partial.count(), 0, "nothing is left beside: {left:?}");
    let rows = lines(&sandbox, "v.jsonl");
    assert_eq!(rows.len(), 9);
    assert_eq!(rows[0]["label"], "cat");
    assert_eq!(rows[8]["path"], "dog, \"ü\"/3.png");
    // A layer of a checkpoint file.
    let layer = "embed --model runs/a/checkpoints/round-0.safetensors pictures --layer conv3";
    sandbox.run(&format!("{layer} -o conv3.jsonl --labels none")).succeeded();
    let rows = lines(&sandbox, "conv3.jsonl");
    assert_eq!(rows[0]["vector"].as_array().unwrap().len(), 4, "width 2 doubled once");
    assert!(rows[0]["label"].is_null());
}

/// Shards made in any order, with the files renamed apart, hold the rows of one process to the bit.
#[test]
fn shards_hold_the_rows_of_one_process() {
    let sandbox = trained("");
    fill(&sandbox.path("pictures/cat"), 9);
    fill(&sandbox.path("pictures/dog"), 8);
    let embed = |more: &str| {
        let line = format!("embed --model a pictures -o v.jsonl --quiet {more}");
        sandbox.run(&line).succeeded()
    };
    embed("");
    let file = |i: usize| format!("v-{i:05}-of-00003.jsonl");
    for i in ["2/3", "0/3", "1/3"] {
        embed(&format!("--shard {i}"));
    }
    let mut rows: Vec<_> = (0..3).flat_map(|i| lines(&sandbox, &file(i))).collect();
    rows.sort_by_key(|row| row["path"].as_str().unwrap().to_owned());
    assert_eq!(rows, lines(&sandbox, "v.jsonl"));
    // A shard that is there is skipped; one made again alone is the same.
    let before = sandbox.read(&file(1));
    sandbox.write(&file(0), "mine");
    fs::remove_file(sandbox.path(&file(1))).unwrap();
    embed("--shard 0/3");
    embed("--shard 1/3");
    assert_eq!(sandbox.read(&file(0)), b"mine");
    assert_eq!(sandbox.read(&file(1)), before);
    embed("--shard 0/3 --overwrite");
    assert!(sandbox.read(&file(0)) != b"mine");
    // More shards than files: some tables are empty, none is an error.
    for ending in ["parquet", "npy", "csv"] {
        for i in [0, 7, 59] {
            let line = format!("embed --model a pictures -o many.{ending} --shard {i}/60");
            sandbox.run(&line).succeeded();
        }
    }
}

#[test]
fn broken_pictures_are_named_and_the_rest_embedded() {
    let sandbox = trained("");
    fill(&sandbox.path("pictures"), 4);
    sandbox.write("pictures/text.jpg", "this is no picture");
    sandbox.write("pictures/empty.png", "");
    sandbox
        .run("embed --model a pictures -o v.jsonl")
        .succeeded()
        .says("text.jpg: skipped: it is not a JPEG; empty.png: skipped: the file is empty")
        .says("2 of 6 pictures could not be read");
    assert_eq!(lines(&sandbox, "v.jsonl").len(), 4);
}

/// A job killed in the middle, with a record half-written, ends in the same bytes as one that was
/// left alone.
#[test]
fn an_interrupted_job_goes_on() {
    let sandbox = trained("");
    fill(&sandbox.path("pictures"), 150);
    let embed = |out: &str| sandbox.run(&format!("embed --model a pictures --batch 16 -o {out}"));
    embed("whole.parquet").succeeded();
    // A journal as a crash leaves it: a second name keeps what the job removes when its table is
    // written.
    let (journal, kept) = (sandbox.path(".cut.parquet.journal"), sandbox.path("kept"));
    fs::write(&journal, "").unwrap();
    fs::hard_link(&journal, &kept).unwrap();
    embed("cut.parquet").succeeded();
    fs::remove_file(sandbox.path("cut.parquet")).unwrap();
    let bytes = fs::read(&kept).unwrap();
    fs::write(&journal, &bytes[..bytes.len() * 2 / 3]).unwrap();
    assert!(!sandbox.path("cut.parquet").exists());

    // Another model, folder or layer must not be mixed into it.
    embed("cut.parquet --layer fc").failed(2, "interrupted job; layer; --restart");
    let ran = embed("cut.parquet").succeeded();
    ran.says("cut off or damaged; going on with an interrupted job");
    assert!(!journal.exists());
    assert_eq!(sandbox.read("cut.parquet"), sandbox.read("whole.parquet"));
}
