//! How long does the library take for pictures that lie in memory? What `tools/python_speed.py`
//! compares the Python package with.
//!
//! `cargo run --release -p anchorhood-index --example array_speed -- [PICTURES] [SIDE] [ROUNDS]
//! [THREADS]` prints the seconds of each round.

use std::time::Instant;

use anchorhood_data::Pictures;
use anchorhood_engine::Device;
use anchorhood_index::Model;

const BATCH: usize = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut number = |usual: usize| args.next().map_or(Ok(usual), |n| n.parse());
    let (pictures, side) = (number(10_000)?, number(64)?);
    let (rounds, threads) = (number(5)?, number(2)?);
    let pixels = (0..pictures * side * side * 3).map(|i| (i % 251) as u8);
    let pictures = Pictures::new(side, side, pixels.collect())?;
    let mut embedder = Model::base()?.embedder(&Device::cpu(threads), BATCH, None)?;
    let first: Vec<usize> = (0..pictures.len().min(BATCH)).collect();
    embedder.embed_all(&pictures.subset(&first))?; // its memory is touched before it is timed
    for _ in 0..rounds {
        let start = Instant::now();
        embedder.embed_all(&pictures)?;
        println!("{:.4}", start.elapsed().as_secs_f64());
    }
    Ok(())
}
