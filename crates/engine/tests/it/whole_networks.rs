//! Whole graphs on every device: shared inputs, several steps of training, taps, inference, bad
//! calls.

use anchorhood_engine::naive::{NaiveNetwork, widen};
use anchorhood_engine::{
    ConvSpec, Device, Graph, NetworkOptions, Optimiser, Shape, Tensors, Window,
};

use crate::common::compare::compare;
use crate::common::graphs::{one_layer, residual};
use crate::common::{
    Driven, any_parameters, assert_close, every_device, read_all, set_parameters, uniform,
};

every_device!(
    a_node_read_by_three,
    one_input_twice,
    a_residual_network,
    training_follows_the_naive_network,
    sgd_with_and_without_nesterov,
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
    let mut net = Driven::new(device, &graph, &NetworkOptions::new(6));
    let mut twin = NaiveNetwork::new(&graph);
    set_parameters(&mut net, &mut twin, &any_parameters(&graph, 5)).unwrap();
    for step in 0..3 {
        let pixels = uniform(40 + step, 6 * graph.nodes()[0].shape.len());
        net.train_forward(&pixels, step).unwrap();
        twin.train_forward(&widen(&pixels), step);
        let gradient = uniform(50 + step, 6 * 16);
        net.set_output_gradient(&gradient);
        net.backward().unwrap();
        twin.backward(&widen(&gradient));
        net.update(0.05).unwrap();
        twin.update(&Optimiser::sgd(), 0.05, step);
    }
    for (i, p) in graph.parameters().iter().enumerate() {
        let got = net.read(Tensors::Values, i).unwrap();
        assert_close(&p.name, &got, &twin.parameters[i], 20.0 * tolerance);
        if p.role == anchorhood_engine::Role::Weight {
            let got = net.read(Tensors::Slot(0), i).unwrap();
            let what = format!("momentum of {}", p.name);
            assert_close(&what, &got, &twin.slots[0][i], 20.0 * tolerance);
        }
    }
}

/// Five steps over given gradients, so that only the optimiser is judged.
fn sgd_with_and_without_nesterov(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(5, 5, 3), |g, x| {
        g.conv_norm("conv", "bn", x, ConvSpec::square(17, 3, 1, 1).with_bias(), true, None)
    });
    for nesterov in [true, false] {
        let sgd = Optimiser::Sgd { momentum: 0.9, nesterov, decay: 0.01 };
        let options = NetworkOptions::new(2).with_optimiser(sgd);
        let mut net = Driven::new(device, &graph, &options);
        let mut twin = NaiveNetwork::new(&graph);
        set_parameters(&mut net, &mut twin, &any_parameters(&graph, 6)).unwrap();
        for step in 0..5 {
            let pixels = uniform(60 + step, 2 * 75);
            net.train_forward(&pixels, step).unwrap();
            twin.train_forward(&widen(&pixels), step);
            let gradient = uniform(70 + step, 2 * 25 * 17);
            net.set_output_gradient(&gradient);
            net.backward().unwrap();
            twin.backward(&widen(&gradient));
            net.update(0.1).unwrap();
            twin.update(&sgd, 0.1, step);
        }
        for (i, p) in graph.parameters().iter().enumerate() {
            let got = net.read(Tensors::Values, i).unwrap();
            assert_close(&p.name, &got, &twin.parameters[i], 20.0 * tolerance);
        }
    }
}

/// Layers asked for keep their values, in training and in inference, though others reuse memory.
fn kept_layers(device: &Device, tolerance: f64) {
    let graph = residual(9, 8, 6, 10).unwrap();
    let names = ["stem", "maxpool", "layer1.conv2", "layer2.down", "avgpool", "fc"];
    let nodes = names.map(|n| graph.find(n).unwrap());
    let options = NetworkOptions { keep: nodes.to_vec(), ..NetworkOptions::new(4) };
    let mut net = Driven::new(device, &graph, &options);
    let mut twin = NaiveNetwork::new(&graph);
    set_parameters(&mut net, &mut twin, &any_parameters(&graph, 7)).unwrap();
    let pixels = uniform(80, 4 * graph.nodes()[0].shape.len());

    net.train_forward(&pixels, 0).unwrap();
    twin.train_forward(&widen(&pixels), 0);
    for (name, node) in names.iter().zip(nodes) {
        let got = net.kept(node, 4).unwrap();
        assert_close(name, &got, twin.value(node), 5.0 * tolerance);
    }
    let three = &pixels[..3 * graph.nodes()[0].shape.len()];
    net.infer(three, &mut [0.0; 30]).unwrap();
    twin.infer(&widen(three));
    for (name, node) in names.iter().zip(nodes) {
        let got = net.kept(node, 3).unwrap();
        assert_close(name, &got, twin.value(node), 5.0 * tolerance);
    }
    assert!(net.kept(graph.find("layer1.conv1").unwrap(), 4).is_err());
}

/// Inference between steps leaves the training as it was, to the bit.
fn inference_does_not_disturb_training(device: &Device, _: f64) {
    let graph = residual(8, 8, 4, 6).unwrap();
    let train = |with_inference: bool| {
        let mut net = Driven::new(device, &graph, &NetworkOptions::new(3));
        net.initialise(1).unwrap();
        for step in 0..3 {
            let pixels = uniform(90 + step, 3 * 192);
            net.train_forward(&pixels, step).unwrap();
            net.set_output_gradient(&uniform(95 + step, 18));
            net.backward().unwrap();
            net.update(0.1).unwrap();
            if with_inference {
                net.infer(&pixels[..2 * 192], &mut [0.0; 12]).unwrap();
            }
        }
        read_all(&net, Tensors::Values)
    };
    assert_eq!(train(false), train(true));
}

/// A device that falls behind trains on the batches it was given, to the bit.
fn batches_may_be_given_faster_than_they_are_used(device: &Device, _: f64) {
    let graph = residual(16, 16, 8, 6).unwrap();
    let batches: Vec<_> = (0..16).map(|i| uniform(50 + i, 8 * 768)).collect();
    let train = |waiting: bool| {
        let mut net = Driven::new(device, &graph, &NetworkOptions::new(8));
        net.initialise(1).unwrap();
        net.set_output_gradient(&uniform(40, 8 * 6));
        for (step, pixels) in batches.iter().enumerate() {
            net.train_forward(pixels, step as u64).unwrap();
            net.backward().unwrap();
            net.update(0.1).unwrap();
            if waiting {
                net.output();
            }
        }
        read_all(&net, Tensors::Values)
    };
    assert_eq!(train(false), train(true));
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
    let mut net = Driven::new(device, &graph, &NetworkOptions::new(2));
    let mut twin = NaiveNetwork::new(&graph);
    set_parameters(&mut net, &mut twin, &any_parameters(&graph, 8)).unwrap();
    let pixels = uniform(100, 2 * 80);
    net.train_forward(&pixels, 0).unwrap();
    twin.train_forward(&widen(&pixels), 0);
    let gradient = uniform(101, 2 * 80);
    net.set_output_gradient(&gradient);
    net.backward().unwrap();
    twin.backward(&widen(&gradient));
    for (i, p) in graph.parameters().iter().enumerate() {
        let got = net.read(Tensors::Gradients, i).unwrap();
        assert_close(&p.name, &got, &twin.parameter_gradients[i], tolerance);
    }
    assert!(net.input_gradient().is_err(), "nobody asked for it");
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
