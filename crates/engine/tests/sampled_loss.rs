//! The loss over a sample of the keys: what it is, that several processes find the same, and how far its mean is from the exact one.

use anchorhood_engine::naive::similarity::{counted_softmax_loss, softmax_loss};
use anchorhood_engine::{Communicator, Device, Loss, Positives, RowSample, Shard, SoftmaxLoss};
use anchorhood_random::{Draws, Stream};
use anchorhood_ranks::ThreadRank;

const DIM: usize = 16;
const BATCH: usize = 8;
const TEMPERATURE: f32 = 0.2;

/// Rows of unit length.
fn rows(item: u64, count: usize) -> Vec<f32> {
    let mut rows = vec![0.0; count * DIM];
    Draws::new(5, Stream::Test, 0, item).fill_symmetric(&mut rows, 1.0);
    for row in rows.chunks_exact_mut(DIM) {
        let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= length);
    }
    rows
}

/// Each key's positives: itself, and for every second another one, too.
fn positives(keys: usize, each: bool) -> Positives {
    let mut positives = Positives::default();
    for i in 0..keys as u32 {
        let other = (7 * i + 3) % keys as u32;
        positives.push([i, if i % 2 == 0 { other } else { i }]);
    }
    match each {
        true => positives.counting_each(),
        false => positives,
    }
}

fn items(keys: usize) -> Vec<u32> {
    (0..BATCH as u32)
        .map(|i| (11 * i + 2) % keys as u32)
        .collect()
}

/// Losses and gradient of this process's queries, in a step.
fn sampled(
    device: &Device,
    keys: usize,
    each: bool,
    rows_drawn: usize,
    step: u64,
) -> [Vec<f32>; 2] {
    let (c, all) = (device.communicator(), rows(1, keys));
    let (part, own) = (c.part(keys), c.part(BATCH));
    let bank = device
        .upload(&all[part.start * DIM..part.end * DIM])
        .unwrap();
    let bank = match c.is_single() {
        true => bank,
        false => bank.sharded(Shard {
            first: part.start,
            rows: keys,
        }),
    };
    let queries = rows(2, BATCH);
    let queries = device
        .upload(&queries[own.start * DIM..own.end * DIM])
        .unwrap();
    let items = device.upload_indices(&items(keys)[own.clone()]).unwrap();
    let positives = device.positives(&positives(keys, each), keys).unwrap();
    let mut losses = device.zeros(own.len()).unwrap();
    let mut gradient = device.zeros(own.len() * DIM).unwrap();
    let mut stream = device.stream().unwrap();
    stream.set_step(step, 0.0).unwrap();
    let of = SoftmaxLoss {
        queries: &queries,
        keys: &bank,
        dim: DIM,
        temperature: TEMPERATURE,
        positives: &positives,
        items: Some(&items.below(keys)),
    };
    let loss = Loss {
        rows: &mut losses,
        gradient: &mut gradient,
        weight: 1.0,
    };
    let sample = RowSample {
        rows: rows_drawn,
        seed: 9,
    };
    stream.sampled_softmax_loss(&of, sample, loss).unwrap();
    [&losses, &gradient].map(|b| device.download(b).unwrap())
}

/// The positives of the batch's queries.
fn of_batch(keys: usize, each: bool) -> Positives {
    let (all, mut own) = (positives(keys, each), Positives::default());
    items(keys)
        .iter()
        .for_each(|i| own.push(all.of(*i as usize).iter().copied()));
    match each {
        true => own.counting_each(),
        false => own,
    }
}

/// As how many each key counts in a step.
fn counts(keys: usize, rows_drawn: usize, step: u64) -> Vec<f64> {
    let own = of_batch(keys, false);
    let mut counts = vec![0.0; keys];
    let sample = RowSample {
        rows: rows_drawn,
        seed: 9,
    };
    sample
        .draw(step, keys)
        .for_each(|row| counts[row as usize] += 1.0);
    let listed: Vec<usize> = (0..BATCH)
        .flat_map(|q| own.of(q))
        .map(|p| *p as usize)
        .collect();
    listed.iter().for_each(|p| counts[*p] = 0.0);
    let drawn: f64 = counts.iter().sum();
    let unique = std::collections::HashSet::<&usize>::from_iter(&listed).len();
    counts
        .iter_mut()
        .for_each(|n| *n *= (keys - unique) as f64 / drawn);
    listed.iter().for_each(|p| counts[*p] = 1.0);
    counts
}

fn close(found: &[f32], expected: &[f32], what: &str) {
    let scale = expected.iter().fold(1e-30_f32, |m, v| m.max(v.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 2e-5 * scale, "{what}: {a} for {b}");
    }
}

