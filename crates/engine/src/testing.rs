//! What the unit tests of this crate share: numbers to compute with, every kind of CPU, and how errors are measured.

use anchorhood_random::{Draws, Stream};
use pulp::Arch;

use crate::{Cpu, Device, SimdLevel};

/// Values in ±1.
pub(crate) fn uniform(seed: u64, len: usize) -> Vec<f32> {
    let mut values = vec![0.0; len];
    Draws::new(seed, Stream::Weights, 0, 0).fill_symmetric(&mut values, 1.0);
    values
}

/// What `work` gives at each level of vector instructions, having checked that 1, 2 and 4 threads give the same bits.
pub(crate) fn on_every_cpu<const N: usize>(
    work: impl Fn(Arch) -> [Vec<f32>; N] + Sync,
) -> Vec<[Vec<f32>; N]> {
    let at = |level: SimdLevel| {
        let arch = level.arch().expect("an available level");
        let on = |threads| {
            let cpu = Cpu::with_level(threads, level).expect("an available level");
            Device::new(cpu).within(|| work(arch))
        };
        let bits = |results: &[Vec<f32>; N]| {
            let bits = |v: &Vec<f32>| v.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            results.each_ref().map(bits)
        };
        let alone = on(1);
        for threads in [2, 4] {
            assert!(
                bits(&on(threads)) == bits(&alone),
                "{level}, {threads} threads"
            );
        }
        alone
    };
    SimdLevel::available().into_iter().map(at).collect()
}

/// Asserts that the largest difference, relative to the largest value expected, is at most `tolerance`.
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
