//! `anchorhood data pack`.

use std::time::Instant;

use anchorhood_data::pack;
use serde_json::json;

use super::PackArgs;
use crate::terminal::bar::Bar;
use crate::terminal::failure::Failure;
use crate::terminal::output::{self, grouped};

pub fn run(args: &PackArgs) -> Result<(), Failure> {
    let clock = Instant::now();
    let bar = Bar::new("packing", false);
    let progress = |done: usize, total: usize| bar.at(done, total);
    let packed = pack(&args.data, &args.output, args.size, args.force, &progress);
    drop(bar);
    let packed = packed?;
    let becomes = if packed.published { "packed as plain grey" } else { "left out" };
    for (file, why) in &packed.skipped {
        eprintln!("warning: {file}: {becomes}: {why}");
    }
    if packed.cut > 0 {
        eprintln!(
            "note: a pack holds squares alone. Training on {} itself cuts crops from all of a \
             picture, of {} pictures here from more than the square; training on the pack does as \
             with --crops square",
            args.data,
            grouped(packed.cut)
        );
    }
    let seconds = clock.elapsed().as_secs_f64();
    if args.json {
        let object = json!({
            "file": args.output, "data": packed.name, "pictures": packed.pictures,
            "size": packed.size, "bytes": packed.bytes, "skipped": packed.skipped.len(),
            "cut": packed.cut, "unchanged": packed.unchanged, "seconds": seconds,
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
