//! One test body, every device; and the one place where errors are measured.

#![allow(dead_code, unused_imports, unused_macros, reason = "each test binary uses its own part")]

pub mod compare;
pub mod driven;
pub mod graphs;
pub mod losses;
pub mod several;
pub mod similarity;
pub mod training;

use std::sync::OnceLock;

use anchorhood_engine::naive::NaiveNetwork;
pub use anchorhood_engine::naive::widen;
use anchorhood_engine::{
    Cpu, Device, Graph, Initial, Network, NetworkOptions, Precision, Result, SimdLevel, Tensors,
};
use anchorhood_storage::random::{Draws, Stream};

pub use driven::Driven;

/// What an f32 sum of a few thousand products may be off by, relative to the largest value of the
/// tensor.
pub const CPU_TOLERANCE: f64 = 1e-5;

/// The same on a GPU.
pub const CUDA_F32_TOLERANCE: f64 = 1e-5;

/// What activations rounded to bf16 (eight bits) may be off by, over a whole tensor.
pub const CUDA_BF16_TOLERANCE: f64 = 6e-2;

/// From here on a tensor is judged as a whole: where activations are rounded as coarsely as this, a
/// value next to zero falls on the other side of a ReLU now and then, and its own gradient is all
/// wrong.
const COARSE: f64 = 1e-3;

/// Makes a test, per kind of device, of a body `fn name(device: &Device, tolerance: f64)`.
macro_rules! every_device {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[test]
            fn cpu() {
                for device in crate::common::cpus() {
                    super::$name(&device, crate::common::CPU_TOLERANCE);
                }
            }

            #[test]
            #[ignore = "needs an NVIDIA GPU"]
            fn cuda_f32() {
                let [device, _] = crate::common::cudas();
                super::$name(device, crate::common::CUDA_F32_TOLERANCE);
            }

            #[test]
            #[ignore = "needs an NVIDIA GPU"]
            fn cuda_bf16() {
                let [_, device] = crate::common::cudas();
                super::$name(device, crate::common::CUDA_BF16_TOLERANCE);
            }
        }
    )+};
}
pub(crate) use every_device;

/// The CPU with one thread and two, at every level of vector instructions the machine has.
pub fn cpus() -> Vec<Device> {
    let levels = SimdLevel::available();
    let each = |level: &SimdLevel| [1, 2].map(|threads| cpu(threads, *level));
    levels.iter().flat_map(each).collect()
}

/// The CPU at a level that the machine has.
pub fn cpu(threads: usize, level: SimdLevel) -> Device {
    Device::from(Cpu::with_level(threads, level).expect("an available level"))
}

/// The first GPU in f32 and in bf16.
pub fn cudas() -> &'static [Device; 2] {
    static CUDAS: OnceLock<[Device; 2]> = OnceLock::new();
    let open = |p| Device::cuda(0, p).expect("a GPU, and the libraries it needs");
    CUDAS.get_or_init(|| [Precision::F32, Precision::Bf16].map(open))
}

/// Numbers uniform in ±1, the same for the same seed.
pub fn uniform(seed: u64, len: usize) -> Vec<f32> {
    let mut values = vec![0.0; len];
    Draws::new(seed, Stream::Test, 0, 0).fill_symmetric(&mut values, 1.0);
    values
}

/// f64 values in f32.
pub fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|v| *v as f32).collect()
}

/// The values as every precision has them: where it is coarse, cut to bf16, so that what is
/// compared is the work and not the rounding of what it is given.
pub fn representable(values: Vec<f32>, tolerance: f64) -> Vec<f32> {
    let cut = |v: f32| f32::from_bits(v.to_bits() & 0xffff_0000);
    if tolerance < COARSE { values } else { values.into_iter().map(cut).collect() }
}

/// Values for every parameter, none of them at a special point: batch norm's scales and variances
/// in 0.5..1.5, its shifts and means in ±0.5, weights as they begin.
pub fn any_parameters(graph: &Graph, seed: u64) -> Vec<Vec<f32>> {
    let of = |(index, p): (usize, &anchorhood_engine::Parameter)| match p.initial {
        Initial::Constant(centre) => {
            let noise = uniform(seed + 100 + index as u64, p.len());
            noise.iter().map(|u| centre + 0.5 * u).collect()
        }
        Initial::Uniform(_) => p.initial_values(seed, index),
    };
    graph.parameters().iter().enumerate().map(of).collect()
}

/// Gives a device's network and its twin the same parameters.
pub fn set_parameters(
    net: &mut Network,
    twin: &mut NaiveNetwork,
    parameters: &[Vec<f32>],
) -> Result<()> {
    net.initialise(0).unwrap();
    for (i, values) in parameters.iter().enumerate() {
        net.write(Tensors::Values, i, values)?;
        twin.parameters[i] = widen(values);
    }
    Ok(())
}

/// Every tensor of a kind.
pub fn read_all(net: &Network, which: Tensors) -> Vec<Vec<f32>> {
    let parameters = 0..net.graph().parameters().len();
    parameters.map(|i| net.read(which, i).unwrap()).collect()
}

/// The largest difference, relative to the largest value expected; tensors of tiny values are
/// measured against 0.1, since a gradient that is zero in exact arithmetic has no scale of its own.
pub fn error(got: &[f32], expected: &[f64]) -> f64 {
    let scale = expected.iter().fold(0.1, |m: f64, v| m.max(v.abs()));
    let difference = |(g, e): (&f32, &f64)| (f64::from(*g) - e).abs();
    // NaN must not get lost: f64::max would drop it.
    let worse = |m: f64, d: f64| if d > m || d.is_nan() { d } else { m };
    let largest = got.iter().zip(expected).map(difference).fold(0.0, worse);
    largest / scale
}

/// The length of the difference, relative to that of what is expected (or of a tensor of 0.1, as
/// above).
pub fn whole_error(got: &[f32], expected: &[f64]) -> f64 {
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let difference = got.iter().zip(expected).map(|(g, e)| f64::from(*g) - e);
    let least = 0.01 * expected.len().max(1) as f64;
    let scale = squares(&mut expected.iter().copied()).max(least);
    (squares(&mut { difference }) / scale).sqrt()
}

/// Asserts that a tensor is what it should be.
#[track_caller]
pub fn assert_close(what: &str, got: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}: lengths differ");
    let error = if tolerance < COARSE { error(got, expected) } else { whole_error(got, expected) };
    assert!(error <= tolerance, "{what}: error {error:.2e} is above {tolerance:.0e}");
}
