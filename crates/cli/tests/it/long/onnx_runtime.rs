//! ONNX models in every command that takes a model: what we export and read again makes the vectors
//! of the run itself; what only a network of ours can do is refused.

use std::path::PathBuf;
use std::process::Command;

use anchorhood_testing::python_with;

use crate::common::{Ran, Sandbox, trained};
use crate::folders::fill;

/// Where Python's package has the library; skips where there is none.
fn runtime() -> Option<PathBuf> {
    let python = python_with(&["onnxruntime"])?;
    let code = "import onnxruntime, os; print(os.path.dirname(onnxruntime.__file__))";
    let said = Command::new(python).args(["-c", code]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    Some(PathBuf::from(said.trim()).join("capi"))
}

/// A tiny run, its ONNX model, thirty pictures, and the library that runs it.
struct Models {
    sandbox: Sandbox,
    runtime: PathBuf,
}

impl Models {
    fn new() -> Option<Models> {
        let runtime = runtime()?;
        let sandbox = trained("");
        sandbox.run("export a --onnx m.onnx").succeeded();
        for (class, count) in [("x", 14), ("y", 16)] {
            fill(&sandbox.path(&format!("pictures/{class}")), count);
        }
        Some(Models { sandbox, runtime })
    }

    fn run(&self, words: &str) -> Ran {
        Ran::of(self.sandbox.command(words).env("ANCHORHOOD_ONNXRUNTIME", &self.runtime))
    }

    fn vectors(&self, model: &str, more: &str) -> Vec<Vec<f64>> {
        let embed = format!("embed --model {model} pictures -o v.jsonl --overwrite {more}");
        self.run(&embed).succeeded();
        let row = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let vector = row["vector"].as_array().unwrap();
            vector.iter().map(|v| v.as_f64().unwrap()).collect()
        };
        self.sandbox.text("v.jsonl").lines().map(row).collect()
    }
}

#[test]
#[ignore = "long: needs ONNX Runtime"]
fn a_model_read_again_makes_the_runs_vectors() {
    let Some(models) = Models::new() else { return };
    let (run, onnx) = (models.vectors("a", ""), models.vectors("m.onnx", ""));
    let pairs = run.iter().flatten().zip(onnx.iter().flatten());
    let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert_eq!((run.len(), onnx.len()), (30, 30));
    assert!(worst < 1e-4, "{worst}");
    let bits = |threads| models.vectors("m.onnx", &format!("--threads {threads}"));
    assert_eq!(bits(1), bits(3), "the same bits on any number of threads");
}

#[test]
#[ignore = "long: needs ONNX Runtime"]
fn every_command_takes_it() {
    let Some(models) = Models::new() else { return };
    let run = |words: &str| models.run(words).succeeded();
    let ran = run("index pictures --model m.onnx -o p.index").prints("30 pictures");
    ran.says("16×16 pixels; as the file says; vectors of 8; ONNX Runtime 1.");
    let find = "neighbours p.index pictures/x/7.png --model";
    run(&format!("{find} m.onnx")).prints("1.0000  x/7.png");
    models.run(&format!("{find} a")).failed(2, "another model");
    run("duplicates p.index");
    run("cluster p.index -k 2 -o two");
    models.sandbox.write("labels.csv", "path,label\nx/1.png,x\ny/1.png,y\n");
    run("classify --model m.onnx pictures --labels labels.csv -o classes.csv");
    run("model show m.onnx").prints("fingerprint");
    let judged = &run("evaluate m.onnx --data pictures --json").json()[0];
    let top1 = judged["model"]["top1"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&top1), "{judged}");
    run("info").prints("ONNX Runtime 1.");
}

#[test]
#[ignore = "long: needs ONNX Runtime"]
fn what_only_a_network_of_ours_can_do_is_refused() {
    let Some(models) = Models::new() else { return };
    for (words, named) in [
        ("export m.onnx --safetensors w.safetensors", "m.onnx; out of reach"),
        ("embed --model m.onnx pictures -o v.npy --layer conv4", "m.onnx; out of reach"),
        ("evaluate m.onnx --data pictures --linear", "--linear; judged by its vectors"),
        ("train pictures --from m.onnx", "--from m.onnx; ONNX"),
        ("evaluate m.onnx", "m.onnx; --data"),
    ] {
        models.run(words).failed(2, named);
    }
}
