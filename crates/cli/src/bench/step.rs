//! One training step on a fixed random batch: forwards, loss over an N × dim bank, backwards, weights, memory.

use std::time::Instant;

use anchorhood::discover::{MemoryBank, Neighbourhoods, neighbourhood_loss};
use anchorhood::engine::{Device, Network, NetworkOptions, Positives, Sgd};
use anchorhood::random::{Draws, Stream};
use serde_json::json;

use super::{at_least_one, median};
use crate::args::BenchStepArgs;
use crate::device::{self, Work};
use crate::failure::Failure;

/// Runs the benchmark.
pub fn run(args: &BenchStepArgs) -> Result<(), Failure> {
    at_least_one(&[
        ("width", args.width),
        ("batch", args.batch),
        ("size", args.size),
        ("n", args.n),
        ("dim", args.dim),
        ("steps", args.steps),
    ])?;
    device::run(&args.common.machine(), Steps { args })
}

struct Steps<'a> {
    args: &'a BenchStepArgs,
}

impl Work for Steps<'_> {
    type Output = ();

    fn on<D: Device>(self, device: &D) -> Result<(), Failure> {
        steps(self.args, device)
    }
}

fn steps<D: Device>(args: &BenchStepArgs, device: &D) -> Result<(), Failure> {
    let threads = args.common.thread_count();
    let graph = args.network.graph(args.size, args.width, args.dim)?;
    let flops = graph.training_flops() as f64 * args.batch as f64
        + 3.0 * 2.0 * args.batch as f64 * args.n as f64 * args.dim as f64;
    let mut network = device.network(&graph, &NetworkOptions::new(args.batch))?;
    network.initialise(0);
    let mut bank = MemoryBank::from_values(device, &random_rows(args.n, args.dim), args.dim)?;
    let mut pixels = vec![0.0; args.batch * args.size * args.size * 3];
    Draws::new(0, Stream::Test, 0, 0).fill_symmetric(&mut pixels, 3_f32.sqrt());
    let indices: Vec<u32> = (0..args.batch).map(|i| (i % args.n) as u32).collect();
    let mut positives = Positives::with_capacity(args.batch, args.batch);
    let single = Neighbourhoods::single(args.n);
    let mut losses = vec![0.0; args.batch];
    let sgd = Sgd::new(0.03);

    let warm = (args.steps / 5).max(2);
    let mut seconds = vec![];
    let mut last = f64::NAN;
    for number in 0..warm + args.steps {
        let clock = Instant::now();
        single.positives(&indices, &mut positives);
        network.train_forward(&pixels, number as u64)?;
        let (features, gradient) = network.output_and_gradient();
        last = neighbourhood_loss(
            device,
            features,
            &bank,
            0.1,
            &positives,
            &mut losses,
            gradient,
        )?;
        network.backward()?;
        network.update(&sgd)?;
        let (features, _) = network.output_and_gradient();
        bank.update(device, &indices, features, 0.5)?;
        if number >= warm {
            seconds.push(clock.elapsed().as_secs_f64());
        }
    }
    let step = median(seconds);
    let (ms, pictures, gflops) = (step * 1e3, args.batch as f64 / step, flops / step / 1e9);
    let text = format!(
        "step {} width={} batch={} n={} threads={threads}: {ms:.2} ms/step, {pictures:.0} pictures/s, {gflops:.1} GFLOP/s (median of {}, loss {last:.4}; {})",
        args.network,
        args.width,
        args.batch,
        args.n,
        args.steps,
        device.describe()
    );
    let object = json!({
        "bench": "step", "network": args.network.name(), "width": args.width, "batch": args.batch, "size": args.size,
        "n": args.n, "dim": args.dim, "threads": threads, "steps": args.steps, "ms_per_step": ms,
        "pictures_per_second": pictures, "gflops": gflops, "device": device.describe(),
        "version": anchorhood::train::VERSION,
    });
    args.common.show(&text, &object)
}

/// Random rows of unit length.
pub(super) fn random_rows(n: usize, dim: usize) -> Vec<f32> {
    let mut rows = vec![0.0; n * dim];
    Draws::new(0, Stream::Test, 0, 1).fill_symmetric(&mut rows, 1.0);
    for row in rows.chunks_mut(dim) {
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
        row.iter_mut().for_each(|v| *v /= norm);
    }
    rows
}
