//! The first 20 losses of a training, against PyTorch's from the same weights and batches; and 50
//! of them, on a GPU against the CPU.
//!
//! The numbers are made by tools/golden/trajectory.py, which says what they mean, how far f32
//! rounding takes them (below 1e-6) and how far small mistakes do (above 1e-2).

use anchorhood_engine::{
    Cpu, Device, Input, Loss, NetworkOptions, Positives, SimdLevel, SoftmaxLoss, Tensors,
};
use anchorhood_models::RESNET18;

use crate::golden::Golden;

const FILE: Golden = Golden(include_bytes!("../golden/trajectory.safetensors"));
const FEATURES: usize = 128;
const TOLERANCE: f32 = 1e-3;
/// Of a GPU that computes in bf16, and steps for which this small network (4 channels wide) keeps
/// to it.
const BF16_TOLERANCE: f32 = 2e-2;
const BF16_STEPS: usize = 10;

/// The losses of so many steps, over the recorded batches again and again.
fn losses_of(device: &Device, count: usize) -> Vec<f32> {
    let steps = FILE.floats("losses").len();
    let (indices, neighbours) = (FILE.integers("indices"), FILE.integers("neighbours"));
    let batch = indices.len() / steps;
    let pictures = FILE.bytes("pictures");
    let one = pictures.len() / neighbours.len();

    let graph = RESNET18.graph(16, 4, FEATURES).unwrap();
    let mut net = device.network(&graph, &NetworkOptions::new(batch)).unwrap();
    net.initialise(0).unwrap();
    for (i, p) in graph.parameters().iter().enumerate() {
        let values = FILE.floats(&format!("start/{}", p.name));
        net.write(Tensors::Values, i, &values).unwrap();
    }
    let mut bank = device.upload(&FILE.floats("bank")).unwrap();
    let mut stream = device.stream().unwrap();
    let mut losses = device.zeros(batch).unwrap();
    let mut means = vec![];
    for (step, indices) in indices.chunks(batch).cycle().take(count).enumerate() {
        let mut positives = Positives::with_capacity(batch, 2 * batch);
        for i in indices {
            let instances = step % steps < steps / 2;
            let other = if instances { *i } else { neighbours[*i as usize] };
            positives.push([*i, other]);
        }
        let seen = |v: &u8| (f32::from(*v) / 255.0 - 0.5) / 0.25;
        let of = |i: &u32| pictures[*i as usize * one..][..one].iter().map(seen);
        let pixels: Vec<f32> = indices.iter().flat_map(of).collect();
        let pixels = device.upload(&pixels).unwrap();
        let positives = device.positives(&positives, neighbours.len()).unwrap();
        let indices = device.upload_indices(indices).unwrap();

        stream.set_step(step as u64, 0.03).unwrap();
        net.forward(&mut stream, 0, Input::rows(&pixels)).unwrap();
        let (features, gradient) = net.output_and_gradient();
        let of = SoftmaxLoss {
            queries: features,
            keys: &bank,
            dim: FEATURES,
            temperature: 0.1,
            positives: &positives,
            items: None,
        };
        let loss = Loss { rows: &mut losses, gradient, weight: 1.0 };
        stream.softmax_loss(&of, loss).unwrap();
        net.backward(&mut stream, 0).unwrap();
        net.update(&mut stream).unwrap();
        stream.blend_rows(&mut bank, FEATURES, &indices, net.output(), 0.5).unwrap();

        let losses = device.download(&losses).unwrap();
        means.push(losses.iter().sum::<f32>() / batch as f32);
    }
    means
}

fn assert_follows(who: &str, losses: &[f32], expected: &[f32], tolerance: f32) {
    for (step, (loss, expected)) in losses.iter().zip(expected).enumerate() {
        let off = (loss - expected).abs() / expected;
        assert!(
            off <= tolerance,
            "{who}, step {step}: loss {loss}, expected {expected}, off by {off:.1e}"
        );
    }
}

#[test]
fn cpu_follows_pytorch() {
    for level in SimdLevel::available() {
        let device = Device::from(Cpu::with_level(2, level).unwrap());
        let expected = FILE.floats("losses");
        let losses = losses_of(&device, expected.len());
        assert_follows(&device.describe(), &losses, &expected, TOLERANCE);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn cuda_follows_the_cpu_for_fifty_steps() {
    use anchorhood_engine::Precision;
    let expected = losses_of(&Device::cpu(2), 50);
    for (precision, steps, tolerance) in
        [(Precision::F32, 50, TOLERANCE), (Precision::Bf16, BF16_STEPS, BF16_TOLERANCE)]
    {
        let device = Device::cuda(0, precision).unwrap();
        let losses = losses_of(&device, steps);
        assert_follows(&device.describe(), &losses, &expected, tolerance);
    }
}
