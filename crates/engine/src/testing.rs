//! What the unit tests of this crate share: numbers to compute with, every kind of CPU, and how
//! errors are measured.

use std::ops::Range;

use anchorhood_storage::random::{Draws, Stream};
use pulp::Arch;

use crate::naive::optimisers::step;
use crate::{Cpu, Device, Optimiser, ParameterGroup, SimdLevel};

/// Values in ±1.
pub(crate) fn uniform(seed: u64, len: usize) -> Vec<f32> {
    let mut values = vec![0.0; len];
    Draws::new(seed, Stream::Weights, 0, 0).fill_symmetric(&mut values, 1.0);
    values
}

/// What `work` gives at each level of vector instructions, having checked that 1, 2 and 4 threads
/// give the same bits.
pub(crate) fn on_every_cpu<const N: usize>(
    work: impl Fn(Arch) -> [Vec<f32>; N] + Sync,
) -> Vec<[Vec<f32>; N]> {
    let at = |level: SimdLevel| {
        let arch = level.arch().expect("an available level");
        let on = |threads| {
            let cpu = Cpu::with_level(threads, level).expect("an available level");
            Device::from(cpu).within(|| work(arch))
        };
        let bits = |results: &[Vec<f32>; N]| {
            let bits = |v: &Vec<f32>| v.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            results.each_ref().map(bits)
        };
        let alone = on(1);
        for threads in [2, 4] {
            assert!(bits(&on(threads)) == bits(&alone), "{level}, {threads} threads");
        }
        alone
    };
    SimdLevel::available().into_iter().map(at).collect()
}

/// Asserts that the largest difference, relative to the largest value expected, is at most
/// `tolerance`.
#[track_caller]
pub(crate) fn assert_close(what: &str, got: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}: lengths differ");
    let scale = expected.iter().fold(1e-30, |m: f64, v| m.max(v.abs()));
    let close = |(g, e): (&f32, &f64)| (f64::from(*g) - e).abs() <= tolerance * scale;
    let wrong = got.iter().zip(expected).position(|pair| !close(pair));
    if let Some(i) = wrong {
        panic!(
            "{what}: [{i}] is {}, expected {} (± {tolerance:.0e} of {scale:.2e})",
            got[i], expected[i]
        );
    }
}

/// Each kind of optimiser, with numbers of its own.
pub(crate) fn all_optimisers() -> [Optimiser; 5] {
    let sgd = |nesterov| Optimiser::Sgd { momentum: 0.9, nesterov, decay: 0.01 };
    let lars = |nesterov| Optimiser::Lars {
        momentum: 0.9,
        nesterov,
        decay: 0.01,
        trust: 0.02,
        epsilon: 1e-8,
    };
    let adam_w = Optimiser::AdamW { beta1: 0.9, beta2: 0.99, epsilon: 1e-6, decay: 0.05 };
    [sgd(true), sgd(false), lars(false), lars(true), adam_w]
}

/// Groups of parameters: one like all, one without decay and local rate, a slow one, one that is
/// frozen in the second and third step, and one in the first.
pub(crate) fn all_groups() -> [ParameterGroup; 5] {
    let plain = ParameterGroup::default();
    let apart = ParameterGroup { decay: Some(0.0), adapt: false, ..plain };
    let slow = ParameterGroup { rate_factor: 0.1, decay: Some(0.3), ..plain };
    let frozen = |frozen: Range<u64>| ParameterGroup { frozen: frozen.into(), ..plain };
    [plain, apart, slow, frozen(1..3), frozen(0..1)]
}

/// Weights and state after so many steps of the naive optimiser at a rate of 0.1, given the
/// gradients of each.
pub(crate) fn naive_steps(
    optimiser: Optimiser,
    tensors: &[(Range<usize>, ParameterGroup)],
    mut weights: Vec<f64>,
    steps: u64,
    gradients: impl Fn(u64) -> Vec<f64>,
) -> [Vec<f64>; 3] {
    let [mut first, mut second] = [(); 2].map(|()| vec![0.0; weights.len()]);
    for number in 0..steps {
        let gradients = gradients(number);
        for (range, group) in tensors {
            let at = || range.clone();
            let slots = [&mut first[at()], &mut second[at()]];
            let (w, g, rate) = (&mut weights[at()], &gradients[at()], f64::from(0.1_f32));
            step(&optimiser, rate, number, group, w, slots, g);
        }
    }
    [weights, first, second]
}

/// Asserts that weights and state are those of the naive optimiser, tensor by tensor.
#[track_caller]
pub(crate) fn assert_like_naive(
    what: &str,
    tensors: &[(Range<usize>, ParameterGroup)],
    got: &[Vec<f32>; 3],
    expected: &[Vec<f64>; 3],
) {
    for (which, (got, expected)) in got.iter().zip(expected).enumerate() {
        for (range, _) in tensors {
            let what = format!("{what}, {which} of {range:?}");
            assert_close(&what, &got[range.clone()], &expected[range.clone()], 5e-6);
        }
    }
}
