//! The first 20 losses of a training, against PyTorch's from the same weights and batches.
//!
//! The numbers are made by tools/golden/trajectory.py, which says what they mean, how far f32 rounding takes them
//! (below 1e-6) and how far small mistakes do (above 1e-2).

use anchorhood_engine::{Cpu, Device, Network, NetworkOptions, Positives, Sgd, SimdLevel, Tensors};
use anchorhood_models::resnet18;
use safetensors::SafeTensors;

const FILE: &[u8] = include_bytes!("golden/trajectory.safetensors");
const FEATURES: usize = 128;
const TOLERANCE: f32 = 1e-3;

fn bytes(name: &str) -> Vec<u8> {
    let file = SafeTensors::deserialize(FILE).unwrap();
    let tensor = file.tensor(name).unwrap_or_else(|_| panic!("no {name}"));
    tensor.data().to_vec()
}

fn floats(name: &str) -> Vec<f32> {
    let value = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
    bytes(name).chunks_exact(4).map(value).collect()
}

fn integers(name: &str) -> Vec<u32> {
    let value = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
    bytes(name).chunks_exact(4).map(value).collect()
}

fn follows<D: Device>(device: &D) {
    let expected = floats("losses");
    let steps = expected.len();
    let (indices, neighbours) = (integers("indices"), integers("neighbours"));
    let batch = indices.len() / steps;
    let pictures = bytes("pictures");
    let one = pictures.len() / neighbours.len();

    let graph = resnet18(16, 4, FEATURES).unwrap();
    let mut net = device.network(&graph, &NetworkOptions::new(batch)).unwrap();
    net.initialise(0);
    for (i, p) in graph.parameters().iter().enumerate() {
        let values = floats(&format!("start/{}", p.name));
        net.write(Tensors::Values, i, &values).unwrap();
    }
    let mut bank = device.upload(&floats("bank")).unwrap();
    let mut losses = vec![0.0; batch];
    for (step, indices) in indices.chunks(batch).enumerate() {
        let mut positives = Positives::with_capacity(batch, 2 * batch);
        for i in indices {
            let instances = step < steps / 2;
            let other = if instances {
                *i
            } else {
                neighbours[*i as usize]
            };
            positives.push([*i, other]);
        }
        let seen = |v: &u8| (f32::from(*v) / 255.0 - 0.5) / 0.25;
        let of = |i: &u32| pictures[*i as usize * one..][..one].iter().map(seen);
        let pixels: Vec<f32> = indices.iter().flat_map(of).collect();

        net.train_forward(&pixels, step as u64).unwrap();
        let (features, gradient) = net.output_and_gradient();
        device
            .softmax_loss(
                features,
                &bank,
                FEATURES,
                0.1,
                &positives,
                &mut losses,
                gradient,
            )
            .unwrap();
        net.backward().unwrap();
        net.update(&Sgd::new(0.03)).unwrap();
        let features = net.output_and_gradient().0;
        device
            .blend_rows(&mut bank, FEATURES, indices, features, 0.5)
            .unwrap();

        let loss = losses.iter().sum::<f32>() / batch as f32;
        let off = (loss - expected[step]).abs() / expected[step];
        let device = device.describe();
        assert!(
            off <= TOLERANCE,
            "{device}, step {step}: loss {loss}, PyTorch {}, off by {off:.1e}",
            expected[step]
        );
    }
}

#[test]
fn cpu_follows_pytorch() {
    for level in SimdLevel::available() {
        follows(&Cpu::with_level(2, level).unwrap());
    }
}
