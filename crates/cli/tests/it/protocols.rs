//! Linear classifiers, imported weights, untrained networks and attention, as a user asks for them.

use anchorhood::Device;
use anchorhood::research::{Form, NetworkOptions, RESNET18, Weights};
use serde_json::Value;

use crate::common::{Sandbox, names, trained};

/// Few pictures of `shapes`, as the tiny runs see them.
const FEW: &str = "--data shapes --size 16 --limit 40 --test-limit 16";

#[test]
fn every_layer_of_a_run_can_be_classified() {
    let sandbox = trained("");
    let linear = "evaluate a --linear --linear-epochs 3 --threads 1";
    let told = sandbox.run(linear).succeeded();
    told.prints("conv5; linear top-1").says("extracting conv5");

    let all = || sandbox.run(&format!("{linear} --layer all --seeds 2 --json")).succeeded();
    let ran = all();
    assert_eq!(ran.stderr, "");
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let layers = found["layers"].as_array().unwrap();
    let named: Vec<&str> = layers.iter().map(|l| l["layer"].as_str().unwrap()).collect();
    assert_eq!(named, ["conv1", "conv2", "conv3", "conv4", "conv5", "fc"]);
    for layer in layers {
        assert_eq!(layer["top1"]["n"], 2);
        assert!(layer["top1"]["std"].is_number());
        assert_eq!(layer["pictures"], 16);
    }
    let again: Value = serde_json::from_str(&all().stdout).unwrap();
    assert_eq!(again["layers"][0]["top1"], found["layers"][0]["top1"]);
    sandbox.run("evaluate a --layer conv4").succeeded().prints("conv4        kNN top-1");
}

#[test]
fn networks_nobody_trained_are_a_floor_for_every_protocol() {
    let sandbox = Sandbox::new();
    let base = format!("evaluate untrained --network alexnet --width 1 {FEW}");
    sandbox.run(&format!("{base} --seeds 3")).succeeded().prints("(n = 3)");
    let told = sandbox.run(&format!("{base} --linear --linear-epochs 2 --layer conv1,fc"));
    let told = told.succeeded().prints("alexnet width 1, untrained, seed 0");
    assert_eq!(told.stdout.matches("linear top-1").count(), 2);
}

/// Weights as another program would leave them: those of a ResNet18.
pub fn foreign(form: Form, size: usize, width: usize, classes: usize) -> Vec<u8> {
    let graph = RESNET18.graph_of(form, size, width, classes).unwrap();
    let mut network = Device::cpu(1).network(&graph, &NetworkOptions::new(1)).unwrap();
    network.initialise(3).unwrap();
    Weights::of(&network).unwrap().encode()
}

#[test]
fn weights_of_another_program_are_judged_by_name() {
    let sandbox = Sandbox::new();
    sandbox.write("theirs.safetensors", foreign(Form::Large, 16, 2, 1000));
    let run = |more: &str| {
        sandbox.run(&format!("evaluate theirs.safetensors --network resnet18 {FEW} {more}"))
    };
    run("").succeeded().prints("resnet18 width 2; 1000; initial values; avgpool");
    let linear = run("--linear --linear-epochs 2 --json").succeeded().stdout;
    let found: Value = serde_json::from_str(&linear).unwrap();
    assert_eq!(found["network"], "resnet18");
    // 16×16 pictures leave a single place of a large form's last stage.
    assert_eq!(found["layers"][0]["values"], 16);
}

#[test]
fn attention_draws_a_strip_for_each_picture() {
    let sandbox = trained("");
    let told = sandbox.run("attention a --pictures 0,7 -o looks").succeeded();
    assert_eq!(names(&sandbox.path("looks")), ["picture-0.png", "picture-7.png"]);
    told.prints("round 0 alone, round 1 with");
    let strip = image::open(sandbox.path("looks/picture-7.png")).unwrap();
    // A picture and two rounds, each 16 × 8 pixels wide, with its frame and gap; a row of
    // neighbours below.
    assert_eq!((strip.width(), strip.height()), (6 + 3 * 142, 6 + 2 * 142));

    for round in ["round-0", "round-1"] {
        std::fs::remove_file(sandbox.checkpoint("a", round)).unwrap();
    }
    let ran = sandbox.run("attention a --pictures 1");
    ran.failed(2, "no round of this run is finished");
}
