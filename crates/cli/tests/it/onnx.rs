//! ONNX models in every command that takes a model: what we export and read again makes the vectors
//! of the run itself; what only a network of ours can do is refused.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anchorhood_testing::python_with;

use crate::common::{Ran, Sandbox};
use crate::folders::{fill, trained};

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
        let sandbox = trained(&[]);
        sandbox.run(&["export", "a", "--onnx", "m.onnx"]).succeeded();
        for (class, count) in [("x", 14), ("y", 16)] {
            fill(&sandbox.path(&format!("pictures/{class}")), count);
        }
        Some(Models { sandbox, runtime })
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.sandbox.command(args);
        command.env("ANCHORHOOD_ONNXRUNTIME", &self.runtime);
        Ran::from(command.output().expect("the program starts"))
    }

    fn vectors(&self, model: &str, more: &[&str]) -> Vec<Vec<f64>> {
        let model = ["embed", "--model", model];
        let args = [&model[..], &["pictures", "-o", "v.jsonl", "--overwrite"]].concat();
        self.run(&[&args[..], more].concat()).succeeded();
        let text = fs::read_to_string(self.sandbox.path("v.jsonl")).unwrap();
        let row = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let vector = row["vector"].as_array().unwrap();
            vector.iter().map(|v| v.as_f64().unwrap()).collect()
        };
        text.lines().map(row).collect()
    }
}

#[test]
fn a_model_read_again_makes_the_runs_vectors() {
    let Some(models) = Models::new() else { return };
    let (run, onnx) = (models.vectors("a", &[]), models.vectors("m.onnx", &[]));
    let pairs = run.iter().flatten().zip(onnx.iter().flatten());
    let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert_eq!((run.len(), onnx.len()), (30, 30));
    assert!(worst < 1e-4, "{worst}");
    let bits = |threads| models.vectors("m.onnx", &["--threads", threads]);
    assert_eq!(bits("1"), bits("3"), "the same bits on any number of threads");
}

#[test]
fn every_command_takes_it() {
    let Some(models) = Models::new() else { return };
    let run = |args: &[&str]| models.run(args).succeeded();
    let ran = run(&["index", "pictures", "--model", "m.onnx", "-o", "p.index"]);
    assert!(ran.stdout.contains("30 pictures"), "{}", ran.stdout);
    ran.says(&["16×16 pixels", "as the file says", "vectors of 8", "ONNX Runtime 1."]);
    let query = ["p.index", "pictures/x/7.png", "--model"];
    let find = |model| [&["neighbours"], &query[..], &[model]].concat();
    let found = run(&find("m.onnx"));
    assert!(found.stdout.contains("1.0000  x/7.png"), "{}", found.stdout);
    models.run(&find("a")).failed(2, &["another model"]);
    run(&["duplicates", "p.index"]);
    run(&["cluster", "p.index", "-k", "2", "-o", "two"]);
    let labels = "path,label\nx/1.png,x\ny/1.png,y\n";
    fs::write(models.sandbox.path("labels.csv"), labels).unwrap();
    let classify = ["classify", "--model", "m.onnx", "pictures", "--labels", "labels.csv"];
    run(&[&classify[..], &["-o", "classes.csv"]].concat());
    let shown = run(&["model", "show", "m.onnx"]);
    assert!(shown.stdout.contains("fingerprint"), "{}", shown.stdout);
    let judged = run(&["evaluate", "m.onnx", "--data", "pictures", "--json"]);
    let judged: serde_json::Value = serde_json::from_str(&judged.stdout).unwrap();
    let top1 = judged["model"]["top1"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&top1), "{judged}");
    let info = run(&["info"]);
    assert!(info.stdout.contains("ONNX Runtime 1."), "{}", info.stdout);
}

#[test]
fn what_only_a_network_of_ours_can_do_is_refused() {
    let Some(models) = Models::new() else { return };
    let export = ["export", "m.onnx", "--safetensors", "w.safetensors"];
    models.run(&export).failed(2, &["m.onnx", "out of reach"]);
    let layer = ["embed", "--model", "m.onnx", "pictures", "-o", "v.npy", "--layer", "conv4"];
    models.run(&layer).failed(2, &["m.onnx", "out of reach"]);
    let linear = ["evaluate", "m.onnx", "--data", "pictures", "--linear"];
    models.run(&linear).failed(2, &["--linear", "judged by its vectors"]);
    let from = ["train", "pictures", "--from", "m.onnx"];
    models.run(&from).failed(2, &["--from m.onnx", "ONNX"]);
    let nowhere = ["evaluate", "m.onnx"];
    models.run(&nowhere).failed(2, &["m.onnx", "--data"]);
}

/// Whether or not there is a library: what is no encoder is named, before one is asked for.
#[test]
fn files_that_are_no_encoders_are_named() {
    let sandbox = Sandbox::new();
    fill(&sandbox.path("pictures"), 3);
    fs::write(sandbox.path("text.onnx"), "not a model").unwrap();
    fs::write(sandbox.path("empty.onnx"), "").unwrap();
    for file in ["text.onnx", "empty.onnx"] {
        let args = ["index", "--model", file, "pictures", "-o", "p.index"];
        sandbox.run(&args).failed(1, &[file, "ONNX"]);
    }
    assert!(!sandbox.path("p.index").exists());
}

/// A library that is not one is named, with the variable that named it.
#[test]
fn a_library_that_is_none_is_named() {
    let sandbox = trained(&[]);
    fill(&sandbox.path("pictures"), 3);
    sandbox.run(&["export", "a", "--onnx", "m.onnx"]).succeeded();
    fs::write(sandbox.path("libonnxruntime.so"), "text").unwrap();
    let mut command = sandbox.command(&["index", "--model", "m.onnx", "pictures", "-o", "p.index"]);
    command.env("ANCHORHOOD_ONNXRUNTIME", sandbox.path("libonnxruntime.so"));
    let ran = Ran::from(command.output().unwrap());
    ran.failed(1, &["ANCHORHOOD_ONNXRUNTIME", "cannot be opened"]);
}
