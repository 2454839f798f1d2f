//! Damaged files, met by the commands that read them: each says so in a sentence, and none gives
//! figures. The libraries' own tests flip many more bits; here are a few, spread over the whole
//! file, through the real program.

use std::fs;
use std::path::Path;

use anchorhood::random::{Draws, Stream};
use anchorhood::train::Checkpoint;

use crate::common::Sandbox;
use crate::folders::{fill, trained};

/// Flips a bit in each of `n` equal parts of a file in turn, and has `look` see it.
fn flipped(path: &Path, n: usize, look: impl Fn(&str)) {
    let whole = fs::read(path).unwrap();
    for part in 0..n {
        let [at, bit, ..] = Draws::new(7, Stream::Test, 0, part as u64).block(0);
        let size = whole.len() / n;
        let (at, bit) = (part * size + at as usize % size, bit % 8);
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        fs::write(path, &bytes).unwrap();
        look(&format!("bit {bit} of byte {at}"));
    }
    fs::write(path, whole).unwrap();
}

const READERS: [&[&str]; 6] = [
    &["evaluate", "a"],
    &["embed", "--model", "a", "pictures", "-o", "v.csv"],
    &["index", "--model", "a", "pictures", "-o", "new.index"],
    &["export", "a", "--onnx", "m.onnx"],
    &["report", "a"],
    &["serve", "a", "--port", "0"],
];

fn refused_by_all(sandbox: &Sandbox, what: &str) {
    for command in READERS {
        let ran = sandbox.run(command);
        assert_eq!(ran.code, Some(1), "{what}: {command:?} {ran:?}");
        ran.failed(1, &["last.safetensors", "not a whole checkpoint"]);
    }
    for output in ["v.csv", "new.index", "m.onnx"] {
        assert!(!sandbox.path(output).exists(), "{what}: {output}");
    }
}

#[test]
fn a_damaged_checkpoint_is_refused_by_whoever_reads_it() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 4);
    let last = sandbox.path("runs/a/checkpoints/last.safetensors");
    flipped(&last, 4, |what| refused_by_all(&sandbox, what));
    // Numbers that are none, under right checksums.
    let whole = Checkpoint::load(&last).unwrap();
    for value in [f32::INFINITY, f32::NAN] {
        let mut bad = whole.clone();
        bad.weights[0].values[0] = value;
        bad.save(&last).unwrap();
        refused_by_all(&sandbox, &value.to_string());
    }
    let resumed = sandbox.run(&["train", "--resume", "a"]).succeeded();
    resumed.says(&["holds NaN", "the run goes on from", "round-1"]);
    sandbox.run(&["evaluate", "a"]).succeeded();
}

#[test]
fn a_damaged_index_is_refused() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 12);
    let args = ["index", "--model", "a", "pictures", "-o", "p.index"];
    sandbox.run(&args).succeeded();
    let find =
        || sandbox.run(&["neighbours", "--model", "a", "p.index", "pictures/7.png", "-k", "3"]);
    find().succeeded();
    flipped(&sandbox.path("p.index"), 10, |what| {
        let ran = find();
        assert_eq!(ran.code, Some(1), "{what}: {ran:?}");
        ran.failed(1, &["p.index"]);
    });
    find().succeeded();
}

/// A picture that is damaged is seen as grey, and named; anything else is refused.
#[test]
fn a_damaged_pack_is_noticed_by_train() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 40);
    let pack = ["data", "pack", "./mine", "-o", "mine.pack", "--size", "16"];
    sandbox.run(&pack).succeeded();
    flipped(&sandbox.path("mine.pack"), 10, |what| {
        let ran = sandbox.train(&["./mine.pack", "--rounds", "0"]);
        let warned = ran.stderr.contains("damaged; it is seen as plain grey");
        let refused = ran.code == Some(1) && ran.stderr.contains("mine.pack");
        assert!(warned || refused, "{what}: {ran:?}");
    });
}

/// Two at one name: the last to finish wins, and what it leaves is whole.
#[test]
fn two_that_pack_to_one_name_do_no_damage() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("mine"), 40);
    let pack = ["data", "pack", "./mine", "-o", "mine.pack", "--size", "16", "--force"];
    for _ in 0..3 {
        let mut both: Vec<_> = (0..2).map(|_| sandbox.command(&pack).spawn().unwrap()).collect();
        both.iter_mut().for_each(|p| assert!(p.wait().unwrap().success()));
        sandbox.run(&["data", "check", "mine.pack"]).succeeded();
    }
}
