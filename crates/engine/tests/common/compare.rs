//! A device's network and its naive twin, side by side over training passes and inferences.

use anchorhood_engine::naive::NaiveNetwork;
use anchorhood_engine::{Device, Graph, Network, NetworkOptions, Optimiser, Role, Tensors};

use super::{Driven, any_parameters, assert_close, representable, uniform, widen};

/// A network and its twin, which do the same over the same parameters.
pub struct Twins {
    pub net: Driven,
    pub twin: NaiveNetwork,
}

impl Twins {
    pub fn new(
        device: &Device,
        graph: &Graph,
        options: &NetworkOptions,
        parameters: &[Vec<f32>],
    ) -> Self {
        let mut net = Driven::new(device, graph, options);
        let mut twin = NaiveNetwork::new(graph);
        super::set_parameters(&mut net, &mut twin, parameters).unwrap();
        Twins { net, twin }
    }

    /// Runs a batch forwards in training mode; gives what the twin makes of it.
    pub fn train_forward(&mut self, pixels: &[f32], step: u64) -> Vec<f64> {
        self.net.train_forward(pixels, step).unwrap();
        self.twin.train_forward(&widen(pixels), step).to_vec()
    }

    pub fn backward(&mut self, gradient: &[f32]) {
        self.net.set_output_gradient(gradient);
        self.net.backward().unwrap();
        self.twin.backward(&widen(gradient));
    }

    /// A step over a batch and a given gradient of its output.
    pub fn step(&mut self, optimiser: &Optimiser, seeds: [u64; 2], rate: f32, step: u64) {
        let one = self.net.graph().nodes()[0].shape.len();
        let expected = self.train_forward(&uniform(seeds[0], self.net.batch() * one), step);
        self.backward(&uniform(seeds[1], expected.len()));
        self.net.update(rate).unwrap();
        self.twin.update(optimiser, rate, step);
    }

    /// Compares inference.
    pub fn assert_inference(&mut self, pixels: &[f32], what: &str, tolerance: f64) {
        let expected = self.twin.infer(&widen(pixels)).to_vec();
        let mut got = vec![f32::NAN; expected.len()];
        self.net.infer(pixels, &mut got).unwrap();
        assert_close(what, &got, &expected, tolerance);
    }

    /// Compares every tensor of a kind.
    pub fn assert_tensors(&self, which: Tensors, what: &str, tolerance: f64) {
        let expected = match which {
            Tensors::Values => &self.twin.parameters,
            Tensors::Gradients => &self.twin.parameter_gradients,
            Tensors::Slot(slot) => &self.twin.slots[slot],
        };
        assert_tensors(&self.net, which, expected, what, tolerance);
    }
}

/// Compares every tensor of a kind, of those that have it.
pub fn assert_tensors(
    net: &Network,
    which: Tensors,
    expected: &[Vec<f64>],
    what: &str,
    tolerance: f64,
) {
    for (i, p) in net.graph().parameters().iter().enumerate() {
        if p.role == Role::Weight || which == Tensors::Values {
            // Batch norm takes away what a bias before it adds: its gradient is nothing but
            // rounding.
            let vanishes = expected[i].iter().all(|v| v.abs() < 1e-9);
            let tolerance = if vanishes { 10.0 * tolerance } else { tolerance };
            let got = net.read(which, i).unwrap();
            assert_close(
                &format!("{which:?} of {}, {what}", p.name),
                &got,
                &expected[i],
                tolerance,
            );
        }
    }
}

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
    let (input, last) = (graph.nodes()[0].shape, graph.node(graph.output_node()));
    let batch = pixels.len() / input.len();
    let pixels = &representable(pixels.to_vec(), tolerance)[..];
    let (device_name, op, output) = (device.describe(), &last.op, last.shape);
    let what = format!("{device_name}: {op:?}, {batch}×{input} to {output} (seed {seed})");
    let options = NetworkOptions { input_gradient, ..NetworkOptions::new(batch) };
    let parameters = any_parameters(graph, seed).into_iter();
    let parameters: Vec<Vec<f32>> = parameters.map(|p| representable(p, tolerance)).collect();
    let mut twins = Twins::new(device, graph, &options, &parameters);

    let expected = twins.train_forward(pixels, seed);
    assert_close(&format!("output, {what}"), &twins.net.output(), &expected, tolerance);
    twins.backward(&representable(uniform(seed + 1, expected.len()), tolerance));
    if input_gradient {
        let got = twins.net.input_gradient().unwrap();
        let expected = twins.twin.gradient(graph.find("input").unwrap());
        assert_close(&format!("input gradient, {what}"), &got, expected, tolerance);
    }
    twins.assert_tensors(Tensors::Gradients, &what, tolerance);
    twins.assert_tensors(Tensors::Values, &what, tolerance);
    for count in [batch, 1] {
        let what = format!("inference over {count}, {what}");
        twins.assert_inference(&pixels[..count * input.len()], &what, tolerance);
    }
}
