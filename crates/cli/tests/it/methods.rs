//! `train --method NAME` as a user asks for it, and every command that uses the model afterwards:
//! each takes the layer that the method judges, 16 values below the heads of a ResNet18 of width 2,
//! and no last layer.

use std::path::Path;

use anchorhood::report::read_metrics;
use anchorhood::train::{Checkpoint, Event, RunConfig, Subject};
use image::imageops;

use crate::clients;
use crate::common::{Sandbox, TINY, names};
use crate::folders::picture;

/// A sandbox with a tiny run called `a`, of a method that has features of its own.
fn trained(method: &str, more: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    let given = |flag: &str| ["--method", "--features"].contains(&flag) || more.contains(&flag);
    let tiny = TINY.chunks(2).filter(|pair| !given(pair[0]));
    let args = ["train", "--name", "a", "--quiet", "--method", method];
    let args: Vec<&str> = (args.iter().chain(more).chain(tiny.flatten())).copied().collect();
    sandbox.run(&args).succeeded();
    sandbox
}

fn runs_everywhere(method: &str) {
    let sandbox = trained(method, &[]);
    // As large as the finished model is given them, for others who cut no squares.
    std::fs::create_dir(sandbox.path("pictures")).unwrap();
    for number in 0..12 {
        let drawn = imageops::resize(&picture(number), 20, 20, imageops::FilterType::Nearest);
        let file = sandbox.path("pictures").join(format!("{number}.png"));
        drawn.save(file).unwrap();
    }
    let said = |args: &[&str]| sandbox.run(args).succeeded().stdout;
    let cpu = ["--device", "cpu"];
    let embed = ["embed", "--model", "a", "pictures", "-o", "v.jsonl"];
    assert!(said(&[&embed[..], &cpu].concat()).contains("12 vectors of 16"));
    let index = ["index", "--model", "a", "pictures", "-o", "i.anchor"];
    said(&[&index[..], &cpu].concat());
    let near = said(&["neighbours", "--model", "a", "i.anchor", "pictures/3.png", "-k", "1"]);
    assert!(near.contains("3.png"), "{near}");
    // The figure of the run is evaluate's, of the checkpoint and of the layer by its name.
    let judged: serde_json::Value =
        serde_json::from_str(&said(&["evaluate", "a", "--json"])).unwrap();
    let told = read_metrics(&sandbox.path("runs/a/metrics.jsonl")).unwrap();
    let last = |of: fn(Subject) -> bool| {
        told.events.iter().rev().find_map(|event| match event {
            Event::Evaluated(e) if of(e.subject) => Some(e.accuracy.top1),
            _ => None,
        })
    };
    let trained = last(|of| matches!(of, Subject::Trained { .. }));
    assert_eq!(judged["trained"]["top1"].as_f64(), trained);
    // And the model's as it is used is, with larger pictures.
    assert_eq!(judged["model"]["size"], 20);
    let used = last(|of| of == Subject::Model { size: 20 });
    assert_eq!(judged["model"]["accuracy"]["top1"].as_f64(), used);
    let layer: serde_json::Value =
        serde_json::from_str(&said(&["evaluate", "a", "--layer", "avgpool", "--json"])).unwrap();
    assert_eq!(layer["layers"][0]["values"], 16);
    said(&["attention", "a", "--pictures", "2"]);
    said(&["report", "a"]);
    let onnx = said(&["export", "a", "--onnx", "m.onnx", "--safetensors", "w.safetensors"]);
    assert!(onnx.contains("N×16"), "{onnx}");
    let weights = std::fs::read(sandbox.path("w.safetensors")).unwrap();
    let weights = String::from_utf8_lossy(&weights);
    assert!(weights.contains("layer4.0.bn2.weight") && weights.contains("fc.weight"));
    assert!(!weights.contains("projector"));
    let paths = ["m.onnx", "pictures", "v.jsonl"].map(|n| sandbox.path(n));
    let paths: Vec<&Path> = paths.iter().map(|p| p.as_path()).collect();
    let modules = ["onnx", "onnxruntime", "numpy", "PIL"];
    clients::python("onnx_agrees.py", &modules, &paths);
}

#[test]
fn simclr_is_used_by_every_command() {
    runs_everywhere("simclr");
}

#[test]
fn byol_is_used_by_every_command() {
    runs_everywhere("byol");
}

/// Whatever the method, it takes rounds and epochs, goes on after its end, and is repeated from its
/// own configuration.
#[test]
fn every_method_takes_rounds_and_epochs() {
    for method in ["instance", "simsiam", "nnclr", "supervised"] {
        let sandbox = trained(method, &["--rounds", "1", "--epochs", "2"]);
        let rounds = names(&sandbox.path("runs/a/checkpoints"));
        assert_eq!(rounds.len(), 3, "{method}: {rounds:?}");
        let text = std::fs::read_to_string(sandbox.path("runs/a/config.toml")).unwrap();
        let config = RunConfig::from_toml(&text, "a").unwrap();
        assert_eq!((config.training.rounds, config.training.epochs), (1, 2));
        let last = sandbox.path("runs/a/checkpoints/last.safetensors");
        assert_eq!(Checkpoint::load(&last).unwrap().method, method);
        sandbox.run(&["train", "--resume", "a"]).succeeded();
        let file = ["train", "--config", "runs/a/config.toml", "--name", "b"];
        sandbox.run(&file).succeeded();
        let again = std::fs::read_to_string(sandbox.path("runs/b/config.toml")).unwrap();
        assert_eq!(again, text);
    }
}
