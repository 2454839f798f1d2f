//! Weights travel to torchvision and back: PyTorch itself makes ResNets, computes with them, and
//! loads ours.
//!
//! Needs a python with torch, torchvision and safetensors: `python3`, or what ANCHORHOOD_PYTHON
//! names. Without one the test says that it skips.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anchorhood_engine::{Device, Input, Network, NetworkOptions, Tensors};
use anchorhood_models::{Backbone, Form, RESNET10, RESNET18, RESNET50, Weights};
use anchorhood_testing::python_with;

use crate::golden::Golden;

const SIZE: usize = 64;
const PICTURES: usize = 2;

/// Pictures both sides can make.
fn pixels() -> Vec<f32> {
    let value = |i: usize| ((i * 7919) % 1009) as f32 / 504.5 - 1.0;
    (0..PICTURES * SIZE * SIZE * 3).map(value).collect()
}

const PYTHON: &str = r#"
import sys, torch, torchvision
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

step, folder = sys.argv[1:]
i = torch.arange(2 * 64 * 64 * 3)
x = ((i * 7919 % 1009).float() / 504.5 - 1).view(2, 64, 64, 3).permute(0, 3, 1, 2)
torch.set_num_threads(2)
torch.manual_seed(0)

def features(net):
    with torch.no_grad():
        return F.normalize(net.eval()(x))

def made(name, classes):
    if name == "resnet10":  # which has its blocks, and no name of its own
        block = torchvision.models.resnet.BasicBlock
        return torchvision.models.ResNet(block, [1, 1, 1, 1], num_classes=classes)
    return getattr(torchvision.models, name)(num_classes=classes)

for name in ["resnet10", "resnet18", "resnet50"]:
    place = f"{folder}/{name}"
    net = made(name, 128)
    if step == "give":
        with torch.no_grad():
            net.train()(x)  # statistics of their own
        save_file(net.state_dict(), f"{place}-theirs.safetensors")
        save_file({"features": features(net)}, f"{place}-theirs-features.safetensors")
        wide = made(name, 1000)
        save_file(wide.state_dict(), f"{place}-wide.safetensors")
    else:
        net.load_state_dict(load_file(f"{place}-ours.safetensors"), strict=True)
        save_file({"features": features(net)}, f"{place}-ours-features.safetensors")
"#;

/// Runs the script.
fn run(python: &OsStr, step: &str, folder: &Path) {
    let mut python = Command::new(python);
    let output = python.args(["-c", PYTHON, step]).arg(folder).output();
    let output = output.expect("it started a moment ago");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{step}: {said}");
}

fn network(architecture: &'static Backbone, seed: u64) -> Network {
    let graph = architecture.graph_of(Form::Large, SIZE, 64, 128).unwrap();
    let options = NetworkOptions::new(PICTURES);
    let mut network = Device::cpu(2).network(&graph, &options).unwrap();
    network.initialise(seed).unwrap();
    network
}

fn features(network: &mut Network) -> Vec<f32> {
    let mut features = vec![0.0; PICTURES * 128];
    network.infer(&pixels(), &mut features).unwrap();
    features
}

fn theirs(file: &Path) -> Vec<f32> {
    Golden(&std::fs::read(file).unwrap()).floats("features")
}

fn compare(what: &str, ours: &[f32], theirs: &[f32]) {
    assert_eq!(ours.len(), theirs.len());
    let off = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
    let off = off.fold(0.0, f32::max);
    assert!(off < 1e-4, "{what}: off by {off:.1e}");
}

const TRAVELLERS: [&Backbone; 3] = [&RESNET10, &RESNET18, &RESNET50];

#[test]
#[ignore = "long: needs Python with torch"]
fn weights_travel_both_ways() {
    let Some(python) = python_with(&["torch", "torchvision", "safetensors"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    run(&python, "give", folder.path());
    let at =
        |a: &'static Backbone, what: &str| folder.path().join(format!("{a}-{what}.safetensors"));
    let mut left = vec![];
    for a in TRAVELLERS {
        let mut given = network(a, 1);
        let weights = Weights::read(&at(a, "theirs")).unwrap();
        assert_eq!(weights.load_into(&mut given).unwrap().fc_left, None);
        let expected = theirs(&at(a, "theirs-features"));
        compare("theirs here", &features(&mut given), &expected);
        let wide = Weights::read(&at(a, "wide")).unwrap();
        let said = wide.load_into(&mut given).unwrap().fc_left;
        assert!(said.is_some_and(|s| s.contains("1000")));

        let mut ours = network(a, 2);
        // A pass with its statistics, so that nothing is as fresh networks have it.
        let device = Device::cpu(2);
        let (mut stream, pixels) = (device.stream().unwrap(), device.upload(&pixels()).unwrap());
        ours.forward(&mut stream, 0, Input::rows(&pixels)).unwrap();
        assert_ne!(ours.read(Tensors::Values, 3).unwrap(), vec![0.0; 64]);
        let bytes = Weights::of(&ours).unwrap().encode();
        std::fs::write(at(a, "ours"), bytes).unwrap();
        left.push((a, features(&mut ours)));
    }
    run(&python, "take", folder.path());
    for (a, features) in left {
        compare("ours there", &features, &theirs(&at(a, "ours-features")));
    }
}
