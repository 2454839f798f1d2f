//! Every loss beside its naive twin, on a GPU.

use super::*;
use crate::cuda::testing::{OnDevice, open, unwritten};
use crate::naive::{self, widen};
use crate::testing::{assert_close, uniform};

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn cross_entropy_like_the_naive_one() {
    let cuda = open();
    let losses = Losses::load(&cuda).unwrap();
    for (batch, classes) in [(1, 1), (3, 2), (37, 10), (5, 1000), (2, 1031), (2, 100_000)] {
        let logits: Vec<f32> = uniform(1, batch * classes)
            .iter()
            .map(|l| 8.0 * l)
            .collect();
        let labels: Vec<u32> = (0..batch).map(|i| (i * 7 % classes) as u32).collect();
        let indices: Vec<u32> = (0..batch as u32).rev().collect();
        let [mut expected, mut expected_gradient] = [vec![0.0; batch], vec![0.0; logits.len()]];
        naive::cross_entropy::cross_entropy(
            &widen(&logits),
            classes,
            &labels,
            &indices,
            f64::from(0.7_f32),
            &mut expected,
            &mut expected_gradient,
        );
        let on_device = OnDevice::new(&cuda, &logits);
        let words = [labels, indices].map(|w| OnDevice::new(&cuda, &w));
        let out = [batch, logits.len()].map(|len| unwritten(&cuda, len));
        losses
            .cross_entropy(
                cuda.stream(),
                on_device.at,
                [batch, classes],
                words.each_ref().map(|w| w.at),
                0.7,
                out.each_ref().map(|o| o.at),
            )
            .unwrap();
        let [got, gradient] = out.each_ref().map(|o| o.read(&cuda));
        let what = format!("{batch} rows, {classes} classes");
        assert_close(&format!("losses, {what}"), &got, &expected, 1e-6);
        assert_close(
            &format!("gradient, {what}"),
            &gradient,
            &expected_gradient,
            1e-6,
        );
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn losses_of_a_step_add_up_and_what_is_not_finite_raises_the_flag() {
    let cuda = open();
    let losses = Losses::load(&cuda).unwrap();
    let values: Vec<f32> = uniform(1, 1000);
    let mean = widen(&values).iter().sum::<f64>() / 1000.0;
    let [good, bad] = [values, vec![1.0, f32::INFINITY]].map(|v| OnDevice::new(&cuda, &v));
    let sum = OnDevice::new(&cuda, &[0.0_f64]);
    let ring = OnDevice::new(&cuda, &[9.0_f32; 3]);
    let current = OnDevice::new(&cuda, &[1_u64, 0, 7]);
    let flag = OnDevice::new(&cuda, &[0_u32]);
    let step = StepLoss {
        sum: sum.at,
        ring: ring.at,
        capacity: 3,
        current: current.at,
        flag: flag.at,
    };
    let add = |from: &OnDevice<f32>, count, weight| {
        losses
            .accumulate_loss(cuda.stream(), from.at, count, weight, &step)
            .unwrap();
    };
    add(&good, 1000, 1.0);
    add(&good, 1000, 0.5);
    let expected = 1.5 * mean;
    assert!((sum.read(&cuda)[0] - expected).abs() < 1e-12);
    assert_eq!(ring.read(&cuda), [9.0, expected as f32, 9.0]);
    assert_eq!(flag.read(&cuda), [0]);
    add(&bad, 2, 1.0);
    assert_eq!(flag.read(&cuda), [1]);
    add(&good, 1000, 1.0);
    assert_eq!(flag.read(&cuda), [1], "stays up");
}

/// A loss between two matrices, beside its naive twin; the first row of the first matrix is zero.
fn between_two(
    run: impl Fn(&Losses, &Cuda, [Pointer; 2], [usize; 2], [Pointer; 2]),
    naively: impl Fn(&[f64], &[f64], usize, &mut [f64], &mut [f64]),
) {
    let cuda = open();
    let kernels = Losses::load(&cuda).unwrap();
    for (rows, dim) in [(1, 1), (3, 7), (40, 64), (33, 131), (9, 2048)] {
        let [mut a, b] = [uniform(1, rows * dim), uniform(2, rows * dim)];
        a[..dim].fill(0.0);
        let [mut losses, mut gradient] = [vec![0.0; rows], vec![0.0; rows * dim]];
        naively(&widen(&a), &widen(&b), dim, &mut losses, &mut gradient);
        let both = [a, b].map(|x| OnDevice::new(&cuda, &x));
        let out = [rows, rows * dim].map(|len| unwritten(&cuda, len));
        let (from, to) = (both.each_ref().map(|x| x.at), out.each_ref().map(|o| o.at));
        run(&kernels, &cuda, from, [rows, dim], to);
        let [got_losses, got] = out.each_ref().map(|o| o.read(&cuda));
        assert_close("losses", &got_losses, &losses, 1e-6);
        // The row of zeros may have a gradient that dwarfs all others.
        assert_close("of zero", &got[..dim], &gradient[..dim], 1e-6);
        assert_close("gradient", &got[dim..], &gradient[dim..], 1e-6);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn cosine_like_the_naive_one() {
    let weight = f64::from(0.7_f32);
    between_two(
        |losses, cuda, from, shape, to| losses.cosine(cuda.stream(), from, shape, 0.7, to).unwrap(),
        |p, z, dim, losses, gradient| naive::cosine::cosine(p, z, dim, weight, losses, gradient),
    );
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn mean_squared_like_the_naive_one() {
    use naive::mean_squared::mean_squared;
    let weight = f64::from(0.7_f32);
    between_two(
        |losses, cuda, from, shape, to| {
            losses
                .mean_squared(cuda.stream(), from, shape, 0.7, to)
                .unwrap();
        },
        |a, b, dim, losses, gradient| mean_squared(a, b, dim, weight, losses, gradient),
    );
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn means_of_others_like_the_naive_ones() {
    let cuda = open();
    let losses = Losses::load(&cuda).unwrap();
    for (views, batch, dim) in [(2, 1, 1), (2, 9, 33), (5, 7, 16)] {
        let rows = uniform(1, views * batch * dim);
        let on_device = OnDevice::new(&cuda, &rows);
        for normalise in [true, false] {
            let mut expected = vec![0.0; rows.len()];
            naive::cosine::mean_of_others(&widen(&rows), dim, views, normalise, &mut expected);
            let targets = unwritten(&cuda, rows.len());
            let shape = [views, batch, dim];
            losses
                .mean_of_others(cuda.stream(), on_device.at, shape, normalise, targets.at)
                .unwrap();
            assert_close("targets", &targets.read(&cuda), &expected, 1e-6);
        }
    }
}
