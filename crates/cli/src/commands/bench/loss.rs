//! The loss of a batch over a memory of so many rows, with its update, by one process or by several together: each has its part of both.

use std::time::Instant;

use anchorhood::discover::{
    MemoryBank, Neighbourhoods, neighbourhood_loss, sampled_neighbourhood_loss,
};
use anchorhood::engine::{Buffer, Device, Loss, RowSample, Stream};
use serde_json::json;

use super::{at_least_one, median, step::random_rows};
use crate::args::BenchLossArgs;
use crate::args::device;
use crate::args::ranks::Ranks;
use crate::terminal::failure::Failure;

const TAU: f32 = 0.1;
/// Steps that make room, and do not count.
const WARM_UP: usize = 2;

/// Runs the benchmark.
pub fn run(args: &BenchLossArgs) -> Result<(), Failure> {
    let ranks = Ranks::join()?;
    let outcome = measure(args, &ranks);
    ranks.ended(outcome)
}

fn measure(args: &BenchLossArgs, ranks: &Ranks) -> Result<(), Failure> {
    at_least_one(&[
        ("n", args.n),
        ("dim", args.dim),
        ("batch", args.batch),
        ("steps", args.steps),
    ])?;
    let together = &ranks.communicator;
    if !args.batch.is_multiple_of(together.ranks()) || args.batch > args.n {
        return Err(Failure::usage(format!(
            "--batch {}: must be a multiple of the {} processes, and no more than the {} rows",
            args.batch,
            together.ranks(),
            args.n
        )));
    }
    let machine = ranks.divide(args.common.machine())?;
    let device = device::open(&machine)?.among(together.clone());
    let (mut seconds, cpu) = device.within(|| steps(args, &device))?;
    let mut memory = [resident()];
    together.max_f64(&mut memory)?;
    if !together.is_first() {
        return Ok(());
    }
    let (slowest, quickest) = (
        seconds.iter().copied().fold(0.0, f64::max),
        seconds.iter().copied().fold(f64::INFINITY, f64::min),
    );
    let middle = median(std::mem::take(&mut seconds));
    let (n, dim, batch, count) = (args.n, args.dim, args.batch, together.ranks());
    let text = format!(
        "loss n={n} dim={dim} batch={batch} processes={count} threads={}: {:.3} ms (median of {}; {:.3} to {:.3}; {:.3} of CPU time), {:.0} MB in the largest process; {}",
        machine.thread_count(),
        1e3 * middle,
        args.steps,
        1e3 * quickest,
        1e3 * slowest,
        1e3 * cpu,
        memory[0] / 1e6,
        device.describe()
    );
    let object = json!({
        "bench": "loss", "n": n, "dim": dim, "batch": batch, "processes": count, "threads": machine.thread_count(),
        "seconds": middle, "quickest": quickest, "slowest": slowest, "cpu": cpu, "memory": memory[0],
        "device": device.describe(), "version": anchorhood::train::VERSION,
    });
    args.common.show(&text, &object)
}

/// Seconds of each step, and the mean of this process's CPU time, which a machine that is busy with other things says more by.
fn steps(args: &BenchLossArgs, device: &Device) -> Result<(Vec<f64>, f64), Failure> {
    let together = device.communicator();
    let mut bank = MemoryBank::new(device, args.n, args.dim, 0)?;
    let single = Neighbourhoods::single_part(together.part(args.n), args.n);
    let positives = device.positives_part(&single.positives(), args.n, args.n)?;
    let part = together.part(args.batch);
    let rows = random_rows(args.batch, args.dim);
    let features = device.upload(&rows[part.start * args.dim..part.end * args.dim])?;
    let spread = |i: usize| (i as u64 * args.n as u64 / args.batch as u64) as u32;
    let items: Vec<u32> = part.clone().map(spread).collect();
    let items: Buffer<u32> = device.upload_indices(&items)?.below(args.n)?;
    let (mut losses, mut gradient) = (
        device.zeros(part.len())?,
        device.zeros(part.len() * args.dim)?,
    );
    let mut stream: Stream = device.stream()?;
    let (mut seconds, mut cpu) = (vec![], 0.0);
    for step in 0..args.steps + WARM_UP {
        if step == WARM_UP {
            cpu = cpu_seconds();
        }
        stream.set_step(step as u64, 0.0)?;
        together.barrier()?;
        let clock = Instant::now();
        let loss = Loss {
            rows: &mut losses,
            gradient: &mut gradient,
            weight: 1.0,
        };
        match args.sample {
            None => {
                neighbourhood_loss(&mut stream, &features, &bank, TAU, &positives, &items, loss)?
            }
            Some(rows) => sampled_neighbourhood_loss(
                &mut stream,
                &features,
                &bank,
                TAU,
                &positives,
                &items,
                RowSample { rows, seed: 0 },
                loss,
            )?,
        }
        bank.update(&mut stream, &items, &features, 0.5)?;
        device.download(&losses)?; // a GPU is done only then
        together.barrier()?;
        seconds.push(clock.elapsed().as_secs_f64());
    }
    let cpu = (cpu_seconds() - cpu) / args.steps as f64;
    Ok((seconds.split_off(WARM_UP), cpu))
}

/// Bytes of memory that this process has needed at most; 0 where the system does not say.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.map_or(0.0, |k| 1024.0 * k)
}

/// CPU time of this process so far, of all its threads, in steps of 10 ms; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the program's name, which may hold anything: user and system time are the 12th and 13th.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = after.split_whitespace().skip(11).take(2);
    ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0
}
