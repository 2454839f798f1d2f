//! Several passes over one network's weights, networks that feed each other, and a momentum copy,
//! on every device.

use std::sync::Arc;

use anchorhood_engine::naive::NaiveNetwork;
use anchorhood_engine::naive::optimisers::ema;
use anchorhood_engine::{
    ConvSpec, Device, Graph, Input, Network, NetworkOptions, NodeId, Optimiser, Result, Role,
    Shape, Tensors,
};

use crate::common::compare::assert_tensors;
use crate::common::graphs::{one_layer, residual};
use crate::common::training::{MOMENTUM, epoch};
use crate::common::{
    Driven, any_parameters, assert_close, every_device, read_all, representable, set_parameters,
    uniform, widen,
};

every_device!(
    two_passes,
    passes_may_be_taken_in_any_order,
    an_inference_takes_the_first_pass_alone,
    a_chain_is_one_graph,
    a_momentum_copy,
    wrong_passes_are_refused,
);

const BATCH: usize = 24;

fn batch_of(graph: &Graph, pass: usize) -> Vec<f32> {
    uniform(20 + pass as u64, BATCH * graph.nodes()[0].shape.len())
}

fn forward(device: &Device, net: &mut Network, pass: usize, pixels: &[f32]) {
    let (mut stream, rows) = (device.stream().unwrap(), device.upload(pixels).unwrap());
    stream.set_step(0, 0.0).unwrap();
    net.forward(&mut stream, pass, Input::rows(&rows)).unwrap();
}

/// Adds up the gradients of a network's parameters.
fn add_gradients(sums: &mut [Vec<f64>], twin: &NaiveNetwork) {
    for (sum, more) in sums.iter_mut().zip(&twin.parameter_gradients) {
        sum.iter_mut().zip(more).for_each(|(s, m)| *s += m);
    }
}

/// Outputs are those of a network with one pass, to the bit; gradients are sums; statistics are
/// moved by pass 0, then by pass 1; and the weights follow the sums.
fn two_passes(device: &Device, tolerance: f64) {
    let graph = residual(9, 8, 8, 16).unwrap();
    let parameters = any_parameters(&graph, 5);
    let mut twin = NaiveNetwork::new(&graph);
    let options = NetworkOptions::new(BATCH);
    let mut single = Driven::new(device, &graph, &options);
    let mut net = device.network(&graph, &options.with_passes(2)).unwrap();
    set_parameters(&mut single, &mut twin, &parameters).unwrap();
    set_parameters(&mut net, &mut twin, &parameters).unwrap();
    assert_eq!(net.passes(), 2);

    let gradient = uniform(30, 2 * BATCH * 16);
    let (mut outputs, mut sums) = (vec![], twin.parameter_gradients.clone());
    for (pass, part) in gradient.chunks(BATCH * 16).enumerate() {
        let pixels = batch_of(&graph, pass);
        forward(device, &mut net, pass, &pixels);
        single.train_forward(&pixels, 0).unwrap();
        outputs.extend(single.output());
        twin.train_forward(&widen(&pixels), 0);
        twin.backward(&widen(part));
        add_gradients(&mut sums, &twin);
    }
    assert_eq!(device.download(net.output()).unwrap(), outputs);
    let mut stream = device.stream().unwrap();
    device.write(&gradient, net.output_and_gradient().1).unwrap();
    for pass in 0..2 {
        net.backward(&mut stream, pass).unwrap();
    }
    assert_tensors(&net, Tensors::Gradients, &sums, "two passes", 10.0 * tolerance);
    twin.parameter_gradients = sums;
    stream.set_step(0, 0.05).unwrap();
    net.update(&mut stream).unwrap();
    twin.update(&Optimiser::sgd(), 0.05, 0);
    assert_tensors(&net, Tensors::Values, &twin.parameters, "two passes", 10.0 * tolerance);
    assert_tensors(&net, Tensors::Slot(0), &twin.slots[0], "two passes", 10.0 * tolerance);
}

