//! The naive operations' gradients against central finite differences, in f64: the oracle is judged
//! before it judges.

use anchorhood_engine::naive::NaiveNetwork;
use anchorhood_engine::{Activation, ConvSpec, Graph, Role, Shape, Window};

use crate::common::graphs::{Build, one_layer, residual};
use crate::common::{any_parameters, uniform, widen};

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
    net.parameters = any_parameters(graph, 3).iter().map(|values| widen(values)).collect();
    let pixels = widen(&uniform(1, BATCH * graph.nodes()[0].shape.len()));
    let weights = widen(&uniform(2, BATCH * graph.shape(graph.output_node()).len()));
    loss(&mut net, &pixels, &weights);
    net.backward(&weights);

    let computed = net.gradient(graph.find("input").unwrap()).to_vec();
    for (i, computed) in computed.into_iter().enumerate() {
        let mut side = |d: f64| {
            let mut pixels = pixels.clone();
            pixels[i] += d;
            loss(&mut net, &pixels, &weights)
        };
        assert_near(&format!("pixel {i}"), computed, side(STEP) - side(-STEP));
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

#[test]
fn convolutions() {
    let windows = [
        ([1, 1], [1, 1], [0, 0]),
        ([3, 3], [1, 1], [1, 1]),
        ([3, 2], [2, 1], [1, 0]),
        ([2, 5], [3, 2], [0, 3]),
    ];
    for (kernel, stride, padding) in windows {
        let spec = ConvSpec { out: 3, window: Window { kernel, stride, padding }, bias: true };
        check(&one_layer(Shape::new(5, 6, 2), |g, x| g.conv("conv", x, spec)));
    }
}

#[test]
fn pools() {
    for window in [Window::square(2, 2, 0), Window::square(3, 2, 1), Window::square(3, 1, 0)] {
        check(&one_layer(Shape::new(6, 5, 2), |g, x| g.max_pool("pool", x, window)));
    }
    check(&one_layer(Shape::new(3, 4, 5), |g, x| g.global_avg_pool("pool", x)));
}

#[test]
fn other_layers() {
    let layers: [([usize; 3], Build); 12] = [
        ([3, 4, 3], |g, x| g.batch_norm("bn", x)),
        ([3, 4, 3], |g, x| g.relu("relu", x)),
        ([3, 4, 3], |g, x| g.activation("f", x, Activation::LeakyRelu(0.2))),
        ([3, 4, 3], |g, x| g.activation("f", x, Activation::Tanh)),
        ([3, 4, 3], |g, x| g.upsample("up", x)),
        ([1, 1, 7], |g, x| g.linear("fc", x, 4, true)),
        ([2, 3, 5], |g, x| g.dropout("drop", x, 0.4)),
        ([1, 1, 7], |g, x| g.l2_normalise("unit", x)),
        ([4, 5, 3], |g, x| g.lab("lab", x)),
        ([2, 3, 3], |g, x| g.channels("channels", x, 1, 2)),
        ([2, 3, 3], |g, x| g.channels("channels", x, -2, 4)),
        ([2, 3, 3], |g, x| g.channels("channels", x, 1, 5)),
    ];
    for ([height, width, channels], layer) in layers {
        check(&one_layer(Shape::new(height, width, channels), layer));
    }
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
