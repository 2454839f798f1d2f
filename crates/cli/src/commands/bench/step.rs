//! One training step of the method. Where the device makes batches, with their augmentation from N
//! pictures that lie on it; elsewhere over one random batch, again and again, with nobody preparing
//! others beside.

use std::time::Instant;

use anchorhood::research::{Draws, DrawsFor as Stream, Position, TrainingSet};
use anchorhood::{Device, Pictures, Preset};
use anchorhood_engine::{PartTime, Profile};
use anchorhood_train::Trainer;
use serde_json::json;

use super::fixed_batch::FixedBatch;
use super::median;
use crate::args::BenchStepArgs;
use crate::args::device;
use crate::args::ranks::alone;
use crate::terminal::failure::Failure;
use crate::terminal::output;

pub fn run(args: &BenchStepArgs) -> Result<(), Failure> {
    let begun = Instant::now();
    let device = device::open(&args.common.machine())?.among(alone());
    let mut trainer = trainer(args, &device)?;
    if !trainer.on_device() {
        return host(args, &device, &mut trainer);
    }
    trainer.advance(Position::default(), 1)?;
    if !args.common.json {
        let seconds = begun.elapsed().as_secs_f64();
        output::line(&format!("first step done {seconds:.1} s after the start"))?;
    }
    let (seconds, loss) = device_steps(args, &mut trainer)?;
    show(args, &device, "augmentation included", seconds, loss)?;
    if !args.profile {
        return Ok(());
    }
    match trainer.profile()? {
        Some(profile) => args.common.show(&table(&profile), &as_json(&profile)),
        None => Err(no_profile(&device)),
    }
}

fn no_profile(device: &Device) -> Failure {
    usage!(
        "--profile: on {} the parts of a step cannot be told apart; give --device cuda",
        device.describe()
    )
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
    trainer.begin()?;
    Ok(trainer)
}

/// Seconds of a step, measured over as many as are asked for at once in training, and the last
/// loss.
fn device_steps(args: &BenchStepArgs, trainer: &mut Trainer) -> Result<(f64, f64), Failure> {
    let batches = trainer.batches();
    let (mut at, mut last) = (Position::default(), f64::NAN);
    let mut run = |count: usize| -> Result<(), Failure> {
        let mut left = count;
        while left > 0 {
            let losses = trainer.advance(at, left)?;
            left -= losses.len();
            last = losses.last().copied().unwrap_or(last);
            at.batch += losses.len();
            if at.batch == batches {
                (at.epoch, at.batch) = (at.epoch + 1, 0);
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

fn host(args: &BenchStepArgs, device: &Device, trainer: &mut Trainer) -> Result<(), Failure> {
    if args.profile {
        return Err(no_profile(device));
    }
    let batch = FixedBatch::new(args.n.max(2), trainer.batch(), args.size);
    let (seconds, loss) = device.within(|| host_steps(args, device, trainer, batch))?;
    show(args, device, "no augmentation", seconds, loss)
}

fn host_steps(
    args: &BenchStepArgs,
    device: &Device,
    trainer: &mut Trainer,
    batch: FixedBatch,
) -> Result<(f64, f64), Failure> {
    let mut stream = device.stream()?;
    let mut loader = batch.on(device, &mut stream, 0.03)?;
    let warm = (args.steps / 5).max(2);
    let (mut seconds, mut losses) = (vec![], vec![]);
    for number in 0..warm + args.steps {
        let method = trainer.method();
        let clock = Instant::now();
        stream.step(&mut loader, &mut |stream, batch| method.step(stream, batch))?;
        if number >= warm {
            seconds.push(clock.elapsed().as_secs_f64());
        }
        losses.clear();
        stream.losses(&mut losses)?;
    }
    Ok((median(seconds), losses.last().copied().unwrap_or(f64::NAN)))
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
        "step {} width={} batch={} n={} threads={threads}: {ms:.2} ms/step, {pictures:.0} \
         pictures/s, {gflops:.1} GFLOP/s ({how}; median of {}, loss {loss:.4}; {})",
        args.network,
        args.width,
        args.batch,
        args.n,
        args.steps,
        device.describe()
    );
    let object = json!({
        "bench": "step", "network": args.network.name, "width": args.width,
        "batch": args.batch, "size": args.size, "n": args.n, "dim": args.dim, "threads": threads,
        "steps": args.steps, "ms_per_step": ms, "pictures_per_second": pictures, "gflops": gflops,
        "augmentation": how == "augmentation included", "device": device.describe(),
        "version": anchorhood::VERSION,
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
    text +=
        &format!("{:<28}{sum:>9.3}\n{:<28}{:>9.3}\n", "sum", "the whole step", p.step_milliseconds);
    text += &format!(
        "best measured here: {:.0} TFLOP/s (a large matrix product), {:.0} GB/s (a large copy, \
         read and written)",
        p.most_flops / 1e12,
        p.most_bytes / 1e9
    );
    text
}

fn as_json(p: &Profile) -> serde_json::Value {
    let part = |p: &PartTime| json!({"part": p.name, "ms": p.milliseconds, "flops": p.flops, "bytes": p.bytes});
    let parts: Vec<_> = p.parts.iter().map(part).collect();
    json!({
        "bench": "profile", "parts": parts, "step_ms": p.step_milliseconds,
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
