//! Times the loss and the scan on a GPU as a program calls them, transfers and waiting included.
//!
//! `cargo run --release -p anchorhood-engine --example similarity_times [-- KEYS]` (50,000 keys unless told)

use std::time::{Duration, Instant};

use anchorhood_engine::{Device, Loss, Positives, Precision, Scan, SoftmaxLoss};
use anchorhood_random::{Draws, Stream};

const DIM: usize = 128;

fn unit_rows(n: usize, item: u64) -> Vec<f32> {
    let mut values = vec![0.0; n * DIM];
    Draws::new(1, Stream::Test, 0, item).fill_symmetric(&mut values, 1.0);
    for row in values.chunks_exact_mut(DIM) {
        let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= norm);
    }
    values
}

/// The median of some runs, after one that is not counted.
fn time(runs: usize, mut run: impl FnMut()) -> Duration {
    run();
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed()
        })
        .collect();
    times.sort();
    times[runs / 2]
}

fn main() -> anchorhood_engine::Result<()> {
    let keys = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let keys: usize = keys.unwrap_or(50_000);
    for precision in [Precision::Bf16, Precision::F32] {
        let cuda = Device::cuda(0, precision)?;
        println!("{}, {keys} keys of {DIM}", cuda.describe());
        let mut bank = cuda.upload(&unit_rows(keys, 0))?;
        for batch in [128, 256] {
            let queries = cuda.upload(&unit_rows(batch, 1))?;
            let (mut gradient, mut rows) = (cuda.zeros(batch * DIM)?, cuda.zeros(batch)?);
            let mut positives = Positives::with_capacity(batch, batch);
            let indices: Vec<u32> = (0..batch as u32).collect();
            indices.iter().for_each(|i| positives.push([*i]));
            let (positives, indices) = (
                cuda.positives(&positives, keys)?,
                cuda.upload_indices(&indices)?,
            );
            let mut stream = cuda.stream()?;
            let loss = time(50, || {
                let of = SoftmaxLoss {
                    queries: &queries,
                    keys: &bank,
                    dim: DIM,
                    temperature: 0.1,
                    positives: &positives,
                    items: None,
                };
                let loss = Loss {
                    rows: &mut rows,
                    gradient: &mut gradient,
                    weight: 1.0,
                };
                stream.softmax_loss(&of, loss).expect("the loss");
                cuda.download(&rows).expect("the wait");
            });
            let blend = time(50, || {
                stream
                    .blend_rows(&mut bank, DIM, &indices, &queries, 0.5)
                    .expect("the update");
                cuda.download(&rows).expect("the wait");
            });
            println!("  batch {batch}: loss {loss:?}, update of the rows {blend:?}");
        }
        for k in [1, 200] {
            let scan = Scan {
                dim: DIM,
                entropy_temperature: Some(0.1),
                k,
                same: true,
            };
            let took = time(3, || drop(cuda.scan(&bank, &bank, &scan, &|_| {})));
            println!("  scan of all against all, k = {k}: {took:?}");
        }
    }
    Ok(())
}
