//! A device's network and its naive twin, side by side over one training pass and one inference.

use anchorhood_engine::naive::{NaiveNetwork, widen};
use anchorhood_engine::{Device, Graph, Network, NetworkOptions, Role, Tensors};

use super::{Driven, any_parameters, assert_close, representable, set_parameters, uniform};

/// Runs a graph on `device` and naively, over the same random parameters, pictures and gradient,
/// and compares the output, all gradients (pictures included), running statistics, and inference
/// over a batch and over one picture.
pub fn compare(device: &Device, graph: &Graph, batch: usize, seed: u64, tolerance: f64) {
    let pixels = uniform(seed, batch * graph.nodes()[0].shape.len());
    compare_on(device, graph, &pixels, seed, tolerance);
}

/// The same without the gradient of the pictures, as in training: a device may then hold them as it
/// likes.
pub fn compare_as_in_training(
    device: &Device,
    graph: &Graph,
    batch: usize,
    seed: u64,
    tolerance: f64,
) {
    let pixels = uniform(seed, batch * graph.nodes()[0].shape.len());
    compare_with(device, graph, &pixels, seed, tolerance, false);
}

/// As [`compare`] over given pictures.
pub fn compare_on(device: &Device, graph: &Graph, pixels: &[f32], seed: u64, tolerance: f64) {
    compare_with(device, graph, pixels, seed, tolerance, true);
}

fn compare_with(
    device: &Device,
    graph: &Graph,
    pixels: &[f32],
    seed: u64,
    tolerance: f64,
    input_gradient: bool,
) {
    let one = graph.nodes()[0].shape.len();
    let pixels = &representable(pixels.to_vec(), tolerance)[..];
    let what = |thing: &str| {
        let last = &graph.node(graph.output_node());
        let input = graph.nodes()[0].shape;
        format!(
            "{}: {thing} of {:?}, {}×{input} to {} (seed {seed})",
            device.describe(),
            last.op,
            pixels.len() / one,
            last.shape
        )
    };
    let options = NetworkOptions { input_gradient, ..NetworkOptions::new(pixels.len() / one) };
    let mut net = Driven::new(device, graph, &options);
    let mut twin = NaiveNetwork::new(graph);
    let parameters = any_parameters(graph, seed).into_iter();
    let parameters: Vec<Vec<f32>> = parameters.map(|p| representable(p, tolerance)).collect();
    set_parameters(&mut net, &mut twin, &parameters).unwrap();

    net.train_forward(pixels, seed).unwrap();
    let expected = twin.train_forward(&widen(pixels), seed).to_vec();
    assert_close(&what("output"), &net.output(), &expected, tolerance);

    let gradient = representable(uniform(seed + 1, expected.len()), tolerance);
    net.set_output_gradient(&gradient);
    net.backward().unwrap();
    twin.backward(&widen(&gradient));
    if input_gradient {
        let got = net.input_gradient().unwrap();
        let expected = twin.gradient(graph.find("input").unwrap());
        assert_close(&what("input gradient"), &got, expected, tolerance);
    }
    assert_same_gradients(&net, &twin, graph, tolerance, &what);

    for count in [pixels.len() / one, 1] {
        let some = &pixels[..count * one];
        let expected = twin.infer(&widen(some)).to_vec();
        let mut got = vec![f32::NAN; expected.len()];
        net.infer(some, &mut got).unwrap();
        assert_close(&what(&format!("inference over {count}")), &got, &expected, tolerance);
    }
}

fn assert_same_gradients(
    net: &Network,
    twin: &NaiveNetwork,
    graph: &Graph,
    tolerance: f64,
    what: &dyn Fn(&str) -> String,
) {
    for (i, p) in graph.parameters().iter().enumerate() {
        let (tensors, expected) = match p.role {
            Role::Weight => (Tensors::Gradients, &twin.parameter_gradients[i]),
            Role::Statistic => (Tensors::Values, &twin.parameters[i]),
        };
        let got = net.read(tensors, i).unwrap();
        // Batch norm takes away what a bias before it adds: its gradient is nothing but rounding.
        let vanishes = expected.iter().all(|v| v.abs() < 1e-9);
        let tolerance = if vanishes { 10.0 * tolerance } else { tolerance };
        assert_close(&what(&format!("{tensors:?} {}", p.name)), &got, expected, tolerance);
    }
}