/// Between a pass forwards and backwards others may be inferred, in the memory of pass 0: that one
/// cannot go backwards then, and each of the others has the gradients of its own pictures.
fn an_inference_takes_the_first_pass_alone(device: &Device, tolerance: f64) {
    let graph = one_layer(Shape::new(9, 8, 3), |g, x| {
        let spec = ConvSpec::square(8, 3, 1, 1);
        let x = g.conv_norm("conv", "bn", x, spec, true, None)?;
        let x = g.dropout("drop", x, 0.3)?;
        let x = g.global_avg_pool("pool", x)?;
        g.linear("fc", x, 16, true)
    });
    let options = NetworkOptions::new(BATCH).with_passes(2);
    let mut net = device.network(&graph, &options).unwrap();
    let mut twin = NaiveNetwork::new(&graph);
    let parameters = any_parameters(&graph, 5).into_iter();
    let parameters: Vec<_> = parameters.map(|p| representable(p, tolerance)).collect();
    set_parameters(&mut net, &mut twin, &parameters).unwrap();
    let pixels = [0, 1, 2].map(|pass| representable(batch_of(&graph, pass), tolerance));
    let gradient = representable(uniform(30, 2 * BATCH * 16), tolerance);
    device.write(&gradient, net.output_and_gradient().1).unwrap();
    let mut stream = device.stream().unwrap();
    for (pass, pixels) in pixels[..2].iter().enumerate() {
        forward(device, &mut net, pass, pixels);
        twin.train_pass(&widen(pixels), pass, 0);
    }
    let mut inferred = vec![0.0; BATCH * 16];
    net.infer(&pixels[2], &mut inferred).unwrap();
    let expected = twin.clone().infer(&widen(&pixels[2])).to_vec();
    assert_close("inferred", &inferred, &expected, 10.0 * tolerance);
    assert!(net.backward(&mut stream, 0).is_err());
    net.backward(&mut stream, 1).unwrap();
    twin.backward(&widen(&gradient[BATCH * 16..]));
    let mut sums = twin.parameter_gradients.clone();
    assert_tensors(&net, Tensors::Gradients, &sums, "pass 1", 10.0 * tolerance);
    forward(device, &mut net, 0, &pixels[0]);
    net.backward(&mut stream, 0).unwrap();
    twin.train_pass(&widen(&pixels[0]), 0, 0);
    twin.backward(&widen(&gradient[..BATCH * 16]));
    add_gradients(&mut sums, &twin);
    assert_tensors(&net, Tensors::Gradients, &sums, "both", 10.0 * tolerance);
}

/// Each pass has its activations for itself: backwards in the other order, and after the other's
/// pass forwards, the gradients are the same, to the bit; and so they are in the next step.
fn passes_may_be_taken_in_any_order(device: &Device, _: f64) {
    let graph = residual(9, 8, 8, 16).unwrap();
    let gradient = uniform(30, 2 * BATCH * 16);
    let run = |forwards: [usize; 2], backwards: [usize; 2]| {
        let options = NetworkOptions::new(BATCH).with_passes(2);
        let mut net = device.network(&graph, &options).unwrap();
        net.initialise(1).unwrap();
        device.write(&gradient, net.output_and_gradient().1).unwrap();
        let mut stream = device.stream().unwrap();
        for _ in 0..2 {
            for pass in forwards {
                forward(device, &mut net, pass, &batch_of(&graph, pass));
            }
            for pass in backwards {
                net.backward(&mut stream, pass).unwrap();
            }
        }
        read_all(&net, Tensors::Gradients)
    };
    let expected = run([0, 1], [0, 1]);
    assert!(expected.iter().flatten().any(|g| *g != 0.0));
    assert_eq!(run([1, 0], [1, 0]), expected);
    assert_eq!(run([0, 1], [1, 0]), expected);
}

fn backbone(g: &mut Graph, x: NodeId) -> Result<NodeId> {
    let x = g.conv_norm("conv", "bn", x, ConvSpec::square(8, 3, 1, 1), true, None)?;
    g.global_avg_pool("pool", x)
}

fn projector(g: &mut Graph, x: NodeId) -> Result<NodeId> {
    let x = g.linear("fc1", x, 16, false)?;
    let x = g.batch_norm("bn1", x)?;
    let x = g.relu("relu", x)?;
    let x = g.linear("fc2", x, 8, true)?;
    g.l2_normalise("unit", x)
}

/// A backbone and a projector of two passes each have the outputs and gradients of the graph of
/// both.
fn a_chain_is_one_graph(device: &Device, tolerance: f64) {
    let mut joint = Graph::new();
    let x = joint.input(6, 5, 3);
    let features = backbone(&mut joint, x).unwrap();
    projector(&mut joint, features).unwrap();
    let mut first = Graph::new();
    let x = first.input(6, 5, 3);
    backbone(&mut first, x).unwrap();
    let mut second = Graph::new();
    let x = second.input(1, 1, 8);
    projector(&mut second, x).unwrap();

    let parameters = any_parameters(&joint, 3).into_iter();
    let parameters: Vec<Vec<f32>> = parameters.map(|p| representable(p, tolerance)).collect();
    let options = NetworkOptions::new(BATCH).with_passes(2);
    let mut backbone = device.network(&first, &options).unwrap();
    let options = options.with_input_gradient();
    let mut projector = device.network(&second, &options).unwrap();
    let mut twin = NaiveNetwork::new(&joint);
    let own = first.parameters().len();
    for (i, values) in parameters.iter().enumerate() {
        match i.checked_sub(own) {
            None => backbone.write(Tensors::Values, i, values).unwrap(),
            Some(i) => projector.write(Tensors::Values, i, values).unwrap(),
        }
        twin.parameters[i] = widen(values);
    }

    let mut stream = device.stream().unwrap();
    stream.set_step(0, 0.0).unwrap();
    let gradient = representable(uniform(31, 2 * BATCH * 8), tolerance);
    let (mut outputs, mut sums) = (vec![], twin.parameter_gradients.clone());
    for (pass, part) in gradient.chunks(BATCH * 8).enumerate() {
        let pixels = representable(batch_of(&joint, pass), tolerance);
        forward(device, &mut backbone, pass, &pixels);
        projector.forward(&mut stream, pass, backbone.output_of(pass)).unwrap();
        outputs.extend_from_slice(twin.train_forward(&widen(&pixels), 0));
        twin.backward(&widen(part));
        add_gradients(&mut sums, &twin);
    }
    let got = device.download(projector.output()).unwrap();
    assert_close("outputs", &got, &outputs, 5.0 * tolerance);
    device.write(&gradient, projector.output_and_gradient().1).unwrap();
    for pass in 0..2 {
        projector.backward(&mut stream, pass).unwrap();
    }
    let back = projector.input_gradient().unwrap();
    stream.copy(back, backbone.output_and_gradient().1).unwrap();
    for pass in 0..2 {
        backbone.backward(&mut stream, pass).unwrap();
    }
    for (i, p) in joint.parameters().iter().enumerate() {
        let (net, at) = match i.checked_sub(own) {
            None => (&backbone, i),
            Some(i) => (&projector, i),
        };
        let (which, expected) = match p.role {
            Role::Weight => (Tensors::Gradients, &sums[i]),
            Role::Statistic => (Tensors::Values, &twin.parameters[i]),
        };
        let got = net.read(which, at).unwrap();
        let tolerance = 5.0 * tolerance;
        assert_close(&format!("{which:?} of {}", p.name), &got, expected, tolerance);
    }
    // Gradients that add up.
    let twice = projector.input_gradient().unwrap();
    stream.add(twice, backbone.output_and_gradient().1).unwrap();
    let got = device.download(backbone.output_and_gradient().1).unwrap();
    let once = device.download(projector.input_gradient().unwrap()).unwrap();
    assert_eq!(got, once.iter().map(|v| v + v).collect::<Vec<f32>>());
}

