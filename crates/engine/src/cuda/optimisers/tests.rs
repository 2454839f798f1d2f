//! Every optimiser beside its naive twin on a GPU, and the table of tensors on any machine.

use std::slice::from_ref;

use super::*;
use crate::cuda::Precision;
use crate::cuda::testing::OnDevice;
use crate::naive::widen;
use crate::testing::{all_groups, all_optimisers, assert_like_naive, naive_steps, uniform};

const MATRICES: usize = 2 * PART + 24;
const LEN: usize = MATRICES + 64;
const STEPS: u64 = 4;

/// Tensors of one part and of several, alike and apart, with gaps up to the next eight values.
fn tensors() -> Vec<(Range<usize>, ParameterGroup)> {
    let [plain, apart, slow, paused, late] = all_groups();
    vec![
        (MATRICES..MATRICES + 7, apart),
        (0..2 * PART + 5, plain),
        (2 * PART + 8..MATRICES, slow),
        (MATRICES + 8..MATRICES + 24, paused),
        (MATRICES + 24..MATRICES + 40, late),
        (MATRICES + 40..LEN, apart),
    ]
}

/// Values that bf16 has, and zeros between the tensors.
fn values(seed: u64) -> Vec<f32> {
    let mut values = vec![0.0; LEN];
    let random = uniform(seed, LEN);
    for (range, _) in tensors() {
        for i in range {
            values[i] = f32::from_bits(random[i].to_bits() & 0xffff_0000);
        }
    }
    values
}

fn bf16(values: &[f32]) -> Vec<u16> {
    values.iter().map(|v| (v.to_bits() >> 16) as u16).collect()
}

/// A network's vectors on a device.
struct Net {
    weights: OnDevice<f32>,
    slots: [OnDevice<f32>; 2],
    copies: OnDevice<u16>,
    matrices: usize,
}

impl Net {
    fn new(cuda: &Cuda) -> Self {
        let zeros = || OnDevice::new(cuda, &vec![0.0; LEN]);
        Net {
            weights: OnDevice::new(cuda, &values(1)),
            slots: [zeros(), zeros()],
            copies: OnDevice::new(cuda, &bf16(&values(1)[..MATRICES])),
            matrices: match cuda.precision() {
                Precision::Bf16 => MATRICES,
                Precision::Tf32 | Precision::F32 => 0,
            },
        }
    }

    fn vectors(&self) -> Vectors {
        Vectors {
            weights: self.weights.at,
            slots: self.slots.each_ref().map(|s| s.at),
            copies: self.copies.at,
            matrices: self.matrices,
        }
    }

    fn read(&self, cuda: &Cuda) -> [Vec<f32>; 3] {
        let [first, second] = &self.slots;
        [&self.weights, first, second].map(|v| v.read(cuda))
    }
}

/// Some steps over gradients of so many passes, the weights in one range or several.
fn run(cuda: &Cuda, optimiser: Optimiser, passes: u64, ranges: &[Range<usize>], flag: u32) -> Net {
    let net = Net::new(cuda);
    let update = Update::new(cuda, optimiser, tensors(), LEN).unwrap();
    let rate = OnDevice::new(cuda, &[0.1_f32]);
    let flag = OnDevice::new(cuda, &[flag]);
    for number in 0..STEPS {
        let current = OnDevice::new(cuda, &[7_u64, 7, number]);
        let gradients = (0..passes).map(|pass| values(2 + 40 * number + pass));
        let gradients: Vec<_> =
            gradients.map(|g| (OnDevice::new(cuda, &g), OnDevice::new(cuda, &bf16(&g)))).collect();
        let at: Vec<_> = gradients.iter().map(|(g, n)| [g.at, n.at]).collect();
        let inputs = StepInputs { rate: rate.at, current: current.at, flag: flag.at };
        for some in ranges {
            update.enqueue(cuda.stream(), &inputs, &at, &net.vectors(), some.clone()).unwrap();
        }
        cuda.synchronise().unwrap();
    }
    net
}

fn naively(optimiser: Optimiser, passes: u64) -> [Vec<f64>; 3] {
    let sums = |number| {
        let mut sums = vec![0.0; LEN];
        for pass in 0..passes {
            let own = widen(&values(2 + 40 * number + pass));
            sums.iter_mut().zip(own).for_each(|(sum, g)| *sum += g);
        }
        sums
    };
    naive_steps(optimiser, &tensors(), widen(&values(1)), STEPS, sums)
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn like_the_naive_ones_in_one_range_or_two() {
    for precision in [Precision::F32, Precision::Bf16] {
        let cuda = Cuda::new(0, precision).unwrap();
        for optimiser in all_optimisers() {
            for passes in [1, 3, MOST_PASSES as u64] {
                let what = format!("{precision}, {optimiser:?}, {passes} passes");
                let net = run(&cuda, optimiser, passes, from_ref(&(0..LEN)), 0);
                let got = net.read(&cuda);
                assert_like_naive(&what, &tensors(), &got, &naively(optimiser, passes));
                if precision == Precision::Bf16 {
                    let copies = net.copies.read(&cuda);
                    let copies: Vec<f32> =
                        copies.iter().map(|b| f32::from_bits(u32::from(*b) << 16)).collect();
                    let close = |(c, w): (&f32, &f32)| (c - w).abs() <= w.abs() / 256.0;
                    assert!(copies.iter().zip(&got[0]).all(close), "{what}: copies");
                }
                let middle = 2 * PART + 8;
                let in_two = run(&cuda, optimiser, passes, &[middle..LEN, 0..middle], 0);
                assert!(in_two.read(&cuda) == got, "{what}: in two ranges");
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_flag_that_is_up_leaves_everything_unchanged() {
    let cuda = Cuda::new(0, Precision::Bf16).unwrap();
    let before = Net::new(&cuda).read(&cuda);
    for optimiser in all_optimisers() {
        let net = run(&cuda, optimiser, 1, from_ref(&(0..LEN)), 1);
        assert!(net.read(&cuda) == before, "{optimiser:?}");
        assert_eq!(net.copies.read(&cuda), bf16(&before[0][..MATRICES]));
    }
}

#[test]
fn the_table_covers_every_tensor_and_parts_cross_none() {
    let mut all = tensors();
    all.sort_by_key(|(range, _)| range.start);
    let numbers = numbers(&all, LEN).unwrap();
    let (parts, starts) = parts(&all);
    for (number, (range, _)) in all.iter().enumerate() {
        assert!(range.clone().all(|at| numbers[at / ALIGN] as usize == number));
        let own = &parts[starts[number] as usize..starts[number + 1] as usize];
        assert!(own.iter().all(|p| p.tensor as usize == number && p.start % 8 == 0));
        assert_eq!(own.iter().map(|p| p.len as usize).sum::<usize>(), range.len());
    }
    let crooked = vec![(3..9, ParameterGroup::default())];
    assert!(super::numbers(&crooked, LEN).is_err() && super::numbers(&all, LEN - 1).is_err());
    assert!(check_range(&(8..16), 16).is_ok() && check_range(&(8..24), 16).is_err());
    assert!(check_range(&(4..16), 16).is_err() && check_range(&(8..12), 16).is_err());
    assert!(gradients(&[], 0).is_err() && gradients(&[[0; 2]; 33], 0).is_err());
    assert_eq!(gradients(&[[16, 8]; 2], 8).unwrap().narrow[1], 24);
}
