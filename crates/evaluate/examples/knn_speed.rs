//! How long does the vote take? 10,000 test features against 50,000 training features of length
//! 128, k = 200.
//!
//! usage: cargo run --release -p anchorhood-evaluate --example knn_speed [THREADS]

use std::time::Instant;

use anchorhood_data::Labels;
use anchorhood_engine::Device;
use anchorhood_evaluate::{KnnOptions, Rows, weighted_knn};
use anchorhood_random::{Draws, Stream};

const DIM: usize = 128;

fn features(n: usize, item: u64) -> Rows {
    let mut rows = Rows::new(vec![0.0; n * DIM], DIM);
    Draws::new(0, Stream::Test, 0, item).fill_symmetric(&mut rows.values, 1.0);
    rows.to_unit_length();
    rows
}

fn labels(n: usize) -> Labels {
    let classes = (0..10).map(|c| c.to_string()).collect();
    Labels::new((0..n as u32).map(|i| i % 10).collect(), classes)
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|t| t.parse().ok());
    let cpu = Device::cpu(threads.unwrap_or(0));
    let rows = |n, item| {
        let rows = features(n, item).values;
        cpu.hand_over(rows).expect("memory for the features")
    };
    let (bank, test) = (rows(50_000, 0), rows(10_000, 1));
    let (train_labels, test_labels) = (labels(50_000), labels(10_000));
    let mut seconds: Vec<f64> = (0..3)
        .map(|_| {
            let start = Instant::now();
            let options = KnnOptions::default();
            let result =
                weighted_knn(&cpu, &options, &bank, DIM, &train_labels, &test, &test_labels);
            assert_eq!(result.expect("features and labels fit").n, 10_000);
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{}: median of 3: {:.2} s", cpu.describe(), seconds[1]);
}