/// own ← m · own + (1 − m) · other for weights and statistics, with m a schedule's, over three
/// steps.
fn a_momentum_copy(device: &Device, _: f64) {
    let graph = residual(9, 8, 8, 16).unwrap();
    let options = NetworkOptions::new(BATCH);
    let [mut net, mut copy] = [(); 2].map(|()| device.network(&graph, &options).unwrap());
    let mut expected = vec![];
    let [own, other] = [40, 140].map(|seed| any_parameters(&graph, seed));
    for (i, (own, other)) in own.iter().zip(&other).enumerate() {
        net.write(Tensors::Values, i, other).unwrap();
        copy.write(Tensors::Values, i, own).unwrap();
        expected.push(widen(own));
    }
    let rows = Arc::new(device.zeros(3 * BATCH).unwrap());
    let mut source = device.row_batches(rows, 1, BATCH).unwrap();
    let (order, mut stream): (Vec<u32>, _) =
        ((0..3 * BATCH as u32).collect(), device.stream().unwrap());
    let scalars = [vec![0.1; 3], vec![0.5, 0.99, 1.0]];
    let begun = epoch(&order, 0, &scalars);
    stream.begin_epoch(&mut source, &begun).unwrap();
    let mut before = vec![];
    for m in &scalars[1] {
        before = read_all(&copy, Tensors::Values);
        let asked = stream.step(&mut source, &mut |s, _| copy.follow(s, &net, MOMENTUM));
        asked.unwrap();
        for (i, own) in expected.iter_mut().enumerate() {
            let other = widen(&net.read(Tensors::Values, i).unwrap());
            ema(f64::from(*m), own, &other);
            let what = &graph.parameters()[i].name;
            // Weights are f32 in every precision.
            assert_close(what, &copy.read(Tensors::Values, i).unwrap(), own, 1e-6);
        }
    }
    assert_eq!(before, read_all(&copy, Tensors::Values), "m = 1");
    // It also computes with what it holds.
    let mut fresh = device.network(&graph, &options).unwrap();
    for (i, values) in before.iter().enumerate() {
        fresh.write(Tensors::Values, i, values).unwrap();
    }
    let infer = |net: &mut Network| {
        let mut features = vec![f32::NAN; BATCH * 16];
        net.infer(&batch_of(&graph, 0), &mut features).unwrap();
        features
    };
    assert_eq!(infer(&mut copy), infer(&mut fresh));
    let other = residual(9, 8, 8, 17).unwrap();
    let other = device.network(&other, &options).unwrap();
    assert!(copy.follow(&mut stream, &other, MOMENTUM).is_err());
}

fn wrong_passes_are_refused(device: &Device, _: f64) {
    let graph = residual(9, 8, 8, 16).unwrap();
    let options = NetworkOptions::new(BATCH).with_passes(2);
    let mut net = device.network(&graph, &options).unwrap();
    let mut stream = device.stream().unwrap();
    let rows = device.upload(&batch_of(&graph, 0)).unwrap();
    let said = net.forward(&mut stream, 2, Input::rows(&rows));
    assert_eq!(said.unwrap_err().to_string(), "pass 2 of a network with 2");
    assert!(net.backward(&mut stream, 2).is_err());
    let beyond = Input::Rows { rows: &rows, first: 1 };
    assert!(net.forward(&mut stream, 0, beyond).is_err());
    assert!(device.network(&graph, &NetworkOptions::new(2).with_passes(0)).is_err());
}
