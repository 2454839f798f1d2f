//! Any graph, run by the naive operations: the oracle for a device's network as a whole.
//!
//! Every layer has memory of its own; there is no plan, no reuse, no fusion and no thread.

use super::optimisers;
use crate::ops::NaiveAt;
use crate::{DropoutKey, Graph, Initial, NodeId, Optimiser, ParameterGroup, Role};

/// A graph with values, gradients and parameters in f64.
#[derive(Clone, Debug)]
pub struct NaiveNetwork {
    graph: Graph,
    batch: usize,
    seed: u64,
    pass: usize,
    step: u64,
    training: bool,
    values: Vec<Vec<f64>>,
    /// What went into each layer's batch norm.
    before_norm: Vec<Vec<f64>>,
    gradients: Vec<Vec<f64>>,
    /// Each parameter's values, in PyTorch's layout.
    pub parameters: Vec<Vec<f64>>,
    /// Their gradients after a backward pass; statistics keep zeros.
    pub parameter_gradients: Vec<Vec<f64>>,
    /// The optimiser's state.
    pub slots: [Vec<Vec<f64>>; 2],
}

impl NaiveNetwork {
    /// A network with all parameters at zero, but for batch norm's constants.
    pub fn new(graph: &Graph) -> Self {
        let layers = graph.nodes().len();
        let initial = |p: &crate::Parameter| match p.initial {
            Initial::Constant(c) => vec![f64::from(c); p.len()],
            Initial::Uniform(_) => vec![0.0; p.len()],
        };
        let parameters: Vec<Vec<f64>> = graph.parameters().iter().map(initial).collect();
        let zeros: Vec<Vec<f64>> = parameters.iter().map(|p| vec![0.0; p.len()]).collect();
        NaiveNetwork {
            graph: graph.clone(),
            batch: 0,
            seed: 0,
            pass: 0,
            step: 0,
            training: false,
            values: vec![vec![]; layers],
            before_norm: vec![vec![]; layers],
            gradients: vec![vec![]; layers],
            parameters,
            parameter_gradients: zeros.clone(),
            slots: [zeros.clone(), zeros],
        }
    }

    /// The same initial parameters and masks as [`crate::Network::initialise`].
    pub fn initialise(&mut self, seed: u64) {
        self.seed = seed;
        for (index, p) in self.graph.parameters().iter().enumerate() {
            self.parameters[index] = widen(&p.initial_values(seed, index));
            self.slots.iter_mut().for_each(|s| s[index].fill(0.0));
        }
    }

    /// Runs a batch forwards: batch statistics, running ones updated, dropout drawn for `step`.
    pub fn train_forward(&mut self, pixels: &[f64], step: u64) -> &[f64] {
        self.train_pass(pixels, 0, step)
    }

    /// The same in another pass.
    pub fn train_pass(&mut self, pixels: &[f64], pass: usize, step: u64) -> &[f64] {
        self.training = true;
        (self.pass, self.step) = (pass, step);
        self.forward(pixels)
    }

    /// Runs pictures forwards: running statistics, no dropout.
    pub fn infer(&mut self, pixels: &[f64]) -> &[f64] {
        self.training = false;
        self.forward(pixels)
    }

    /// A layer's output in the last pass.
    pub fn value(&self, node: NodeId) -> &[f64] {
        &self.values[node.index()]
    }

    /// The gradient of a layer's output in the last backward pass.
    pub fn gradient(&self, node: NodeId) -> &[f64] {
        &self.gradients[node.index()]
    }

    /// Computes the gradients of all layers and parameters from the output's.
    pub fn backward(&mut self, output_gradient: &[f64]) {
        assert!(self.training, "a backward pass follows a training pass");
        for (gradient, value) in self.gradients.iter_mut().zip(&self.values) {
            *gradient = vec![0.0; value.len()];
        }
        let output = self.graph.output_node().index();
        self.gradients[output] = output_gradient.to_vec();
        for i in (1..self.graph.nodes().len()).rev() {
            let (op, inputs): (_, Vec<usize>) =
                (self.graph.nodes()[i].op, self.inputs(i).collect());
            let x = self.values[inputs[0]].clone();
            let (y, dy) = (self.values[i].clone(), self.gradients[i].clone());
            let given = op.layer(|layer| layer.naive_backward(&mut self.place(i), [&x, &y, &dy]));
            for (x, given) in inputs.into_iter().zip(given) {
                let all = &mut self.gradients[x];
                assert_eq!(all.len(), given.len());
                all.iter_mut().zip(given).for_each(|(sum, more)| *sum += more);
            }
        }
    }

    /// Moves the weights along the gradients.
    pub fn update(&mut self, optimiser: &Optimiser, rate: f32, number: u64) {
        for (i, p) in self.graph.parameters().iter().enumerate() {
            if p.role == Role::Weight {
                let gradients = &self.parameter_gradients[i];
                optimisers::step(
                    optimiser,
                    f64::from(rate),
                    number,
                    &ParameterGroup::default(),
                    &mut self.parameters[i],
                    self.slots.each_mut().map(|s| &mut s[i][..]),
                    gradients,
                );
            }
        }
    }

    fn forward(&mut self, pixels: &[f64]) -> &[f64] {
        self.batch = pixels.len() / self.graph.nodes()[0].shape.len();
        self.values[0] = pixels.to_vec();
        for i in 1..self.graph.nodes().len() {
            let op = self.graph.nodes()[i].op;
            let inputs: Vec<Vec<f64>> = self.inputs(i).map(|x| self.values[x].clone()).collect();
            let inputs: Vec<&[f64]> = inputs.iter().map(|x| &x[..]).collect();
            self.values[i] = op.layer(|layer| layer.naive(&mut self.place(i), &inputs));
        }
        &self.values[self.graph.output_node().index()]
    }

    fn inputs(&self, i: usize) -> impl Iterator<Item = usize> {
        self.graph.nodes()[i].inputs.iter().map(|x| x.index())
    }

    fn place(&mut self, i: usize) -> NaiveAt<'_> {
        let node = &self.graph.nodes()[i];
        let key = DropoutKey { seed: self.seed, pass: self.pass, layer: i };
        // A layer's parameters follow each other.
        let first = node.parameters.first().copied().unwrap_or(0);
        let own = first..first + node.parameters.len();
        NaiveAt {
            batch: self.batch,
            input: self.graph.shape(node.inputs[0]),
            output: node.shape,
            draw: self.training.then_some((key, self.step)),
            parameters: &mut self.parameters[own.clone()],
            gradients: &mut self.parameter_gradients[own],
            before_norm: &mut self.before_norm[i],
        }
    }
}

/// f32 values in f64.
pub fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|v| f64::from(*v)).collect()
}
