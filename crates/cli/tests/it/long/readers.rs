//! Other people's programs read what ours writes, and agree with it.

use std::fs;
use std::path::Path;

use crate::clients;
use crate::common::{Sandbox, names, signal, trained, wait_for};
use crate::embed::every_format;
use crate::folders::fill;
use crate::methods::runs_everywhere;

/// Our own vectors of 12 pictures of the network's size.
fn embedded(sandbox: &Sandbox) {
    fill(&sandbox.path("pictures"), 12);
    sandbox.run("embed --model a pictures -o v.jsonl --device cpu").succeeded();
}

/// ONNX Runtime makes our vectors of `pictures` with the model that was exported.
fn onnx_agrees(sandbox: &Sandbox) {
    let paths = ["m.onnx", "pictures", "v.jsonl"].map(|n| sandbox.path(n));
    clients::python("onnx_agrees.py", &["onnx", "onnxruntime", "numpy", "PIL"], &paths);
}

/// A ResNet, an AlexNet, and colours in CIE Lab: channels apart and side by side again.
#[test]
#[ignore = "long: needs ONNX Runtime"]
fn onnxruntime_runs_every_network() {
    for more in ["", "--network alexnet", "--colours split"] {
        let sandbox = trained(more);
        embedded(&sandbox);
        sandbox.run("export a --onnx m.onnx").succeeded();
        onnx_agrees(&sandbox);
    }
}

/// The layer that the method judges, below its heads.
#[test]
#[ignore = "long: needs ONNX Runtime"]
fn onnxruntime_runs_what_other_methods_learnt() {
    for method in ["simclr", "byol"] {
        onnx_agrees(&runs_everywhere(method));
    }
}

/// At the published width, torchvision's ResNet18 and timm's take the weights strictly and give the
/// same vectors.
#[test]
#[ignore = "long: needs PyTorch"]
fn torchvision_and_timm_load_the_weights() {
    let sandbox = trained("--network resnet18 --width 64 --rounds 0 --shapes-train 16");
    embedded(&sandbox);
    let ran = sandbox.run("export a --safetensors w.safetensors --timm timm").succeeded();
    ran.prints("model.maxpool = torch.nn.Identity()");
    let paths = ["w.safetensors", "pictures", "v.jsonl", "timm"].map(|n| sandbox.path(n));
    let modules = ["torch", "torchvision", "safetensors", "numpy", "PIL"];
    clients::python("torchvision_agrees.py", &modules, &paths);
}

#[test]
#[ignore = "long: needs pyarrow and DuckDB"]
fn every_format_holds_the_same() {
    let sandbox = every_format();
    let paths = ["v.parquet", "v.npy", "v.csv", "v.jsonl"].map(|n| sandbox.path(n));
    clients::python("tables.py", &["pyarrow", "duckdb", "numpy"], &paths);
}

#[test]
#[ignore = "long: needs TensorBoard"]
fn tensorboard_reads_the_figures() {
    let sandbox = trained("--tensorboard");
    let folder = sandbox.path("runs/a/tensorboard");
    assert_eq!(names(&folder).len(), 1);
    let Some(said) = clients::python("tensorboard_reads.py", &["tensorboard"], &[&folder]) else {
        return;
    };
    let said: Vec<f64> = said.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let told = sandbox.losses("a");
    assert_eq!(said.len(), told.len());
    assert!(said.iter().zip(&told).all(|(a, b)| (a - b).abs() < 1e-5));
}

/// Frozen in its middle, a run has told TensorBoard how far it is; killed and resumed, it tells
/// every epoch once.
#[cfg(unix)]
#[test]
#[ignore = "long: needs TensorBoard"]
fn tensorboard_follows_a_run_and_its_resume() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.start("--name live --tensorboard --epochs 60");
    let run = sandbox.path("runs/live");
    let folder = run.join("tensorboard");
    // A start writes one file.
    let file = |number: usize| {
        let names = if folder.is_dir() { names(&folder) } else { vec![] };
        Some(folder.join(names.get(number)?))
    };
    let read = |number| file(number).and_then(|file| fs::read(file).ok()).unwrap_or_default();
    let saved = run.join("checkpoints/last.safetensors");
    let losses = |bytes: &[u8]| bytes.windows(4).filter(|w| w == b"loss").count();
    let so_far = || losses(&read(0));
    wait_for("figures while it trains", || so_far() >= 3 && saved.exists());
    signal(child.id(), "STOP");
    let frozen = read(0);
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    assert!(!metrics.contains("run_ended"), "it ended before it could be stopped");
    let reader = |folder: &Path| {
        let said = clients::python("tensorboard_follows.py", &["tensorboard"], &[folder])?;
        let words = said.split_whitespace().map(|w| w.parse().unwrap());
        let words: Vec<f64> = words.collect();
        let told: Vec<(f64, f64)> = words.chunks_exact(2).map(|w| (w[0], w[1])).collect();
        let steps: Vec<f64> = told.iter().map(|t| t.0).collect();
        let each_once: Vec<f64> = (1..=told.len()).map(|step| step as f64).collect();
        assert_eq!(steps, each_once);
        Some(told.into_iter().map(|t| t.1).collect::<Vec<f64>>())
    };
    if let Some(told) = reader(&folder) {
        // Half of the last record may be missing.
        assert!((losses(&frozen) - 1..=losses(&frozen)).contains(&told.len()));
    }
    signal(child.id(), "KILL");
    child.wait().unwrap();

    sandbox.run("train --resume live").succeeded();
    assert!(read(0).starts_with(&frozen), "it only grows");
    assert_eq!(losses(&read(1)), 120, "a start tells all figures");
    let figures = sandbox.losses("live");
    assert_eq!(figures.len(), 120);
    if let Some(told) = reader(&folder) {
        assert_eq!(told.len(), 120);
        assert!(told.iter().zip(&figures).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}
