//! Whole graphs on every device: shared inputs, several steps of training, taps, inference, bad
//! calls.

use anchorhood_engine::{
    ConvSpec, Device, Graph, NetworkOptions, Optimiser, Shape, Tensors, Window,
};

use crate::common::compare::{Twins, compare};
use crate::common::graphs::{one_layer, residual};
use crate::common::{Driven, any_parameters, assert_close, every_device, read_all, uniform};

every_device!(
    a_node_read_by_three,
    one_input_twice,
    a_residual_network,
    training_follows_the_naive_network,
    kept_layers,
    inference_does_not_disturb_training,
    batches_may_be_given_faster_than_they_are_used,
    dropout_inside_a_network,
    untrained_branches,
    wrong_lengths_are_refused,
);

/// The gradients of three readers add up, whichever of them is first to write.
fn a_node_read_by_three(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(6, 5, 3), |g, x| {
        let shared = g.conv_norm("stem", "stemn", x, ConvSpec::square(8, 3, 1, 1), true, None)?;
        let a = g.conv("a", shared, ConvSpec::square(8, 1, 1, 0))?;
        let b = g.relu("b", shared)?;
        let ab = g.add("ab", a, b)?;
        let pooled = g.max_pool("pool", shared, Window::square(3, 1, 1))?;
        let c = g.conv_norm("c", "cn", ab, ConvSpec::square(8, 3, 1, 1), true, Some(shared))?;
        g.add("sum", c, pooled)
    });
    compare(device, &graph, 3, 11, 2.0 * tolerance);
}

fn one_input_twice(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(4, 5, 8), |g, x| {
        let x = g.conv_norm("stem", "stemn", x, ConvSpec::square(8, 1, 1, 0), true, None)?;
        let twice = g.add("twice", x, x)?;
        g.conv_norm("c", "cn", twice, ConvSpec::square(8, 3, 1, 1), false, Some(twice))
    });
    compare(device, &graph, 3, 12, 2.0 * tolerance);
}

fn a_residual_network(device: &Device, tolerance: f64) {
    for (height, width, channels, features) in [(8, 6, 4, 5), (11, 13, 17, 33), (16, 16, 16, 128)] {
        let graph = residual(height, width, channels, features).unwrap();
        compare(device, &graph, 4, 13, 5.0 * tolerance);
    }
}

/// Three steps of training: weights, momentum and statistics stay together.
fn training_follows_the_naive_network(device: &Device, tolerance: f64) {
    let graph = residual(10, 8, 8, 16).unwrap();
    let parameters = any_parameters(&graph, 5);
    let mut twins = Twins::new(device, &graph, &NetworkOptions::new(6), &parameters);
    for step in 0..3 {
        twins.step(&Optimiser::sgd(), [40 + step, 50 + step], 0.05, step);
    }
    for which in [Tensors::Values, Tensors::Slot(0)] {
        twins.assert_tensors(which, "after three steps", 20.0 * tolerance);
    }
}

/// Layers asked for keep their values, in training and in inference, though others reuse memory.
fn kept_layers(device: &Device, tolerance: f64) {
    let graph = residual(9, 8, 6, 10).unwrap();
    let names = ["stem", "maxpool", "layer1.conv2", "layer2.down", "avgpool", "fc"];
    let nodes = names.map(|n| graph.find(n).unwrap());
    let options = NetworkOptions { keep: nodes.to_vec(), ..NetworkOptions::new(4) };
    let mut twins = Twins::new(device, &graph, &options, &any_parameters(&graph, 7));
    let one = graph.nodes()[0].shape.len();
    let pixels = uniform(80, 4 * one);
    let assert_kept = |twins: &Twins, count: usize| {
        for (name, node) in names.iter().zip(nodes) {
            let got = twins.net.kept(node, count).unwrap();
            assert_close(name, &got, twins.twin.value(node), 5.0 * tolerance);
        }
    };
    twins.train_forward(&pixels, 0);
    assert_kept(&twins, 4);
    twins.assert_inference(&pixels[..3 * one], "of three", 5.0 * tolerance);
    assert_kept(&twins, 3);
    assert!(twins.net.kept(graph.find("layer1.conv1").unwrap(), 4).is_err());
}

