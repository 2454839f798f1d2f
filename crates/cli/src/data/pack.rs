//! `anchorhood data pack`.

use std::time::Instant;

use anchorhood::data::pack;
use serde_json::json;

use super::PackArgs;
use super::meter::Meter;
use crate::failure::Failure;
use crate::output::{self, grouped};

/// Runs the command.
pub fn run(args: &PackArgs) -> Result<(), Failure> {
    let clock = Instant::now();
    let meter = Meter::of_things("packing");
    let progress = |done: usize, total: usize| meter.set(done as u64, total as u64);
    let packed = pack(&args.data, &args.output, args.size, args.force, &progress);
    drop(meter);
    let packed = packed?;
    for (file, why) in &packed.skipped {
        eprintln!("warning: {file}: left out: {why}");
    }
    let seconds = clock.elapsed().as_secs_f64();
    if args.json {
        let object = json!({
            "file": args.output, "data": packed.name, "pictures": packed.pictures, "size": packed.size,
            "bytes": packed.bytes, "skipped": packed.skipped.len(), "unchanged": packed.unchanged, "seconds": seconds,
        });
        return output::line(&object.to_string());
    }
    let what = format!(
        "{}: {} pictures of {}×{}, {:.1} MB",
        args.output.display(),
        grouped(packed.pictures),
        packed.size,
        packed.size,
        packed.bytes as f64 / 1e6
    );
    output::line(&match packed.unchanged {
        true => format!("{what}; packed already, and nothing has changed"),
        false => format!(
            "{what}; packed in {}. Use it with\n  anchorhood train {}",
            output::duration(seconds),
            args.output.display()
        ),
    })
}
