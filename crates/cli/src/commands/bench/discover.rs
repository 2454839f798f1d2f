//! Discovery over a bank of random features: entropy and nearest neighbours, as before a round.

use std::time::Instant;

use anchorhood::research::{DiscoverBy, MemoryBank, Neighbourhoods, machine_of};
use serde_json::json;

use super::{median, step::random_rows};
use crate::args::BenchDiscoverArgs;
use crate::args::device;
use crate::args::ranks::Ranks;
use crate::terminal::failure::Failure;

pub fn run(args: &BenchDiscoverArgs) -> Result<(), Failure> {
    if args.neighbours >= args.n {
        return Err(usage!(
            "--neighbours {}: there are only {} others among {}",
            args.neighbours,
            args.n - 1,
            args.n
        ));
    }
    let ranks = Ranks::join()?;
    let outcome = discoveries(args, &ranks);
    ranks.ended(outcome)
}

fn discoveries(args: &BenchDiscoverArgs, ranks: &Ranks) -> Result<(), Failure> {
    let machine = machine_of(ranks.launch.as_ref(), args.common.machine())?;
    let device = device::open(&machine)?.among(ranks.communicator.clone());
    let (threads, processes) = (machine.thread_count(), ranks.communicator.ranks());
    let bank = MemoryBank::from_values(&device, &random_rows(args.n, args.dim), args.dim)?;
    let by = if args.approximate { DiscoverBy::Approximate } else { DiscoverBy::Exact };
    let (mut seconds, mut recall) = (vec![], None);
    for _ in 0..args.repeat {
        let clock = Instant::now();
        let k = args.neighbours;
        let found = Neighbourhoods::discover(&device, &bank, by, k, 0.1, 0.5, &|_| {})?;
        seconds.push(clock.elapsed().as_secs_f64());
        recall = found.recall();
    }
    if !ranks.communicator.is_first() {
        return Ok(());
    }
    let seconds = median(seconds);
    let found = recall.map_or(String::new(), |r| format!(", recall {r:.3}"));
    let pairs = (args.n as f64).powi(2) / seconds;
    let text = format!(
        "discover n={} dim={} k={} processes={processes} threads={threads}: {seconds:.3} s, {:.0} \
         million pairs/s{found} (median of {}; {})",
        args.n,
        args.dim,
        args.neighbours,
        pairs / 1e6,
        args.repeat,
        device.describe()
    );
    let object = json!({
        "bench": "discover", "n": args.n, "dim": args.dim, "k": args.neighbours, "threads": threads,
        "processes": processes, "recall": recall, "seconds": seconds, "pairs_per_second": pairs,
        "device": device.describe(), "version": anchorhood::VERSION,
    });
    args.common.show(&text, &object)
}