/// Weights after so many steps, with something else after each.
fn trained(
    device: &Device,
    graph: &Graph,
    [batch, steps]: [usize; 2],
    mut between: impl FnMut(&mut Driven, &[f32]),
) -> Vec<Vec<f32>> {
    let mut net = Driven::new(device, graph, &NetworkOptions::new(batch));
    net.initialise(1).unwrap();
    for step in 0..steps as u64 {
        let pixels = uniform(90 + step, batch * graph.nodes()[0].shape.len());
        net.train_forward(&pixels, step).unwrap();
        if step == 0 {
            net.set_output_gradient(&uniform(40, batch * 6));
        }
        net.backward().unwrap();
        net.update(0.1).unwrap();
        between(&mut net, &pixels);
    }
    read_all(&net, Tensors::Values)
}

/// Inference between steps leaves the training as it was, to the bit.
fn inference_does_not_disturb_training(device: &Device, _: f64) {
    let graph = residual(8, 8, 4, 6).unwrap();
    let inferred = trained(device, &graph, [3, 3], |net, pixels| {
        net.infer(&pixels[..2 * 192], &mut [0.0; 12]).unwrap();
    });
    assert_eq!(trained(device, &graph, [3, 3], |_, _| {}), inferred);
}

/// A device that falls behind trains on the batches it was given, to the bit.
fn batches_may_be_given_faster_than_they_are_used(device: &Device, _: f64) {
    let graph = residual(16, 16, 8, 6).unwrap();
    let waiting = trained(device, &graph, [8, 16], |net, _| _ = net.output());
    assert_eq!(trained(device, &graph, [8, 16], |_, _| {}), waiting);
}

fn dropout_inside_a_network(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(6, 6, 3), |g, x| {
        let x = g.conv("conv", x, ConvSpec::square(9, 3, 2, 1).with_bias())?;
        let x = g.relu("relu", x)?;
        let x = g.dropout("drop", x, 0.5)?;
        let x = g.global_avg_pool("pool", x)?;
        let x = g.linear("fc", x, 12, true)?;
        g.dropout("drop2", x, 0.2)
    });
    compare(device, &graph, 4, 14, 2.0 * tolerance);
}

/// Without a gradient of the pictures, layers before the first weights are skipped; the others are
/// not.
fn untrained_branches(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(4, 4, 5), |g, x| {
        let x = g.relu("relu", x)?;
        let pooled = g.max_pool("pool", x, Window::square(3, 1, 1))?;
        let y = g.conv("conv", pooled, ConvSpec::square(5, 3, 1, 1).with_bias())?;
        g.add("sum", y, pooled)
    });
    let parameters = any_parameters(&graph, 8);
    let mut twins = Twins::new(device, &graph, &NetworkOptions::new(2), &parameters);
    twins.train_forward(&uniform(100, 2 * 80), 0);
    twins.backward(&uniform(101, 2 * 80));
    twins.assert_tensors(Tensors::Gradients, "of a branch", tolerance);
    assert!(twins.net.input_gradient().is_err(), "nobody asked for it");
}

fn wrong_lengths_are_refused(device: &Device, _: f64) {
    let graph: Graph = residual(8, 8, 4, 6).unwrap();
    let mut net = Driven::new(device, &graph, &NetworkOptions::new(3));
    net.initialise(0).unwrap();
    let says = |result: anchorhood_engine::Result<()>, numbers: [&str; 2]| {
        let message = result.unwrap_err().to_string();
        assert!(numbers.iter().all(|n| message.contains(n)), "{message}");
    };
    says(net.train_forward(&[0.0; 2 * 192], 0), ["576", "384"]);
    says(net.train_forward(&[0.0; 7], 0), ["576", "7"]);
    says(net.infer(&[0.0; 100], &mut [0.0; 6]), ["192", "100"]);
    says(net.infer(&[0.0; 192], &mut [0.0; 7]), ["6", "7"]);
    says(net.write(Tensors::Values, 0, &[0.0; 5]), ["108", "5"]);
    assert!(net.infer(&[0.0; 4 * 192], &mut [0.0; 24]).is_err(), "more than the batch");
    assert!(device.network(&graph, &NetworkOptions::new(0)).is_err());
    // None of this has broken it.
    net.train_forward(&[0.5; 3 * 192], 0).unwrap();
    assert!(net.output().iter().all(|v| v.is_finite()));
}
