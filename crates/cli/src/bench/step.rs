//! One training step. Led by the host: a fixed random batch forwards, loss over an N × dim bank, backwards, weights,
//! memory. Led by a device that can: all of that, and the batch made by augmentation from N pictures on the device.

use std::time::Instant;

use anchorhood::data::Pictures;
use anchorhood::discover::{MemoryBank, Neighbourhoods, neighbourhood_loss};
use anchorhood::engine::{Device, Network, NetworkOptions, PartTime, Positives, Profile, Sgd};
use anchorhood::random::{Draws, Stream};
use anchorhood::train::{Position, Preset, Trainer, TrainingSet};
use serde_json::json;

use super::{at_least_one, median};
use crate::args::BenchStepArgs;
use crate::device::{self, Work};
use crate::failure::Failure;
use crate::output;

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
    let begun = Instant::now();
    device::run(&args.common.machine(), Steps { args, begun })
}

struct Steps<'a> {
    args: &'a BenchStepArgs,
    begun: Instant,
}

impl Work for Steps<'_> {
    type Output = ();

    fn on(self, device: &Device) -> Result<(), Failure> {
        let args = self.args;
        if D::LEADS_STEPS {
            let mut trainer = trainer(args, device)?;
            trainer.advance((0, 0), 1, &Sgd::new(0.03))?;
            if !args.common.json {
                let seconds = self.begun.elapsed().as_secs_f64();
                output::line(&format!("first step done {seconds:.1} s after the start"))?;
            }
            let (seconds, loss) = device_steps(args, &mut trainer)?;
            show(args, device, "augmentation included", seconds, loss)?;
            if !args.profile {
                return Ok(());
            }
            let profile = trainer.profile(&Sgd::new(0.03))?;
            let profile = profile.expect("this device leads");
            return args.common.show(&table(&profile), &as_json(&profile));
        }
        if args.profile {
            return Err(Failure::usage(format!(
                "--profile: {} leads no steps by itself, so its parts cannot be told apart; give --device cuda",
                device.describe()
            )));
        }
        let (seconds, loss) = host_steps(args, device)?;
        show(args, device, "no augmentation", seconds, loss)
    }
}

/// A trainer on random pictures.
fn trainer(args: &BenchStepArgs, device: &Device) -> Result<Trainer, Failure> {
    let mut config = Preset::Paper.config("random");
    config.network.architecture = args.network;
    config.network.width = args.width;
    config.network.features = args.dim;
    config.training.batch = args.batch;
    let mut state = 1_u32;
    let byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let values = args.n.max(2) * args.size * args.size * 3;
    let bytes = std::iter::repeat_with(byte).take(values).collect();
    let set = TrainingSet {
        name: "random".into(),
        pictures: Pictures::new(args.size, args.size, bytes)?,
        mean: [0.5; 3],
        std: [0.25; 3],
    };
    let mut trainer = Trainer::new(device, &config, set)?;
    trainer.begin(Position::default())?;
    Ok(trainer)
}

/// Seconds of a step, measured over as many as are asked for at once in training, and the last loss.
fn device_steps(args: &BenchStepArgs, trainer: &mut Trainer) -> Result<(f64, f64), Failure> {
    let sgd = Sgd::new(0.03);
    let batches = trainer.batches();
    let (mut at, mut last) = ((0, 1), f64::NAN);
    let mut run = |count: usize| -> Result<(), Failure> {
        let mut left = count;
        while left > 0 {
            let losses = trainer.advance(at, left, &sgd)?;
            left -= losses.len();
            last = losses.last().copied().unwrap_or(last);
            at.1 += losses.len();
            if at.1 == batches {
                at = (at.0 + 1, 0);
            }
        }
        Ok(())
    };
    run((args.steps / 5).max(3))?;
    let piece = args.steps.min(50);
    let mut seconds = vec![];
    for _ in 0..args.steps.div_ceil(piece) {
        let clock = Instant::now();
        run(piece)?;
        seconds.push(clock.elapsed().as_secs_f64() / piece as f64);
    }
    Ok((median(seconds), last))
}

fn host_steps(args: &BenchStepArgs, device: &Device) -> Result<(f64, f64), Failure> {
    let graph = args.network.graph(args.size, args.width, args.dim)?;
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
    Ok((median(seconds), last))
}

fn show(
    args: &BenchStepArgs,
    device: &Device,
    how: &str,
    step: f64,
    loss: f64,
) -> Result<(), Failure> {
    let threads = args.common.thread_count();
    let graph = args.network.graph(args.size, args.width, args.dim)?;
    let flops = graph.training_flops() as f64 * args.batch as f64
        + 3.0 * 2.0 * args.batch as f64 * args.n as f64 * args.dim as f64;
    let (ms, pictures, gflops) = (step * 1e3, args.batch as f64 / step, flops / step / 1e9);
    let text = format!(
        "step {} width={} batch={} n={} threads={threads}: {ms:.2} ms/step, {pictures:.0} pictures/s, {gflops:.1} GFLOP/s ({how}; median of {}, loss {loss:.4}; {})",
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
        "pictures_per_second": pictures, "gflops": gflops, "augmentation": how == "augmentation included", "device": device.describe(),
        "version": anchorhood::train::VERSION,
    });
    args.common.show(&text, &object)
}

/// The parts of a step beside what the device can do at best.
fn table(p: &Profile) -> String {
    let mut text = format!(
        "{:<28}{:>9}{:>11}{:>9}{:>10}{:>9}\n",
        "part, run alone", "ms", "TFLOP/s", "of best", "GB/s", "of best"
    );
    let share = |rate: f64, best: f64| format!("{:.0}%", 100.0 * rate / best);
    for part in &p.parts {
        let seconds = part.milliseconds / 1e3;
        let (flops, bytes) = (part.flops / seconds, part.bytes / seconds);
        let or_none = |shown: String, of: f64| if of > 0.0 { shown } else { "–".into() };
        text += &format!(
            "{:<28}{:>9.3}{:>11}{:>9}{:>10}{:>9}\n",
            part.name,
            part.milliseconds,
            or_none(format!("{:.0}", flops / 1e12), flops),
            or_none(share(flops, p.most_flops), flops),
            or_none(format!("{:.0}", bytes / 1e9), bytes),
            or_none(share(bytes, p.most_bytes), bytes),
        );
    }
    let sum: f64 = p.parts.iter().map(|part| part.milliseconds).sum();
    text += &format!(
        "{:<28}{sum:>9.3}\n{:<28}{:>9.3}\n",
        "sum", "the whole step", p.step_milliseconds
    );
    text += &format!(
        "best measured here: {:.0} TFLOP/s (a large matrix product), {:.0} GB/s (a large copy, read and written)",
        p.most_flops / 1e12,
        p.most_bytes / 1e9
    );
    text
}

fn as_json(p: &Profile) -> serde_json::Value {
    let part = |p: &PartTime| json!({"part": p.name, "ms": p.milliseconds, "flops": p.flops, "bytes": p.bytes});
    json!({
        "bench": "profile", "parts": p.parts.iter().map(part).collect::<Vec<_>>(), "step_ms": p.step_milliseconds,
        "most_flops": p.most_flops, "most_bytes": p.most_bytes,
    })
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
