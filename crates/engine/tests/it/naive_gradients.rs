//! The naive operations' gradients against central finite differences, in f64: the oracle is judged
//! before it judges.

use anchorhood_engine::naive::{NaiveNetwork, widen};
use anchorhood_engine::{Activation, ConvSpec, Graph, Role, Shape, Window};

use crate::common::graphs::{one_layer, residual};
use crate::common::{any_parameters, uniform};

const BATCH: usize = 3;
const STEP: f64 = 1e-6;
/// Differences of O(1) numbers over 2e-6 keep some nine digits.
const TOLERANCE: f64 = 1e-7;

/// Σ weights · output: a loss whose gradient with respect to the output is `weights`.
fn loss(net: &mut NaiveNetwork, pixels: &[f64], weights: &[f64]) -> f64 {
    let y = net.train_forward(pixels, 7);
    y.iter().zip(weights).map(|(y, w)| y * w).sum()
}

/// Checks the gradient of every parameter and every pixel.
fn check(graph: &Graph) {
    let mut net = NaiveNetwork::new(graph);
    for (i, values) in any_parameters(graph, 3).iter().enumerate() {
        net.parameters[i] = widen(values);
    }
    let mut pixels = widen(&uniform(1, BATCH * graph.nodes()[0].shape.len()));
    let outputs = BATCH * graph.shape(graph.output_node()).len();
    let weights = widen(&uniform(2, outputs));
    loss(&mut net, &pixels, &weights);
    net.backward(&weights);

    let computed = net.gradient(graph.find("input").unwrap()).to_vec();
    for (i, computed) in computed.into_iter().enumerate() {
        let at = pixels[i];
        let mut side = |d: f64| {
            pixels[i] = at + d;
            loss(&mut net, &pixels, &weights)
        };
        let difference = (side(STEP) - side(-STEP)) / (2.0 * STEP);
        side(0.0);
        assert_near(&format!("pixel {i}"), computed, difference);
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
            let difference = (side(STEP) - side(-STEP)) / (2.0 * STEP);
            side(0.0);
            assert_near(&format!("{}[{i}]", parameter.name), computed, difference);
        }
    }
}

#[track_caller]
fn assert_near(what: &str, computed: f64, difference: f64) {
    let error = (computed - difference).abs() / difference.abs().max(1.0);
    assert!(error < TOLERANCE, "{what}: computed {computed}, difference {difference}");
}

#[test]
fn convolutions() {
    let spec = |kernel, stride, padding| ConvSpec {
        out: 3,
        window: Window { kernel, stride, padding },
        bias: true,
    };
    let specs = [
        spec([1, 1], [1, 1], [0, 0]),
        spec([3, 3], [1, 1], [1, 1]),
        spec([3, 2], [2, 1], [1, 0]),
        spec([2, 5], [3, 2], [0, 3]),
    ];
    for s in specs {
        check(&one_layer(Shape::new(5, 6, 2), |g, x| g.conv("conv", x, s)));
    }
}

#[test]
fn batch_norm() {
    check(&one_layer(Shape::new(3, 4, 3), |g, x| g.batch_norm("bn", x)));
}

#[test]
fn relu() {
    check(&one_layer(Shape::new(3, 4, 3), |g, x| g.relu("relu", x)));
}

#[test]
fn activations() {
    for f in [Activation::LeakyRelu(0.2), Activation::Tanh] {
        check(&one_layer(Shape::new(3, 4, 3), |g, x| g.activation("f", x, f)));
    }
}

#[test]
fn upsample() {
    check(&one_layer(Shape::new(3, 4, 3), |g, x| g.upsample("up", x)));
}

#[test]
fn max_pools() {
    for window in [Window::square(2, 2, 0), Window::square(3, 2, 1), Window::square(3, 1, 0)] {
        check(&one_layer(Shape::new(6, 5, 2), |g, x| g.max_pool("pool", x, window)));
    }
}

#[test]
fn global_average() {
    check(&one_layer(Shape::new(3, 4, 5), |g, x| g.global_avg_pool("pool", x)));
}

#[test]
fn linear() {
    check(&one_layer(Shape::new(1, 1, 7), |g, x| g.linear("fc", x, 4, true)));
}

#[test]
fn dropout() {
    check(&one_layer(Shape::new(2, 3, 5), |g, x| g.dropout("drop", x, 0.4)));
}

#[test]
fn l2_normalise() {
    check(&one_layer(Shape::new(1, 1, 7), |g, x| g.l2_normalise("unit", x)));
}

/// x is read three times, once by both sides of one addition.
#[test]
fn shared_inputs() {
    check(&one_layer(Shape::new(2, 2, 3), |g, x| {
        let twice = g.add("twice", x, x)?;
        let positive = g.relu("relu", x)?;
        g.add("sum", twice, positive)
    }));
}

#[test]
fn a_residual_network() {
    check(&residual(6, 5, 2, 3).unwrap());
}

#[test]
fn channels() {
    for (first, out) in [(1, 2), (-2, 4), (1, 5)] {
        check(&one_layer(Shape::new(2, 3, 3), |g, x| g.channels("channels", x, first, out)));
    }
}

#[test]
fn lab() {
    check(&one_layer(Shape::new(4, 5, 3), |g, x| g.lab("lab", x)));
}