#[test]
fn it_is_what_plain_loops_say_on_any_number_of_processes() {
    for (keys, drawn, each) in [
        (300, 64, false),
        (300, 64, true),
        (300, 2000, false),
        (20, 5, false),
    ] {
        for step in [0, 3] {
            let [mut losses, mut gradient] = [vec![0.0; BATCH], vec![0.0; BATCH * DIM]];
            let (all, counts) = (rows(1, keys), counts(keys, drawn, step));
            let over = (&all[..], &counts[..], DIM, TEMPERATURE);
            counted_softmax_loss(
                &rows(2, BATCH),
                over,
                &of_batch(keys, each),
                &mut losses,
                &mut gradient,
            );
            for ranks in [1, 2, 4] {
                let parts = ThreadRank::run(ranks, |rank| {
                    let device = Device::cpu(1).among(Communicator::of(rank));
                    sampled(&device, keys, each, drawn, step)
                });
                let what = format!("{drawn} of {keys}, step {step}, {ranks} ranks");
                let of = |which: usize| {
                    parts
                        .iter()
                        .flat_map(|p| p[which].clone())
                        .collect::<Vec<_>>()
                };
                close(&of(0), &losses, &format!("losses, {what}"));
                close(&of(1), &gradient, &format!("gradient, {what}"));
            }
        }
    }
}

/// The gradient of the naive one is the slope of its loss.
#[test]
fn its_gradient_is_the_slope_of_its_loss() {
    let (keys, step) = (60, 1);
    let (all, counts, own) = (rows(1, keys), counts(keys, 16, step), of_batch(keys, false));
    let of = |queries: &[f32]| {
        let [mut losses, mut gradient] = [vec![0.0; BATCH], vec![0.0; BATCH * DIM]];
        let over = (&all[..], &counts[..], DIM, TEMPERATURE);
        counted_softmax_loss(queries, over, &own, &mut losses, &mut gradient);
        let mean = losses.iter().map(|l| f64::from(*l)).sum::<f64>() / BATCH as f64;
        (mean, gradient)
    };
    let queries = rows(2, BATCH);
    let (_, gradient) = of(&queries);
    for place in [0, 5, 37, BATCH * DIM - 1] {
        let moved = |by: f32| {
            let mut queries = queries.clone();
            queries[place] += by;
            of(&queries).0
        };
        let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
        assert!(
            (slope - f64::from(gradient[place])).abs() < 1e-3,
            "{slope} {}",
            gradient[place]
        );
    }
}

/// How far the mean of many steps' gradients is from the exact one, and how far one step's is, relative to the exact one's length.
fn bias_and_noise(keys: usize, drawn: usize, steps: u64) -> [f64; 2] {
    let [mut losses, mut exact] = [vec![0.0; BATCH], vec![0.0; BATCH * DIM]];
    let own = of_batch(keys, false);
    softmax_loss(
        &rows(2, BATCH),
        &rows(1, keys),
        DIM,
        TEMPERATURE,
        &own,
        &mut losses,
        &mut exact,
    );
    let length = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let exact: Vec<f64> = exact.iter().map(|v| f64::from(*v)).collect();
    let (mut mean, mut noise) = (vec![0.0; exact.len()], 0.0);
    for step in 0..steps {
        let [_, gradient] = sampled(&Device::cpu(1), keys, false, drawn, step);
        let off: Vec<f64> = gradient
            .iter()
            .zip(&exact)
            .map(|(g, e)| f64::from(*g) - e)
            .collect();
        noise += length(&off).powi(2) / steps as f64;
        mean.iter_mut()
            .zip(off)
            .for_each(|(m, o)| *m += o / steps as f64);
    }
    [
        length(&mean) / length(&exact),
        noise.sqrt() / length(&exact),
    ]
}

#[test]
fn the_expected_gradient_comes_close_to_the_exact_one_with_many_rows() {
    let keys = 2000;
    let of = |drawn| bias_and_noise(keys, drawn, 400);
    let found = [16, 64, 256].map(of);
    println!("bias and noise with 16, 64 and 256 of {keys} rows: {found:.4?}");
    // The mean of 400 is itself off by a twentieth of one step's noise.
    for (drawn, [bias, noise]) in [16.0, 64.0, 256.0].iter().zip(found) {
        assert!(
            bias <= 2.0 / drawn + 2.0 * noise / 20.0,
            "{drawn} rows: {bias}"
        );
    }
    assert!(
        found[2][0] < found[0][0] && found[2][1] < 0.5 * found[0][1],
        "{found:?}"
    );
}
