//! The naive operations' gradients against central finite differences, in f64: the oracle is judged
//! before it judges.

use anchorhood_engine::naive::{NaiveNetwork, cases};
use anchorhood_engine::{Graph, Role};

use crate::common::graphs::residual;
use crate::common::{any_parameters, uniform, widen};

/// Values of a batch that are moved one by one.
const MOST_PIXELS: usize = 400;
const STEP: f64 = 1e-6;
/// Differences of O(1) numbers over 2e-6 keep some nine digits.
const TOLERANCE: f64 = 1e-7;

/// Σ weights · output: a loss whose gradient with respect to the output is `weights`.
fn loss(net: &mut NaiveNetwork, pixels: &[f64], weights: &[f64]) -> f64 {
    let y = net.train_forward(pixels, 7);
    y.iter().zip(weights).map(|(y, w)| y * w).sum()
}

/// Checks the gradient of every parameter and every pixel.
fn check(graph: &Graph, batch: usize) {
    let mut net = NaiveNetwork::new(graph);
    net.parameters = any_parameters(graph, 3).iter().map(|values| widen(values)).collect();
    let pixels = widen(&uniform(1, batch * graph.nodes()[0].shape.len()));
    let op = graph.node(graph.output_node()).op;
    let weights = widen(&uniform(2, batch * graph.shape(graph.output_node()).len()));
    loss(&mut net, &pixels, &weights);
    net.backward(&weights);

    let computed = net.gradient(graph.find("input").unwrap()).to_vec();
    for (i, computed) in computed.into_iter().enumerate() {
        let mut side = |d: f64| {
            let mut pixels = pixels.clone();
            pixels[i] += d;
            loss(&mut net, &pixels, &weights)
        };
        assert_near(&format!("{op:?}, pixel {i}"), computed, side(STEP) - side(-STEP));
    }
    for (p, parameter) in graph.parameters().iter().enumerate() {
        if parameter.role == Role::Statistic {
            continue;
        }
        let computed = net.parameter_gradients[p].clone();
        for (i, computed) in computed.into_iter().enumerate() {
            let at = net.parameters[p][i];
            let mut side = |d: f64| {
                net.parameters[p][i] = at + d;
                loss(&mut net, &pixels, &weights)
            };
            let moved = side(STEP) - side(-STEP);
            net.parameters[p][i] = at;
            assert_near(&format!("{}[{i}]", parameter.name), computed, moved);
        }
    }
}

#[track_caller]
fn assert_near(what: &str, computed: f64, moved: f64) {
    let difference = moved / (2.0 * STEP);
    let error = (computed - difference).abs() / difference.abs().max(1.0);
    assert!(error < TOLERANCE, "{what}: computed {computed}, difference {difference}");
}

/// Each layer's own cases, as far as they are small.
#[test]
fn of_every_layer() {
    for case in cases() {
        if case.batch * case.graph.nodes()[0].shape.len() <= MOST_PIXELS {
            check(&case.graph, case.batch);
        }
    }
}

#[test]
fn a_residual_network() {
    check(&residual(6, 5, 2, 3).unwrap(), 3);
}
