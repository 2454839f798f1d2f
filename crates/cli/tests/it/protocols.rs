//! Linear classifiers, imported weights, untrained networks and attention, as a user asks for them.

use anchorhood::engine::{Device, NetworkOptions};
use anchorhood::models::{Architecture, Form, Weights};
use serde_json::Value;

use crate::common::{Sandbox, names};

/// Few pictures of `shapes`, as the tiny runs see them.
const FEW: &[&str] = &["--data", "shapes", "--size", "16", "--limit", "40", "--test-limit", "16"];

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Weights as another program would leave them: a ResNet18 with 1000 classes.
fn foreign(sandbox: &Sandbox, form: Form) -> &'static str {
    let graph = Architecture::ResNet18.graph_of(form, 16, 2, 1000).unwrap();
    let mut network = Device::cpu(1).network(&graph, &NetworkOptions::new(1)).unwrap();
    network.initialise(3).unwrap();
    let bytes = Weights::of(&network).unwrap().encode();
    std::fs::write(sandbox.path("theirs.safetensors"), bytes).unwrap();
    "theirs.safetensors"
}

#[test]
fn every_layer_of_a_run_can_be_classified() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a", "--quiet"]).succeeded();
    let flags = ["--linear", "--linear-epochs", "3", "--threads", "1"];
    let told = sandbox.run(&[&["evaluate", "a"], &flags[..]].concat());
    let told = told.succeeded();
    assert!(told.stdout.contains("conv5") && told.stdout.contains("linear top-1"));
    assert!(told.stderr.contains("extracting conv5"), "{}", told.stderr);

    let more = ["--layer", "all", "--seeds", "2", "--json"];
    let all = sandbox.run(&[&["evaluate", "a"], &flags[..], &more].concat());
    let all = all.succeeded();
    assert_eq!(all.stderr, "");
    let found = json(&all.stdout);
    let layers = found["layers"].as_array().unwrap();
    let layer = |l: &Value| l["layer"].as_str().unwrap().to_string();
    let expected = ["conv1", "conv2", "conv3", "conv4", "conv5", "fc"];
    assert_eq!(layers.iter().map(layer).collect::<Vec<_>>(), expected);
    for layer in layers {
        assert_eq!(layer["top1"]["n"], 2);
        assert!(layer["top1"]["std"].is_number());
        assert_eq!(layer["pictures"], 16);
    }
    let again = sandbox.run(&[&["evaluate", "a"], &flags[..], &more].concat());
    let again = json(&again.succeeded().stdout);
    assert_eq!(again["layers"][0]["top1"], found["layers"][0]["top1"]);

    let votes = sandbox.run(&["evaluate", "a", "--layer", "conv4"]);
    assert!(votes.succeeded().stdout.contains("conv4        kNN top-1"));
    sandbox.run(&["evaluate", "a", "--layer", "conv9"]).failed(2, &["conv9", "conv1", "all"]);
    sandbox.run(&["evaluate", "a", "--linear", "--seeds", "0"]).failed(2, &["--seeds"]);
    sandbox.run(&["evaluate", "a", "--linear", "--linear-lr", "0"]).failed(2, &["learning rate"]);
}

#[test]
fn networks_nobody_trained_are_a_floor_for_every_protocol() {
    let sandbox = Sandbox::new();
    let mut base = vec!["evaluate", "untrained", "--network", "alexnet", "--width", "1"];
    base.extend(FEW);
    let votes = sandbox.run(&[&base[..], &["--seeds", "3"]].concat());
    assert!(votes.succeeded().stdout.contains("(n = 3)"));
    let linear = ["--linear", "--linear-epochs", "2", "--layer", "conv1,fc"];
    let told = sandbox.run(&[&base[..], &linear].concat()).succeeded();
    assert!(told.stdout.contains("alexnet width 1, untrained, seed 0"));
    assert_eq!(told.stdout.matches("linear top-1").count(), 2);

    sandbox.run(&["evaluate", "untrained", "--data", "shapes"]).failed(2, &["--network"]);
    sandbox.run(&["evaluate", "untrained", "--network", "resnet18"]).failed(2, &["--data"]);
}

#[test]
fn weights_of_another_program_are_judged_by_name() {
    let sandbox = Sandbox::new();
    let file = foreign(&sandbox, Form::Large);
    let run = |network: &str, more: &[&str]| {
        let base = ["evaluate", file, "--network", network];
        sandbox.run(&[&base[..], FEW, more].concat())
    };
    let told = run("resnet18", &[]).succeeded();
    for part in ["resnet18 width 2", "1000", "initial values", "avgpool"] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    let linear = run("resnet18", &["--linear", "--linear-epochs", "2", "--json"]);
    let found = json(&linear.succeeded().stdout);
    assert_eq!(found["network"], "resnet18");
    // 16×16 pictures leave a single place of a large form's last stage.
    assert_eq!(found["layers"][0]["values"], 16);

    run("resnet34", &[]).failed(2, &[file, "missing layer1.2.conv1.weight"]);
    run("alexnet", &[]).failed(2, &[file, "7×7"]);
    run("resnet18", &["--width", "3"]).failed(2, &["of another shape conv1.weight"]);
    sandbox.run(&["evaluate", file]).failed(2, &[file, "--network"]);
    sandbox
        .run(&["evaluate", "nothing.safetensors", "--network", "resnet18", "--data", "shapes"])
        .failed(2, &["nothing.safetensors", "no such file"]);
    sandbox.train(&["--name", "a", "--quiet"]).succeeded();
    let last = "runs/a/checkpoints/last.safetensors";
    sandbox
        .run(&["evaluate", last, "--network", "resnet18", "--data", "shapes"])
        .failed(2, &["leave out --network"]);
}

#[test]
fn attention_draws_a_strip_for_each_picture() {
    let sandbox = Sandbox::new();
    sandbox.train(&["--name", "a", "--quiet"]).succeeded();
    let told = sandbox.run(&["attention", "a", "--pictures", "0,7", "-o", "looks"]);
    let told = told.succeeded();
    assert_eq!(names(&sandbox.path("looks")), ["picture-0.png", "picture-7.png"]);
    assert!(told.stdout.contains("round 0 alone, round 1 with"), "{}", told.stdout);
    let strip = image::open(sandbox.path("looks/picture-7.png")).unwrap();
    // A picture and two rounds, each 16 × 8 pixels wide, with its frame and gap; a row of
    // neighbours below.
    assert_eq!((strip.width(), strip.height()), (6 + 3 * 142, 6 + 2 * 142));

    sandbox.run(&["attention", "a", "--pictures", "48"]).failed(2, &["--pictures 48", "0 to 47"]);
    sandbox
        .run(&["attention", "a", "--pictures", "1", "--layer", "conv7"])
        .failed(2, &["--layer", "conv7"]);
    sandbox.run(&["attention", "b", "--pictures", "1"]).failed(2, &["`b`"]);
    std::fs::remove_file(sandbox.path("runs/a/checkpoints/round-0.safetensors")).unwrap();
    std::fs::remove_file(sandbox.path("runs/a/checkpoints/round-1.safetensors")).unwrap();
    sandbox
        .run(&["attention", "a", "--pictures", "1"])
        .failed(2, &["no round of this run is finished"]);
}
