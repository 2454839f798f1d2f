//! Whole networks against PyTorch: inference, a training pass and the gradient that reaches the
//! first layer.
//!
//! The numbers are made by tools/golden/networks.py, which says what they mean; PyTorch computed
//! them in f64.

use anchorhood_engine::{Cpu, Device, Input, NetworkOptions, SimdLevel, Tensors};
use anchorhood_models::{ALEXNET, Backbone, Form, RESNET50};

use crate::golden::Golden;

const FILE: Golden = Golden(include_bytes!("../golden/networks.safetensors"));
const FEATURES: usize = 8;
/// Of the largest value. f32 through fifty layers; a norm over four values at the end magnifies
/// what it is given.
const TOLERANCE: f32 = 3e-4;

fn compare(what: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let off = off.fold(0.0_f32, f32::max) / largest;
    assert!(off <= TOLERANCE, "{what}: off by {off:.1e}");
}

fn agrees(device: &Device, architecture: &'static Backbone, form: Form) {
    let (word, size) = match form {
        Form::Small => ("small", 16),
        Form::Medium => ("medium", 32),
        Form::Large => ("large", 64),
    };
    let of = |what: &str| FILE.floats(&format!("{word}/{architecture}/{what}"));
    let seen = |v: &u8| (f32::from(*v) / 255.0 - 0.5) / 0.25;
    let pixels: Vec<f32> = FILE.bytes(&format!("{word}/pictures")).iter().map(seen).collect();
    let batch = pixels.len() / (size * size * 3);
    let graph = architecture.graph_of(form, size, 2, FEATURES).unwrap();
    let mut net = device.network(&graph, &NetworkOptions::new(batch)).unwrap();
    net.initialise(0).unwrap();
    for (i, p) in graph.parameters().iter().enumerate() {
        net.write(Tensors::Values, i, &of(&p.name)).unwrap();
    }
    let name = format!("{architecture}, {word}, {}", device.describe());
    let mut features = vec![0.0; batch * FEATURES];
    net.infer(&pixels, &mut features).unwrap();
    compare(&format!("{name}: inferred"), &features, &of("inferred"));

    let (mut stream, pixels) = (device.stream().unwrap(), device.upload(&pixels).unwrap());
    net.forward(&mut stream, 0, Input::rows(&pixels)).unwrap();
    let (output, gradient) = net.output_and_gradient();
    let trained = device.download(output).unwrap();
    compare(&format!("{name}: trained"), &trained, &of("trained"));
    let direction = FILE.floats(&format!("{word}/direction"));
    device.write(&direction, gradient).unwrap();
    net.backward(&mut stream, 0).unwrap();
    let found = net.read(Tensors::Gradients, 0).unwrap();
    compare(&format!("{name}: gradient"), &found, &of("gradient"));
}

fn on_every_level(architecture: &'static Backbone) {
    for level in SimdLevel::available() {
        let cpu = Device::from(Cpu::with_level(2, level).unwrap());
        for form in [Form::Small, Form::Medium, Form::Large] {
            agrees(&cpu, architecture, form);
        }
    }
}

#[test]
fn resnet50_agrees_with_pytorch() {
    on_every_level(&RESNET50);
}

#[test]
fn alexnet_agrees_with_pytorch() {
    on_every_level(&ALEXNET);
}
