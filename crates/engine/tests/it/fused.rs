//! Convolution, batch norm, residual and ReLU as one node: against the naive loops, and against the
//! same layers apart.

use anchorhood_engine::{ConvSpec, Device, Graph, NetworkOptions, Result, Shape, Tensors, Window};

use crate::common::compare::compare;
use crate::common::graphs::one_layer;
use crate::common::{Driven, any_parameters, assert_close, every_device, uniform};

every_device!(
    against_the_naive_loops,
    against_the_layers_apart,
    where_everything_is_cut,
    over_many_rows
);

/// A graph of one fused node, after a stem so that the residual is not the pictures themselves.
fn fused(input: Shape, out: usize, stride: usize, bias: bool, relu: bool, residual: bool) -> Graph {
    let mut spec = ConvSpec::square(out, 3, stride, 1);
    spec.bias = bias;
    one_layer(input, |g, x| {
        let around = residual.then(|| shortcut(g, x, out, stride)).transpose()?;
        g.conv_norm("conv", "bn", x, spec, relu, around)
    })
}

/// The same computation, a layer for each part, with the same names and order of parameters.
fn apart(input: Shape, out: usize, stride: usize, bias: bool, relu: bool, residual: bool) -> Graph {
    let mut spec = ConvSpec::square(out, 3, stride, 1);
    spec.bias = bias;
    one_layer(input, |g, x| {
        let around = residual.then(|| shortcut(g, x, out, stride)).transpose()?;
        let mut y = g.conv("conv", x, spec)?;
        y = g.batch_norm("bn", y)?;
        if let Some(around) = around {
            y = g.add("sum", y, around)?;
        }
        if relu { g.relu("relu", y) } else { Ok(y) }
    })
}

fn shortcut(
    g: &mut Graph,
    x: anchorhood_engine::NodeId,
    out: usize,
    stride: usize,
) -> Result<anchorhood_engine::NodeId> {
    let window = Window::square(1, stride, 0);
    g.conv("around", x, ConvSpec { out, window, bias: false })
}

/// All eight ways to fuse, over several shapes.
fn ways() -> impl Iterator<Item = (usize, Shape, usize, usize, [bool; 3])> {
    let shapes = [
        (2, Shape::new(6, 5, 3), 16, 1),
        (3, Shape::new(7, 6, 17), 5, 2),
        (2, Shape::new(4, 4, 16), 33, 1),
    ];
    shapes.into_iter().flat_map(|(batch, input, out, stride)| {
        (0..8).map(move |bits| {
            let flags = [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
            (batch, input, out, stride, flags)
        })
    })
}

fn against_the_naive_loops(device: &Device, tolerance: f64) {
    for (seed, (batch, input, out, stride, [bias, relu, residual])) in ways().enumerate() {
        let graph = fused(input, out, stride, bias, relu, residual);
        compare(device, &graph, batch, seed as u64, 2.0 * tolerance);
    }
}

/// Larger than one tile in every direction.
fn where_everything_is_cut(device: &Device, tolerance: f64) {
    let graph = fused(Shape::new(16, 17, 16), 40, 1, false, true, true);
    compare(device, &graph, 5, 3, 2.0 * tolerance);
}

/// Batch norms over more and more rows, which a GPU spreads over its whole chip, up to those that
/// it cannot hold.
fn over_many_rows(device: &Device, tolerance: f64) {
    let cases = [
        (2, 40, 64, true, true),
        (5, 41, 128, true, false),
        (12, 70, 64, true, true),
        (30, 63, 64, false, true),
        (9, 150, 16, true, true),
    ];
    for (batch, side, out, relu, residual) in cases {
        let spec = ConvSpec::square(out, 1, 1, 0);
        let graph = one_layer(Shape::new(side, side, 4), |g, x| {
            let around = residual.then(|| shortcut(g, x, out, 1)).transpose()?;
            g.conv_norm("conv", "bn", x, spec, relu, around)
        });
        compare(device, &graph, batch, out as u64, 2.0 * tolerance);
    }
}

fn against_the_layers_apart(device: &Device, tolerance: f64) {
    for (seed, (batch, input, out, stride, [bias, relu, residual])) in ways().enumerate() {
        let seed = seed as u64;
        let pixels = uniform(seed, batch * input.len());
        let one = all_of(device, &fused(input, out, stride, bias, relu, residual), &pixels, seed);
        let many = all_of(device, &apart(input, out, stride, bias, relu, residual), &pixels, seed);
        assert_eq!(one.len(), many.len());
        for ((name, got), (_, expected)) in one.iter().zip(&many) {
            let expected: Vec<f64> = expected.iter().map(|v| f64::from(*v)).collect();
            assert_close(name, got, &expected, 2.0 * tolerance);
        }
    }
}

/// Everything a pass over a graph computes: output, gradients, running statistics, inference.
fn all_of(device: &Device, graph: &Graph, pixels: &[f32], seed: u64) -> Vec<(String, Vec<f32>)> {
    let options = NetworkOptions {
        input_gradient: true,
        ..NetworkOptions::new(pixels.len() / graph.nodes()[0].shape.len())
    };
    let mut net = Driven::new(device, graph, &options);
    net.initialise(0).unwrap();
    for (i, values) in any_parameters(graph, seed).iter().enumerate() {
        net.write(Tensors::Values, i, values).unwrap();
    }
    net.train_forward(pixels, 0).unwrap();
    let result = net.output();
    net.set_output_gradient(&uniform(seed + 1, result.len()));
    net.backward().unwrap();
    let mut inferred = vec![0.0; result.len()];
    let mut all = vec![
        ("output".to_string(), result),
        ("input gradient".into(), net.input_gradient().unwrap()),
    ];
    for (i, p) in graph.parameters().iter().enumerate() {
        for which in [Tensors::Values, Tensors::Gradients] {
            let values = net.read(which, i).unwrap();
            all.push((format!("{which:?} of {}", p.name), values));
        }
    }
    net.infer(pixels, &mut inferred).unwrap();
    all.push(("inference".into(), inferred));
    all
}
