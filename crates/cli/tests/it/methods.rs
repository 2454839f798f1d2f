//! `train --method NAME` as a user asks for it, and every command that uses the model afterwards:
//! each takes the layer that the method judges, 16 values below the heads of a ResNet18 of width 2,
//! and no last layer.

use anchorhood::Event;
use anchorhood::research::{Checkpoint, FeatureSource};
use anchorhood_report::read_metrics;
use anchorhood_train::{Subject, methods};
use image::imageops;
use serde_json::Value;

use crate::common::{Sandbox, holds, names, trained};
use crate::folders::picture;

/// Trains it, and uses its model; what is left lies in the sandbox: the model as ONNX, pictures and
/// their vectors.
pub fn runs_everywhere(method: &str) -> Sandbox {
    let sandbox = trained(&format!("--method {method}"));
    // As large as the finished model is given them, for others who cut no squares.
    std::fs::create_dir(sandbox.path("pictures")).unwrap();
    for number in 0..12 {
        let drawn = imageops::resize(&picture(number), 20, 20, imageops::FilterType::Nearest);
        drawn.save(sandbox.path(&format!("pictures/{number}.png"))).unwrap();
    }
    let said = |words: &str| sandbox.said(words);
    let json = |words: &str| -> Value { serde_json::from_str(&said(words)).unwrap() };
    holds(&said("embed --model a pictures -o v.jsonl --device cpu"), "12 vectors of 16");
    said("index --model a pictures -o i.anchor --device cpu");
    holds(&said("neighbours --model a i.anchor pictures/3.png -k 1"), "3.png");
    // The figure of the run is evaluate's, of the checkpoint and of the layer by its name.
    let judged = json("evaluate a --json");
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
    assert_eq!(json("evaluate a --layer avgpool --json")["layers"][0]["values"], 16);
    said("attention a --pictures 2");
    said("report a");
    holds(&said("export a --onnx m.onnx --safetensors w.safetensors"), "N×16");
    let weights = sandbox.read("w.safetensors");
    let weights = String::from_utf8_lossy(&weights);
    holds(&weights, "layer4.0.bn2.weight; fc.weight");
    assert!(!weights.contains("projector"));
    sandbox
}

#[test]
fn simclr_is_used_by_every_command() {
    drop(runs_everywhere("simclr"));
}

#[test]
fn byol_is_used_by_every_command() {
    drop(runs_everywhere("byol"));
}

/// Whatever the method, it takes rounds and epochs, goes on after its end, and is repeated from its
/// own configuration.
fn takes_rounds_and_epochs(method: &str) {
    let sandbox = trained(&format!("--method {method} --rounds 1 --epochs 2"));
    let rounds = names(&sandbox.path("runs/a/checkpoints"));
    assert_eq!(rounds.len(), 3, "{method}: {rounds:?}");
    let training = sandbox.config("a").training;
    assert_eq!((training.rounds, training.epochs), (1, 2));
    let last = sandbox.checkpoint("a", "last");
    assert_eq!(Checkpoint::load(&last).unwrap().method, method);
    sandbox.run("train --resume a").succeeded();
    sandbox.run("train --config runs/a/config.toml --name b").succeeded();
    assert_eq!(sandbox.text("runs/b/config.toml"), sandbox.text("runs/a/config.toml"));
}

#[test]
fn instance_and_simsiam_take_rounds_and_epochs() {
    ["instance", "simsiam"].into_iter().for_each(takes_rounds_and_epochs);
}

#[test]
fn nnclr_and_supervised_take_rounds_and_epochs() {
    ["nnclr", "supervised"].into_iter().for_each(takes_rounds_and_epochs);
}

/// One round is its recipe, and the classes are the data set's.
#[test]
fn supervision_learns_the_classes() {
    let sandbox = Sandbox::new();
    let line = "train --method supervised --name a --shapes-train 48 --shapes-test 16 --size 16 \
        --width 2 --batch 16 --epochs 1 --threads 1";
    sandbox.run(line).succeeded();
    let config = sandbox.config("a");
    assert_eq!(config.method.name, &methods::SUPERVISED);
    assert_eq!((config.network.features, config.training.rounds), (10, 0));
    assert_eq!(config.evaluation.features, FeatureSource::Recomputed);
}
