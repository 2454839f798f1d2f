//! The loss over a sample of the keys: what it is, that several processes find the same, and how
//! far its mean is from the exact one.

use anchorhood_engine::naive::similarity::{counted_softmax_loss, softmax_loss};
use anchorhood_engine::naive::widen;
use anchorhood_engine::{
    Buffer, Communicator, Device, DevicePositives, Loss, Positives, Result, RowSample, SoftmaxLoss,
    Stream,
};
use anchorhood_random::{Draws, Stream as Purpose};
use anchorhood_ranks::ThreadRank;

use crate::common;
use crate::common::several::sharded;
use crate::common::training::{epoch, losses_of};
use crate::common::{assert_close, every_device};

every_device!(it_is_what_plain_loops_say, every_step_of_a_recording_draws_its_own_rows,);

/// Rows that a GPU has kernels in bf16 for.
const DIM: usize = 32;
const BATCH: usize = 8;
const TEMPERATURE: f32 = 0.2;

/// Rows of unit length.
fn rows(item: u64, count: usize) -> Vec<f32> {
    let mut rows = vec![0.0; count * DIM];
    Draws::new(5, Purpose::Test, 0, item).fill_symmetric(&mut rows, 1.0);
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

/// The same on a device, of this process's part of the keys.
fn own_positives(device: &Device, keys: usize, each: bool) -> DevicePositives {
    let (all, part) = (positives(keys, each), device.communicator().part(keys));
    let own = some_of(&all, part.map(|i| i as u32));
    device.positives_part(&own, keys, keys).unwrap()
}

/// The positives of some items.
fn some_of(all: &Positives, items: impl Iterator<Item = u32>) -> Positives {
    let mut own = Positives::default();
    items.for_each(|i| own.push(all.of(i as usize).iter().copied()));
    match all.count_each() {
        true => own.counting_each(),
        false => own,
    }
}

fn items(keys: usize) -> Vec<u32> {
    (0..BATCH as u32).map(|i| (11 * i + 2) % keys as u32).collect()
}

/// What a loss is of, on a device: this process's part of it.
struct Asked {
    bank: Buffer,
    queries: Buffer,
    items: Buffer<u32>,
    positives: DevicePositives,
    losses: Buffer,
    gradient: Buffer,
    drawn: usize,
}

impl Asked {
    fn new(device: &Device, (keys, drawn, each): Case) -> Self {
        let own = device.communicator().part(BATCH);
        let queries = rows(2, BATCH);
        let items = device.upload_indices(&items(keys)[own.clone()]).unwrap();
        Asked {
            bank: sharded(device, &rows(1, keys), DIM),
            queries: device.upload(common::several::own(device, &queries, DIM)).unwrap(),
            items: items.below(keys).unwrap(),
            positives: own_positives(device, keys, each),
            losses: device.zeros(own.len()).unwrap(),
            gradient: device.zeros(own.len() * DIM).unwrap(),
            drawn,
        }
    }

    fn ask(&mut self, stream: &mut Stream) -> Result<()> {
        let of = SoftmaxLoss {
            queries: &self.queries,
            keys: &self.bank,
            dim: DIM,
            temperature: TEMPERATURE,
            positives: &self.positives,
            items: Some(&self.items),
        };
        let loss = Loss { rows: &mut self.losses, gradient: &mut self.gradient, weight: 1.0 };
        let sample = RowSample { rows: self.drawn, seed: 9 };
        stream.sampled_softmax_loss(&of, sample, loss)
    }
}

/// Losses and gradient of this process's queries, in a step.
fn sampled(device: &Device, case: Case, step: u64) -> [Vec<f32>; 2] {
    let (mut asked, mut stream) = (Asked::new(device, case), device.stream().unwrap());
    stream.set_step(step, 0.0).unwrap();
    asked.ask(&mut stream).unwrap();
    [&asked.losses, &asked.gradient].map(|b| device.download(b).unwrap())
}

/// The positives of the batch's queries.
fn of_batch(keys: usize, each: bool) -> Positives {
    some_of(&positives(keys, each), items(keys).into_iter())
}

fn of_batch_members(keys: usize, each: bool) -> Vec<u32> {
    let own = of_batch(keys, each);
    (0..BATCH).flat_map(|q| own.of(q).to_vec()).collect()
}

/// As how many each key counts in a step.
fn counts(keys: usize, rows_drawn: usize, step: u64) -> Vec<f64> {
    let mut counts = vec![0.0; keys];
    let sample = RowSample { rows: rows_drawn, seed: 9 };
    sample.draw(step, keys).for_each(|row| counts[row as usize] += 1.0);
    let listed: Vec<usize> = of_batch_members(keys, false).iter().map(|p| *p as usize).collect();
    listed.iter().for_each(|p| counts[*p] = 0.0);
    let drawn: f64 = counts.iter().sum();
    let unique = std::collections::HashSet::<&usize>::from_iter(&listed).len();
    counts.iter_mut().for_each(|n| *n *= (keys - unique) as f64 / drawn.max(1.0));
    listed.iter().for_each(|p| counts[*p] = 1.0);
    counts
}

fn close(found: &[f32], expected: &[f32], what: &str) {
    let scale = expected.iter().fold(1e-30_f32, |m, v| m.max(v.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 2e-5 * scale, "{what}: {a} for {b}");
    }
}

/// So many keys, of which so many are drawn, and whether each positive counts.
type Case = (usize, usize, bool);

/// Of the last two, in the first of the steps tried, every row that is drawn is a positive: of all
/// keys, and of some.
const CASES: [Case; 6] = [
    (300, 64, false),
    (300, 64, true),
    (300, 2000, false),
    (20, 5, false),
    (9, 4, false),
    (20, 1, true),
];

/// Losses and gradient of a step, by plain loops.
fn expected((keys, drawn, each): Case, step: u64) -> [Vec<f32>; 2] {
    let [mut losses, mut gradient] = [vec![0.0; BATCH], vec![0.0; BATCH * DIM]];
    let (all, counts) = (rows(1, keys), counts(keys, drawn, step));
    let over = (&all[..], &counts[..], DIM, TEMPERATURE);
    let own = of_batch(keys, each);
    counted_softmax_loss(&rows(2, BATCH), over, &own, &mut losses, &mut gradient);
    [losses, gradient]
}

fn it_is_what_plain_loops_say(device: &Device, tolerance: f64) {
    for case in CASES {
        // Beyond 32 bits, too: a long run's steps.
        for step in [0, 3, (1 << 33) + 5] {
            let found = sampled(device, case, step);
            let expected = expected(case, step).map(|v| widen(&v));
            assert_close("losses", &found[0], &expected[0], 2.0 * tolerance);
            assert_close("gradient", &found[1], &expected[1], 2.0 * tolerance);
        }
    }
}

#[test]
fn cases_are_there_in_which_every_row_drawn_is_a_positive() {
    let drawn_others = |(keys, drawn, each): Case| {
        let listed: Vec<u32> = of_batch_members(keys, each);
        let sample = RowSample { rows: drawn, seed: 9 };
        let others = (0..keys as u32).filter(|key| !listed.contains(key)).count();
        let drawn = sample.draw(0, keys).filter(|row| !listed.contains(row));
        (drawn.count(), others)
    };
    assert_eq!(drawn_others(CASES[4]), (0, 0));
    let (drawn, others) = drawn_others(CASES[5]);
    assert!(drawn == 0 && others > 0, "{drawn} of {others}");
}

/// A step that is recorded and replayed looks at other rows each time.
fn every_step_of_a_recording_draws_its_own_rows(device: &Device, tolerance: f64) {
    const STEPS: usize = 6;
    let case = CASES[0];
    let (mut asked, mut stream) = (Asked::new(device, case), device.stream().unwrap());
    let nothing = device.upload(&[0.0; STEPS]).unwrap();
    let mut source = device.row_batches(nothing.into(), 1, 1).unwrap();
    let (order, rates) = ((0..STEPS as u32).collect::<Vec<_>>(), [vec![0.0; STEPS]]);
    let steps = epoch(&order, 0, &rates);
    stream.begin_epoch(&mut source, &steps).unwrap();
    for _ in 0..STEPS {
        let step = stream.step(&mut source, &mut |stream, _| asked.ask(stream));
        step.unwrap();
    }
    let told = losses_of(&mut stream);
    assert_eq!(told.len(), STEPS);
    for (step, told) in told.iter().enumerate() {
        let [losses, _] = expected(case, step as u64);
        let mean = losses.iter().map(|l| f64::from(*l)).sum::<f64>() / BATCH as f64;
        assert!((told - mean).abs() <= 2.0 * tolerance * mean, "step {step}: {told} for {mean}");
    }
}

#[test]
fn several_processes_find_what_plain_loops_say() {
    for case in CASES {
        for step in [0, 3] {
            let [losses, gradient] = expected(case, step);
            for ranks in [1, 2, 4] {
                let parts = ThreadRank::run(ranks, |rank| {
                    let device = Device::cpu(1).among(Communicator::of(rank));
                    sampled(&device, case, step)
                });
                let what = format!("{case:?}, step {step}, {ranks} ranks");
                let of =
                    |which: usize| parts.iter().flat_map(|p| p[which].clone()).collect::<Vec<_>>();
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
        assert!((slope - f64::from(gradient[place])).abs() < 1e-3, "{slope} {}", gradient[place]);
    }
}

/// How far the mean of many steps' gradients is from the exact one, and how far one step's is,
/// relative to the exact one's length.
fn bias_and_noise(keys: usize, drawn: usize, steps: u64) -> [f64; 2] {
    let [mut losses, mut exact] = [vec![0.0; BATCH], vec![0.0; BATCH * DIM]];
    let own = of_batch(keys, false);
    softmax_loss(&rows(2, BATCH), &rows(1, keys), DIM, TEMPERATURE, &own, &mut losses, &mut exact);
    let length = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let exact: Vec<f64> = exact.iter().map(|v| f64::from(*v)).collect();
    let (mut mean, mut noise) = (vec![0.0; exact.len()], 0.0);
    for step in 0..steps {
        let [_, gradient] = sampled(&Device::cpu(1), (keys, drawn, false), step);
        let off: Vec<f64> = gradient.iter().zip(&exact).map(|(g, e)| f64::from(*g) - e).collect();
        noise += length(&off).powi(2) / steps as f64;
        mean.iter_mut().zip(off).for_each(|(m, o)| *m += o / steps as f64);
    }
    [length(&mean) / length(&exact), noise.sqrt() / length(&exact)]
}

#[test]
fn the_expected_gradient_comes_close_to_the_exact_one_with_many_rows() {
    let keys = 2000;
    let of = |drawn| bias_and_noise(keys, drawn, 400);
    let found = [16, 64, 256].map(of);
    println!("bias and noise with 16, 64 and 256 of {keys} rows: {found:.4?}");
    // The mean of 400 is itself off by a twentieth of one step's noise.
    for (drawn, [bias, noise]) in [16.0, 64.0, 256.0].iter().zip(found) {
        assert!(bias <= 2.0 / drawn + 2.0 * noise / 20.0, "{drawn} rows: {bias}");
    }
    assert!(found[2][0] < found[0][0] && found[2][1] < 0.5 * found[0][1], "{found:?}");
}
