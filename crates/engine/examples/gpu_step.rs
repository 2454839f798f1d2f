//! How long does a training step of ResNet18 (32×32 pictures) take on the GPU, the loss left out?
//!
//! `cargo run --release -p anchorhood-engine --example gpu_step -- [bf16|tf32|f32] [width] [batch] [steps]`

use std::time::Instant;

use anchorhood_engine::{
    ConvSpec, Cuda, Device, Graph, Network, NetworkOptions, NodeId, Precision, Result, Sgd,
};

fn resnet18(width: usize) -> Result<Graph> {
    let mut g = Graph::new();
    let x = g.input(32, 32, 3);
    let stem = ConvSpec::square(width, 3, 1, 1);
    let mut x = g.conv_norm("conv1", "bn1", x, stem, true, None)?;
    for (stage, stride) in [(0, 1), (1, 2), (2, 2), (3, 2)] {
        for (block, stride) in [(0, stride), (1, 1)] {
            let name = format!("layer{}.{block}", stage + 1);
            x = residual(&mut g, &name, x, width << stage, stride)?;
        }
    }
    let x = g.global_avg_pool("avgpool", x)?;
    let x = g.linear("fc", x, 128, true)?;
    let x = g.l2_normalise("normalise", x)?;
    g.output(x);
    Ok(g)
}

fn residual(g: &mut Graph, name: &str, x: NodeId, out: usize, stride: usize) -> Result<NodeId> {
    let part = |p: &str| format!("{name}.{p}");
    let first = ConvSpec::square(out, 3, stride, 1);
    let inner = g.conv_norm(&part("conv1"), &part("bn1"), x, first, true, None)?;
    let around = if stride == 1 {
        x
    } else {
        let spec = ConvSpec::square(out, 1, stride, 0);
        g.conv_norm(&part("down"), &part("downbn"), x, spec, false, None)?
    };
    let (conv, norm, second) = (part("conv2"), part("bn2"), ConvSpec::square(out, 3, 1, 1));
    g.conv_norm(&conv, &norm, inner, second, true, Some(around))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default| {
        arguments
            .get(i)
            .and_then(|a| a.parse().ok())
            .unwrap_or(default)
    };
    let precision = match arguments.first().map(String::as_str) {
        Some("f32") => Precision::F32,
        Some("tf32") => Precision::Tf32,
        _ => Precision::Bf16,
    };
    let (width, batch, steps) = (number(1, 64), number(2, 128), number(3, 100));
    let begun = Instant::now();
    let cuda = Cuda::new(0, precision)?;
    let graph = resnet18(width)?;
    let mut net = cuda.network(&graph, &NetworkOptions::new(batch))?;
    net.initialise(0);
    let pixels: Vec<f32> = (0..batch * graph.nodes()[0].shape.len())
        .map(|i| (i as f32 * 0.37).sin())
        .collect();
    let gradient: Vec<f32> = (0..batch * 128)
        .map(|i| (i as f32 * 0.71).cos() / batch as f32)
        .collect();
    *net.output_and_gradient().1 = cuda.upload(&gradient)?;
    let mut step = |i: u64| -> Result<()> {
        net.train_forward(&pixels, i)?;
        net.backward()?;
        net.update(&Sgd::new(0.001))
    };
    for i in 0..10 {
        step(i)?;
    }
    cuda.synchronise()?;
    println!(
        "{}: first steps after {:.2} s",
        cuda.describe(),
        begun.elapsed().as_secs_f64()
    );
    let mut each = vec![];
    for repeat in 0..3 {
        let begun = Instant::now();
        for i in 0..steps as u64 {
            step(repeat * 1000 + i)?;
        }
        let host = begun.elapsed();
        cuda.synchronise()?;
        let all = begun.elapsed();
        each.push(format!(
            "{:.3} (host {:.3})",
            1e3 * all.as_secs_f64() / steps as f64,
            1e3 * host.as_secs_f64() / steps as f64
        ));
    }
    // One more for a profiler that waits to be told (ncu --profile-from-start off).
    let _ = cudarc::driver::safe::profiler_start();
    step(9999)?;
    cuda.synchronise()?;
    let _ = cudarc::driver::safe::profiler_stop();
    let (by_cudnn, all) = net.convolutions_by_cudnn();
    println!(
        "width {width}, batch {batch}: {} ms a step; {by_cudnn} of {all} convolutions by cuDNN; {} MiB",
        each.join(", "),
        net.memory_bytes() >> 20
    );
    Ok(())
}
