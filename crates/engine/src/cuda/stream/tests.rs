//! How a step's loss adds up, on a GPU.

use super::*;
use crate::cuda::testing::{OnDevice, open};
use crate::naive::widen;
use crate::testing::uniform;

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn losses_of_a_step_add_up_and_what_is_not_finite_raises_the_flag() {
    let cuda = open();
    let losses = StepKernels::load(&cuda).unwrap();
    let values: Vec<f32> = uniform(1, 1000);
    let mean = widen(&values).iter().sum::<f64>() / 1000.0;
    let [good, bad] = [values, vec![1.0, f32::INFINITY]].map(|v| OnDevice::new(&cuda, &v));
    let sum = OnDevice::new(&cuda, &[0.0_f64]);
    let ring = OnDevice::new(&cuda, &[9.0_f32; 3]);
    let current = OnDevice::new(&cuda, &[1_u64, 0, 7]);
    let flag = OnDevice::new(&cuda, &[0_u32]);
    let sums = [sum.at, ring.at];
    let step = StepLoss { sums, capacity: 3, current: current.at, flag: flag.at };
    let add = |from: &OnDevice<f32>, count, weight| {
        losses.accumulate_loss(cuda.stream(), from.at, count, weight, step).unwrap();
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
