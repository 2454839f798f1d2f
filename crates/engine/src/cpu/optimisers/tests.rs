//! Every optimiser beside its naive twin.

use super::*;
use crate::naive::widen;
use crate::testing::{
    all_groups, all_optimisers, assert_like_naive, naive_steps, on_every_cpu, uniform,
};

const LEN: usize = 3 * TASK + 100;
const STEPS: u64 = 4;

/// Tensors of one part and of several, alike and apart, with a gap between two of them.
fn tensors() -> Vec<(Range<usize>, ParameterGroup)> {
    let [plain, apart, slow, paused, late] = all_groups();
    let starts = [0, 5, 2 * TASK, 2 * TASK + 7, LEN - 60, LEN - 40, LEN - 20];
    let groups = [plain, plain, apart, slow, paused, late, apart];
    let ends = [5, 2 * TASK, 2 * TASK + 7, LEN - 63, LEN - 40, LEN - 20, LEN];
    (starts.into_iter().zip(ends).map(|(start, end)| start..end)).zip(groups).collect()
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

#[test]
fn like_the_naive_ones_and_the_same_for_any_number_of_threads() {
    for optimiser in all_optimisers() {
        let gradients = |number| widen(&uniform(2 + number, LEN));
        let begin = widen(&uniform(1, LEN));
        let expected = naive_steps(optimiser, &tensors(), begin, STEPS, gradients);
        for got in on_every_cpu(|arch| run(arch, optimiser)) {
            assert_like_naive(&format!("{optimiser:?}"), &tensors(), &got, &expected);
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
        update.run(Arch::new(), 0.5, 0, &mut moved, [&mut v, &mut []], &gradient);
        let expected: [f32; 4] = std::array::from_fn(|i| weights[i] - 0.5 * gradient[i]);
        assert_eq!(moved, expected);
    }
}
