//! `anchorhood export`: other people's programs run the model and agree with ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::clients;
use crate::common::Sandbox;
use crate::folders::{fill, trained};

/// Our own vectors of 12 pictures of the network's size.
fn embedded(sandbox: &Sandbox) {
    fill(&sandbox.path("pictures"), 12);
    let args = ["embed", "--model", "a", "pictures", "-o", "v.jsonl", "--device", "cpu"];
    sandbox.run(&args).succeeded();
}

fn onnx_agrees(more: &[&str]) {
    let sandbox = trained(more);
    embedded(&sandbox);
    let ran = sandbox.run(&["export", "a", "--onnx", "m.onnx"]).succeeded();
    assert!(ran.stdout.contains("opset 17"), "{}", ran.stdout);
    let paths = ["m.onnx", "pictures", "v.jsonl"].map(|n| sandbox.path(n));
    let paths: Vec<&Path> = paths.iter().map(|p| p.as_path()).collect();
    clients::python("onnx_agrees.py", &["onnx", "onnxruntime", "numpy", "PIL"], &paths);
}

#[test]
fn onnxruntime_runs_a_resnet() {
    onnx_agrees(&[]);
}

#[test]
fn onnxruntime_runs_an_alexnet() {
    onnx_agrees(&["--network", "alexnet"]);
}

/// Colours in CIE Lab, channels apart and side by side again.
#[test]
fn onnxruntime_runs_two_halves() {
    onnx_agrees(&["--colours", "split"]);
}

/// At the published width, torchvision's ResNet18 and timm's take the weights strictly and give the
/// same vectors.
#[test]
fn torchvision_and_timm_load_the_weights() {
    let wide = ["--network", "resnet18", "--width", "64"];
    let short = ["--rounds", "0", "--shapes-train", "16"];
    let sandbox = trained(&[wide, short].concat());
    embedded(&sandbox);
    let args = ["export", "a", "--safetensors", "w.safetensors", "--timm", "timm"];
    let ran = sandbox.run(&args).succeeded();
    assert!(ran.stdout.contains("model.maxpool = torch.nn.Identity()"), "{}", ran.stdout);
    let paths = ["w.safetensors", "pictures", "v.jsonl", "timm"].map(|n| sandbox.path(n));
    let paths: Vec<&Path> = paths.iter().map(|p| p.as_path()).collect();
    let modules = ["torch", "torchvision", "safetensors", "numpy", "PIL"];
    clients::python("torchvision_agrees.py", &modules, &paths);
}

#[test]
fn what_cannot_be_exported() {
    let sandbox = trained(&["--network", "resnet18"]);
    sandbox.run(&["export", "a", "--timm", "t"]).failed(2, &["64 channels", "2", "--onnx"]);
    assert!(!sandbox.path("t").exists());
    assert_eq!(sandbox.run(&["export", "a"]).code, Some(2));
    fs::write(sandbox.path("m.onnx"), "mine").unwrap();
    sandbox
        .run(&["export", "a", "--onnx", "m.onnx"])
        .failed(2, &["m.onnx", "exists already", "--overwrite"]);
    assert_eq!(fs::read(sandbox.path("m.onnx")).unwrap(), b"mine");
    sandbox.run(&["export", "b", "--onnx", "x.onnx"]).failed(2, &["no run called `b`"]);
    let pipe = sandbox.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        sandbox
            .run(&["export", "a", "--onnx", "pipe", "--overwrite"])
            .failed(2, &["pipe", "no file that could be replaced"]);
        assert!(pipe.exists() && !pipe.is_file());
    } else {
        anchorhood_testing::skip("mkfifo is not here");
    }
    sandbox
        .run(&["export", "a", "--onnx", "one", "--safetensors", "./one"])
        .failed(2, &["./one", "a name of its own"]);
    assert!(!sandbox.path("one").exists());
    sandbox.run(&["export", "a", "--onnx", "x.onnx"]).succeeded();
}

/// Every file below a folder, links followed, and its bytes.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.append(&mut files_below(&path)),
            false => _ = files.insert(path.clone(), fs::read(path).unwrap()),
        }
    }
    files
}

/// At the width of which timm's networks are.
#[test]
fn nothing_of_a_run_is_written() {
    let wide = ["--network", "resnet18", "--width", "64"];
    let short = ["--rounds", "0", "--shapes-train", "16"];
    let sandbox = trained(&[wide, short].concat());
    let run = sandbox.path("runs/a");
    let other = sandbox.path("runs/b");
    fs::create_dir_all(other.join("checkpoints")).unwrap();
    fs::write(other.join("config.toml"), "").unwrap();
    let before = (files_below(&run), files_below(&other));
    let last = "runs/a/checkpoints/last.safetensors";
    let mut cases = vec![
        ("--timm", "runs/a"),
        ("--timm", "./runs/../runs/a/"),
        ("--timm", "runs/a/new"),
        ("--timm", "runs/b"),
        ("--safetensors", "runs/a/model.safetensors"),
        ("--bf16", "runs/a/model.safetensors"),
        ("--onnx", "runs/a/config.toml"),
        ("--safetensors", last),
        ("--onnx", "runs/b/checkpoints/new"),
    ];
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("runs/a", sandbox.path("link")).unwrap();
        symlink(last, sandbox.path("file")).unwrap();
        symlink("runs/a/model.safetensors", sandbox.path("dangling")).unwrap();
        // A run whose checkpoints lie on another disk.
        fs::rename(run.join("checkpoints"), sandbox.path("elsewhere")).unwrap();
        symlink("../../elsewhere", run.join("checkpoints")).unwrap();
        cases.extend([
            ("--timm", "link"),
            ("--timm", "elsewhere"),
            ("--safetensors", "link/model.safetensors"),
            ("--bf16", "file"),
            ("--bf16", "dangling"),
            ("--onnx", "elsewhere/round-7.safetensors"),
            ("--safetensors", "elsewhere/last.safetensors"),
        ]);
    }
    for (format, to) in cases {
        let args = ["export", "a", format, to, "--overwrite"];
        sandbox.run(&args).failed(2, &[to.trim_end_matches('/')]);
        let after = (files_below(&run), files_below(&other));
        assert!(after == before, "{format} {to}");
    }
    let twice = ["--timm", "t", "--onnx", "t/config.json"];
    fs::create_dir(sandbox.path("t")).unwrap();
    sandbox
        .run(&[&["export", "a"], &twice[..]].concat())
        .failed(2, &["t/config.json", "a name of its own"]);
    assert_eq!(fs::read_dir(sandbox.path("t")).unwrap().count(), 0);
    sandbox.run(&["export", "a", "--timm", "t"]).succeeded();
}
