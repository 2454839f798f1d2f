//! How long does the engine take for pictures that lie in memory? What `tools/python_speed.py` compares the Python package with.
//!
//! `cargo run --release -p anchorhood-search --example array_speed -- [PICTURES] [ROUNDS] [THREADS]` prints the seconds of each round.

use std::time::Instant;

use anchorhood_engine::Device;
use anchorhood_search::Model;

const BATCH: usize = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut number = |usual: usize| args.next().map_or(Ok(usual), |n| n.parse());
    let (pictures, rounds, threads) = (number(10_000)?, number(5)?, number(2)?);
    let model = Model::base()?;
    let mut embedder = model.embedder(&Device::cpu(threads), BATCH, None)?;
    let one = embedder.size() * embedder.size() * 3;
    let pixels: Vec<u8> = (0..pictures * one).map(|i| (i % 251) as u8).collect();
    for _ in 0..rounds {
        let start = Instant::now();
        let mut vectors = Vec::with_capacity(pictures * embedder.dim());
        for batch in pixels.chunks(BATCH * one) {
            embedder.embed(batch, &mut vectors)?;
        }
        println!("{:.4}", start.elapsed().as_secs_f64());
    }
    Ok(())
}
