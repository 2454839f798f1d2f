//! Augmentation of pictures, one after the other on one thread.

use std::time::Instant;

use anchorhood::data::{Augmentation, augment};
use anchorhood::random::{Draws, Stream};
use serde_json::json;

use super::at_least_one;
use crate::args::BenchAugmentArgs;
use crate::terminal::failure::Failure;

/// Runs the benchmark.
pub fn run(args: &BenchAugmentArgs) -> Result<(), Failure> {
    at_least_one(&[("n", args.n), ("size", args.size)])?;
    let size = args.size;
    let draws = Draws::new(0, Stream::Test, 0, 0);
    let picture: Vec<u8> = (0..size * size * 3)
        .map(|i| draws.word(i as u64) as u8)
        .collect();
    let mut out = vec![0.0; picture.len()];
    let how = Augmentation::default();
    let mut one = |i: usize| {
        let draws = Draws::new(0, Stream::Augment, 0, i as u64);
        augment(
            &picture, [size; 2], [size; 2], &how, &draws, [0.5; 3], [0.25; 3], &mut out,
        );
    };
    (0..(args.n / 10).max(1)).for_each(&mut one);
    let clock = Instant::now();
    (0..args.n).for_each(&mut one);
    let micros = clock.elapsed().as_secs_f64() / args.n as f64 * 1e6;
    let text = format!(
        "augment size={size} n={}: {micros:.2} µs/picture, {:.0} pictures/s a thread",
        args.n,
        1e6 / micros
    );
    let object = json!({
        "bench": "augment", "size": size, "n": args.n, "us_per_picture": micros,
        "pictures_per_second": 1e6 / micros, "version": anchorhood::train::VERSION,
    });
    args.common.show(&text, &object)
}
