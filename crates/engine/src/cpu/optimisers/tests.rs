//! Every optimiser beside its naive twin.

use super::*;
use crate::naive::optimisers::step;
use crate::naive::{self, widen};
use crate::testing::{assert_close, on_every_cpu, uniform};

const LEN: usize = 3 * TASK + 100;
const STEPS: u64 = 4;

/// Tensors of one part and of several, alike and apart, with a gap between two of them.
fn tensors() -> Vec<(Range<usize>, ParameterGroup)> {
    let plain = ParameterGroup::default();
    let apart = ParameterGroup {
        decay: Some(0.0),
        adapt: false,
        ..plain
    };
    let slow = ParameterGroup {
        rate_factor: 0.1,
        decay: Some(0.3),
        ..plain
    };
    let frozen = ParameterGroup {
        frozen: true,
        ..plain
    };
    let starts = [0, 5, 2 * TASK, 2 * TASK + 7, LEN - 60, LEN - 20];
    let groups = [plain, plain, apart, slow, frozen, apart];
    let ends = [5, 2 * TASK, 2 * TASK + 7, LEN - 63, LEN - 20, LEN];
    (starts.into_iter().zip(ends).map(|(start, end)| start..end))
        .zip(groups)
        .collect()
}

fn all_optimisers() -> [Optimiser; 5] {
    let sgd = |nesterov| Optimiser::Sgd {
        momentum: 0.9,
        nesterov,
        decay: 0.01,
    };
    let lars = |nesterov| Optimiser::Lars {
        momentum: 0.9,
        nesterov,
        decay: 0.01,
        trust: 0.02,
        epsilon: 1e-8,
    };
    let adam_w = Optimiser::AdamW {
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-6,
        decay: 0.05,
    };
    [sgd(true), sgd(false), lars(false), lars(true), adam_w]
}

fn run(arch: Arch, optimiser: Optimiser) -> [Vec<f32>; 3] {
    let mut update = Update::new(optimiser, tensors());
    let (mut weights, mut first) = (uniform(1, LEN), vec![0.0; LEN]);
    let mut second = vec![0.0; if optimiser.slots() == 2 { LEN } else { 0 }];
    for number in 0..STEPS {
        let gradients = uniform(2 + number, LEN);
        let slots = [&mut first[..], &mut second[..]];
        update.run(arch, 0.1, number, &mut weights, slots, &gradients);
    }
    second.resize(LEN, 0.0);
    [weights, first, second]
}

fn naively(optimiser: Optimiser) -> [Vec<f64>; 3] {
    let (mut weights, mut first, mut second) =
        (widen(&uniform(1, LEN)), vec![0.0; LEN], vec![0.0; LEN]);
    for number in 0..STEPS {
        let gradients = widen(&uniform(2 + number, LEN));
        for (range, group) in tensors() {
            let at = || range.clone();
            let slots = [&mut first[at()], &mut second[at()]];
            let rate = f64::from(0.1_f32);
            let (w, g) = (&mut weights[at()], &gradients[at()]);
            step(&optimiser, rate, number, &group, w, slots, g);
        }
    }
    [weights, first, second]
}

#[test]
fn like_the_naive_ones_and_the_same_for_any_number_of_threads() {
    for optimiser in all_optimisers() {
        let expected = naively(optimiser);
        for got in on_every_cpu(|arch| run(arch, optimiser)) {
            for (which, (got, expected)) in got.iter().zip(&expected).enumerate() {
                for (range, _) in tensors() {
                    let what = format!("{optimiser:?}, {which} of {range:?}");
                    assert_close(&what, &got[range.clone()], &expected[range], 5e-6);
                }
            }
        }
    }
}

/// Where a norm is 0, nothing is scaled, and nothing decays.
#[test]
fn lars_leaves_a_tensor_without_a_gradient_or_without_length() {
    let tensor = || [(0..4, ParameterGroup::default())];
    for (weights, gradient) in [([1.0; 4], [0.0; 4]), ([0.0; 4], [1.0; 4])] {
        let mut update = Update::new(Optimiser::lars(), tensor());
        let (mut moved, mut v) = (weights, [0.0; 4]);
        update.run(
            Arch::new(),
            0.5,
            0,
            &mut moved,
            [&mut v, &mut []],
            &gradient,
        );
        let expected: [f32; 4] = std::array::from_fn(|i| weights[i] - 0.5 * gradient[i]);
        assert_eq!(moved, expected);
    }
}

#[test]
fn moving_average_like_the_naive_one() {
    let (source, target) = (uniform(1, LEN), uniform(2, LEN));
    let mut expected = widen(&target);
    naive::optimisers::ema(f64::from(0.99_f32), &mut expected, &widen(&source));
    let got = on_every_cpu(|arch| {
        let mut target = target.clone();
        ema(arch, 0.99, &mut target, &source);
        [target]
    });
    for [got] in got {
        assert_close("moving average", &got, &expected, 1e-6);
    }
}
