//! Every optimiser as a network's work, on every device, against the naive steps: groups of
//! parameters, one of them frozen, and one frozen at first.

use anchorhood_engine::naive::optimisers::step;
use anchorhood_engine::naive::widen;
use anchorhood_engine::{
    Device, FrozenSteps, Graph, NetworkOptions, Optimiser, Parameter, ParameterGroup, Role, Tensors,
};

use crate::common::graphs::residual;
use crate::common::{Driven, any_parameters, assert_close, every_device, representable, uniform};

every_device!(lars, adam_w, sgd);

const RATE: f32 = 0.05;

/// Vectors apart, a layer of a rate of its own, one that stays as it is, and one that is trained
/// from the third step on.
fn groups(parameter: &Parameter) -> ParameterGroup {
    let group = ParameterGroup::biases_and_norms_apart(parameter);
    ParameterGroup {
        frozen: match &parameter.name {
            name if name.starts_with("layer1.") => FrozenSteps::ALL,
            name if name.starts_with("layer2.") => (0..2).into(),
            _ => FrozenSteps::NONE,
        },
        rate_factor: if parameter.name.starts_with("fc") { 0.5 } else { 1.0 },
        ..group
    }
}

/// Five steps over given gradients, so that only the optimiser is judged, which is f32 in every
/// precision.
fn check(device: &Device, graph: &Graph, optimiser: Optimiser) {
    let options = NetworkOptions { groups, ..NetworkOptions::new(2).with_optimiser(optimiser) };
    let mut net = Driven::new(device, graph, &options);
    assert_eq!(net.slots(), optimiser.slots());
    net.initialise(0).unwrap();
    let begin = any_parameters(graph, 6);
    for (i, values) in begin.iter().enumerate() {
        net.write(Tensors::Values, i, values).unwrap();
    }
    let mut weights: Vec<Vec<f64>> = begin.iter().map(|v| widen(v)).collect();
    let zeros: Vec<Vec<f64>> = weights.iter().map(|v| vec![0.0; v.len()]).collect();
    let mut slots = [zeros.clone(), zeros];
    for number in 0..5 {
        // A pass, for the step's number.
        let pixels = uniform(60 + number, 2 * graph.nodes()[0].shape.len());
        net.train_forward(&pixels, number).unwrap();
        for (i, p) in graph.parameters().iter().enumerate() {
            if p.role == Role::Statistic {
                continue;
            }
            // As every precision has it.
            let gradient = representable(uniform(100 * (number + 1) + i as u64, p.len()), 1.0);
            net.write(Tensors::Gradients, i, &gradient).unwrap();
            let state = slots.each_mut().map(|s| &mut s[i][..]);
            let (rate, group) = (f64::from(RATE), groups(p));
            let gradient = widen(&gradient);
            step(&optimiser, rate, number, &group, &mut weights[i], state, &gradient);
        }
        net.update(RATE).unwrap();
    }
    let weight = |(_, p): &(usize, &Parameter)| p.role == Role::Weight;
    let mut frozen = 0;
    for (i, p) in graph.parameters().iter().enumerate().filter(weight) {
        let got = net.read(Tensors::Values, i).unwrap();
        let what = format!("{} by {optimiser:?} on {}", p.name, device.describe());
        assert_close(&what, &got, &weights[i], 1e-5);
        for (slot, expected) in slots.iter().enumerate().take(optimiser.slots()) {
            let got = net.read(Tensors::Slot(slot), i).unwrap();
            let what = format!("slot {slot} of {what}");
            assert_close(&what, &got, &expected[i], 1e-5);
        }
        if groups(p).frozen == FrozenSteps::ALL {
            assert_eq!(got, begin[i], "{what} is frozen");
            frozen += 1;
        } else {
            assert_ne!(got, begin[i], "{what} moves");
        }
    }
    assert_eq!(frozen, 6, "two convolutions with their norms");
}

fn check_all(device: &Device, optimiser: Optimiser) {
    check(device, &residual(8, 6, 8, 5).unwrap(), optimiser);
    check(device, &residual(8, 6, 5, 3).unwrap(), optimiser);
}

fn lars(device: &Device, _: f64) {
    let of = |nesterov| Optimiser::Lars {
        momentum: 0.9,
        nesterov,
        decay: 0.1,
        trust: 0.02,
        epsilon: 1e-8,
    };
    [of(false), of(true), Optimiser::lars()].into_iter().for_each(|lars| check_all(device, lars));
}

fn adam_w(device: &Device, _: f64) {
    check_all(device, Optimiser::adam_w());
}

fn sgd(device: &Device, _: f64) {
    check_all(device, Optimiser::sgd());
    check_all(device, Optimiser::Sgd { momentum: 0.9, nesterov: false, decay: 0.01 });
}
