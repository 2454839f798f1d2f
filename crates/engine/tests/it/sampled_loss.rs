//! The loss over a sample of the keys: what it is, that a recording draws anew, and how far its mean
//! is from the exact one.

use anchorhood_engine::{Device, Loss, Positives, RowSample};

use crate::common::losses::{LossCase, LossKind, Softmax};
use crate::common::similarity::unit_rows;
use crate::common::training::{epoch, losses_of, row_batches, take_steps};
use crate::common::{every_device, widen};

every_device!(every_step_of_a_recording_draws_its_own_rows);

/// Rows that a GPU has kernels in bf16 for.
const DIM: usize = 32;
const BATCH: usize = 8;

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

/// Each key's positives: itself, and for every second another one, too.
fn positives(keys: usize, each: bool) -> Positives {
    let mut positives = Positives::default();
    for i in 0..keys as u32 {
        let other = (7 * i + 3) % keys as u32;
        positives.push([i, if i % 2 == 0 { other } else { i }]);
    }
    if each { positives.counting_each() } else { positives }
}

fn softmax((keys, drawn, each): Case, step: u64) -> Softmax {
    Softmax {
        keys: widen(&unit_rows(1, keys, DIM)),
        temperature: 0.2,
        positives: positives(keys, each),
        items: Some((0..BATCH as u32).map(|i| (11 * i + 2) % keys as u32).collect()),
        sample: Some((RowSample { rows: drawn, seed: 9 }, step)),
    }
}

/// What is compared with plain loops and, where it is small, with differences: on every device, by
/// any number of threads and processes.
pub fn cases(tolerance: f64) -> impl Iterator<Item = LossCase> {
    // Beyond 32 bits, too: a long run's steps.
    let steps = |of| [0, 3, (1 << 33) + 5].map(|step| case(softmax(of, step)));
    CASES.into_iter().flat_map(steps).map(move |case| case.within(2.0 * tolerance))
}

fn case(of: Softmax) -> LossCase {
    let case = LossCase::new(LossKind::Softmax(of), widen(&unit_rows(2, BATCH, DIM)), [1, DIM]);
    LossCase { weight: 1.0, ..case }
}

#[test]
fn cases_are_there_in_which_every_row_drawn_is_a_positive() {
    let drawn_others = |of: Case| {
        let own = softmax(of, 0).of_rows(BATCH);
        let listed: Vec<u32> = (0..BATCH).flat_map(|q| own.of(q).to_vec()).collect();
        let (keys, drawn, _) = of;
        let others = (0..keys as u32).filter(|key| !listed.contains(key)).count();
        let drawn = RowSample { rows: drawn, seed: 9 }.draw(0, keys);
        (drawn.filter(|row| !listed.contains(row)).count(), others)
    };
    assert_eq!(drawn_others(CASES[4]), (0, 0));
    let (drawn, others) = drawn_others(CASES[5]);
    assert!(drawn == 0 && others > 0, "{drawn} of {others}");
}

/// A step that is recorded and replayed looks at other rows each time.
fn every_step_of_a_recording_draws_its_own_rows(device: &Device, tolerance: f64) {
    const STEPS: usize = 6;
    let (of, rows) = (softmax(CASES[0], 0), device.upload(&unit_rows(2, BATCH, DIM)).unwrap());
    let [mut losses, mut gradient] = [BATCH, BATCH * DIM].map(|len| device.zeros(len).unwrap());
    let (mut source, mut stream) =
        (row_batches(device, vec![0.0; STEPS], 1, 1), device.stream().unwrap());
    let (order, rates) = ((0..STEPS as u32).collect::<Vec<_>>(), [vec![0.0; STEPS]]);
    let (sample, _) = of.sample.unwrap();
    of.on(device, &rows, DIM, |of| {
        take_steps(&mut stream, &mut source, &epoch(&order, 0, &rates), STEPS, |stream, _| {
            let to = Loss { rows: &mut losses, gradient: &mut gradient, weight: 1.0 };
            stream.sampled_softmax_loss(of, sample, to)
        });
    });
    let told = losses_of(&mut stream);
    assert_eq!(told.len(), STEPS);
    for (step, told) in told.into_iter().enumerate() {
        let [losses, _] = case(softmax(CASES[0], step as u64)).expected();
        let mean = losses.iter().sum::<f64>() / BATCH as f64;
        assert!((told - mean).abs() <= 2.0 * tolerance * mean, "step {step}: {told} for {mean}");
    }
}

/// How far the mean of many steps' gradients is from the exact one, and how far one step's is,
/// relative to the exact one's length.
fn bias_and_noise(keys: usize, drawn: usize, steps: u64) -> [f64; 2] {
    let sampled = |step| softmax((keys, drawn, false), step);
    let [_, exact] = case(Softmax { sample: None, ..sampled(0) }).expected();
    let length = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let (mut mean, mut noise) = (vec![0.0; exact.len()], 0.0);
    for step in 0..steps {
        let [_, gradient] = case(sampled(step)).on(&Device::cpu(1));
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
