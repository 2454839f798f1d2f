//! How long does augmenting one 32×32 picture take on one core?
//!
//! cargo run --release -p anchorhood-data --example augment_speed

use std::time::Instant;

use anchorhood_data::{Augmentation, augment};
use anchorhood_random::{Draws, Stream};

fn main() {
    let how = Augmentation::default();
    let words = Draws::new(0, Stream::Test, 0, 0);
    let picture: Vec<u8> = (0..3072).map(|i| words.word(i) as u8).collect();
    let mut out = vec![0.0; 3072];
    let mut micros: Vec<f64> = (0..15)
        .map(|round| {
            let start = Instant::now();
            for item in 0..1000 {
                let draws = Draws::new(0, Stream::Augment, round, item);
                augment(
                    &picture, [32; 2], [32; 2], &how, &draws, [0.5; 3], [0.2; 3], &mut out,
                );
            }
            start.elapsed().as_secs_f64() * 1e6 / 1000.0
        })
        .collect();
    micros.sort_by(f64::total_cmp);
    println!(
        "{:.2} µs a picture (median of 15 × 1,000), least {:.2}",
        micros[7], micros[0]
    );
}
