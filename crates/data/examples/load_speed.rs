//! How long does opening a data set take, and how fast do batches come?
//!
//! cargo run --release -p anchorhood-data --example load_speed -- SPEC [THREADS]

use std::time::Instant;

use anchorhood_data::{Augmentation, Feed, LoadOptions, Loader, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = std::env::args().nth(1).unwrap_or_else(|| "shapes".into());
    let threads = std::env::args().nth(2).map_or(Ok(1), |t| t.parse())?;
    let start = Instant::now();
    let data = open(&spec, &LoadOptions::default())?;
    let n = data.train.pictures.len();
    println!(
        "{n} training pictures opened in {:.2} s",
        start.elapsed().as_secs_f64()
    );
    let batch = n.min(64);
    let feed = Feed {
        pictures: data.train.pictures,
        views: Augmentation::default().into(),
        mean: data.mean,
        std: data.std,
        seed: 0,
        batch,
    };
    let mut loader = Loader::start(feed, threads, 4)?;
    let start = Instant::now();
    let batches = 500;
    for _ in 0..batches {
        let batch = loader.next().ok_or("the loader ended")?;
        loader.recycle(batch);
    }
    let micros = start.elapsed().as_secs_f64() * 1e6 / (batches * batch) as f64;
    println!("{micros:.2} µs a picture from {threads} loader threads");
    Ok(())
}
