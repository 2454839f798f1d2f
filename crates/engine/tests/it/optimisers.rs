//! Steps of every naive optimiser, beside PyTorch's SGD and AdamW and timm's LARS
//! (tools/golden/optimisers.py). Each device's are compared with them beside their own code.

use anchorhood_engine::naive::optimisers as naive;
use anchorhood_engine::{FrozenSteps, Initial, Optimiser, Parameter, ParameterGroup, Role};

#[derive(serde::Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    rate: f32,
    decays: Vec<f32>,
    /// Steps in which the first tensor is not trained: the first of them, and the first after them.
    frozen: [u64; 2],
    begin: Vec<Vec<f64>>,
    steps: Vec<Step>,
}

#[derive(serde::Deserialize)]
struct Step {
    gradients: Vec<Vec<f64>>,
    weights: Vec<Vec<f64>>,
    slots: Vec<Vec<Vec<f64>>>,
}

fn golden() -> Vec<Case> {
    let golden: Golden = serde_json::from_str(include_str!("../golden/optimisers.json")).unwrap();
    assert_eq!(golden.cases.len(), 8);
    golden.cases
}

/// The optimiser of a case, as the script made it; its own decay is of no account, since groups
/// have theirs.
fn optimiser_of(case: &Case) -> Optimiser {
    let (momentum, decay) = (0.875, f32::NAN);
    let sgd = |nesterov| Optimiser::Sgd { momentum, nesterov, decay };
    let lars = |nesterov| Optimiser::Lars {
        momentum,
        nesterov,
        decay,
        trust: 0.0625,
        epsilon: 2.0_f32.powi(-20),
    };
    match case.name.as_str() {
        "sgd" => sgd(false),
        "sgd_nesterov" => sgd(true),
        "lars" | "lars_of_a_bias" => lars(false),
        "lars_nesterov" => lars(true),
        "adam_w" | "adam_w_frozen_first" | "adam_w_frozen_later" => {
            Optimiser::AdamW { beta1: 0.875, beta2: 0.9375, epsilon: 2.0_f32.powi(-20), decay }
        }
        other => panic!("no optimiser is named {other}"),
    }
}

/// The group of a case's tensor.
fn group_of(case: &Case, tensor: usize) -> ParameterGroup {
    let decay = case.decays[tensor];
    ParameterGroup {
        rate_factor: [1.0, 0.125][tensor],
        decay: Some(decay),
        frozen: match tensor {
            0 => (case.frozen[0]..case.frozen[1]).into(),
            _ => FrozenSteps::NONE,
        },
        adapt: decay != 0.0, // as timm has it
    }
}

#[test]
fn naive_steps_are_those_of_pytorch() {
    for case in golden() {
        let optimiser = optimiser_of(&case);
        for tensor in 0..2 {
            let (group, mut weights) = (group_of(&case, tensor), case.begin[tensor].clone());
            let mut slots = [(); 2].map(|()| vec![0.0; weights.len()]);
            for (number, step) in case.steps.iter().enumerate() {
                let state = slots.each_mut().map(|s| &mut s[..]);
                let rate = f64::from(case.rate);
                let gradient = &step.gradients[tensor];
                naive::step(&optimiser, rate, number as u64, &group, &mut weights, state, gradient);
                let expected = (step.slots[tensor].iter()).chain([&step.weights[tensor]]);
                let got = slots[..optimiser.slots()].iter().chain([&weights]);
                for (got, expected) in got.zip(expected) {
                    for (got, expected) in got.iter().zip(expected) {
                        let error = (got - expected).abs();
                        assert!(error < 1e-12, "{}, step {number}: {error:e}", case.name);
                    }
                }
            }
        }
    }
}

#[test]
fn own_steps_leave_out_those_frozen() {
    let own = |frozen: FrozenSteps| {
        let group = ParameterGroup { frozen, ..ParameterGroup::default() };
        [0, 1, 2, 3, 4, u64::MAX - 1].map(|number| group.own_steps_before(number))
    };
    let last = u64::MAX - 1;
    let every = [0, 1, 2, 3, 4, last].map(Some);
    assert_eq!(own(FrozenSteps::NONE), every);
    assert_eq!(own((3..3).into()), every);
    #[expect(clippy::reversed_empty_ranges, reason = "it is none, too")]
    let reversed = 5..2;
    assert_eq!(own(reversed.into()), every);
    assert_eq!(own(FrozenSteps::ALL), [None; 6]);
    let first = [None, None, Some(0), Some(1), Some(2), Some(last - 2)];
    assert_eq!(own((0..2).into()), first);
    let later = [Some(0), None, None, Some(1), Some(2), Some(last - 2)];
    assert_eq!(own((1..3).into()), later);
}

#[test]
fn biases_and_norms_are_apart_by_the_usual_rule() {
    let parameter = |shape: &[usize]| Parameter {
        name: "layer".into(),
        shape: shape.to_vec(),
        initial: Initial::Constant(1.0),
        role: Role::Weight,
    };
    let group = |shape: &[usize]| ParameterGroup::biases_and_norms_apart(&parameter(shape));
    for shape in [&[4, 3, 3, 3][..], &[4, 3]] {
        assert_eq!(group(shape), ParameterGroup::default());
    }
    let bias = group(&[4]);
    assert_eq!((bias.decay, bias.adapt, bias.frozen), (Some(0.0), false, FrozenSteps::NONE));
    assert_eq!(Optimiser::lars().decay(&bias), 0.0);
    assert_eq!(ParameterGroup::all_alike(&parameter(&[4])), ParameterGroup::default());
}
