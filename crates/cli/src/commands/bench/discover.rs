//! Discovery over a bank of random features: entropy and nearest neighbours, as before a round.

use std::time::Instant;

use anchorhood::discover::{MemoryBank, Neighbourhoods};
use anchorhood::engine::Device;
use serde_json::json;

use super::{at_least_one, median, step::random_rows};
use crate::args::BenchDiscoverArgs;
use crate::args::device;
use crate::terminal::failure::Failure;

/// Runs the benchmark.
pub fn run(args: &BenchDiscoverArgs) -> Result<(), Failure> {
    at_least_one(&[
        ("n", args.n),
        ("dim", args.dim),
        ("neighbours", args.neighbours),
        ("repeat", args.repeat),
    ])?;
    if args.neighbours >= args.n {
        return Err(Failure::usage(format!(
            "--neighbours {}: there are only {} others among {}",
            args.neighbours,
            args.n - 1,
            args.n
        )));
    }
    discoveries(args, &device::open(&args.common.machine())?)
}

fn discoveries(args: &BenchDiscoverArgs, device: &Device) -> Result<(), Failure> {
    let threads = args.common.thread_count();
    let bank = MemoryBank::from_values(device, &random_rows(args.n, args.dim), args.dim)?;
    let mut seconds = vec![];
    for _ in 0..args.repeat {
        let clock = Instant::now();
        Neighbourhoods::discover(device, &bank, args.neighbours, 0.1, 0.5, &|_| {})?;
        seconds.push(clock.elapsed().as_secs_f64());
    }
    let seconds = median(seconds);
    let pairs = (args.n as f64).powi(2) / seconds;
    let text = format!(
        "discover n={} dim={} k={} threads={threads}: {seconds:.3} s, {:.0} million pairs/s (median of {}; {})",
        args.n,
        args.dim,
        args.neighbours,
        pairs / 1e6,
        args.repeat,
        device.describe()
    );
    let object = json!({
        "bench": "discover", "n": args.n, "dim": args.dim, "k": args.neighbours, "threads": threads,
        "seconds": seconds, "pairs_per_second": pairs, "device": device.describe(), "version": anchorhood::train::VERSION,
    });
    args.common.show(&text, &object)
}
