//! Any graph, run by the naive operations: the oracle for a device's network as a whole.
//!
//! Every layer has memory of its own; there is no plan, no reuse, no fusion and no thread.

use super::elementwise::{add, relu_backward};
use super::window::Sliding;
use super::{batch_norm, conv, linear, optimisers};
use crate::ops::{Layer as _, NaiveAt, layer};
use crate::{
    DropoutKey, Graph, Initial, Node, NodeId, Norm, Op, Optimiser, ParameterGroup, Role, Window,
};

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
            let node = self.graph.nodes()[i].clone();
            let given = self.backward_of(i, &node);
            assert_eq!(given.len(), node.inputs.len());
            for (x, more) in node.inputs.iter().zip(given) {
                let all = &mut self.gradients[x.index()];
                *all = add(all, &more);
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
            let node = self.graph.nodes()[i].clone();
            self.values[i] = self.forward_of(i, &node);
        }
        &self.values[self.graph.output_node().index()]
    }

    fn forward_of(&mut self, i: usize, node: &Node) -> Vec<f64> {
        let input = self.graph.shape(node.inputs[0]);
        let x = self.values[node.inputs[0].index()].clone();
        let p = &node.parameters;
        match node.op {
            Op::Input => unreachable!("the input is the first layer and no other"),
            Op::Conv { spec, norm, relu } => {
                let s = self.sliding(node, spec.window);
                let bias = spec.bias.then(|| &self.parameters[p[1]][..]);
                let mut y = conv::forward(&s, &x, &self.parameters[p[0]], bias);
                if let Some(norm) = norm {
                    y = self.norm_forward(i, norm, &p[p.len() - 4..], y);
                }
                if let Some(residual) = node.inputs.get(1) {
                    y = add(&y, self.value(*residual));
                }
                if relu { super::elementwise::relu(&y) } else { y }
            }
            Op::BatchNorm(norm) => self.norm_forward(i, norm, p, x),
            Op::Add => add(&x, self.value(node.inputs[1])),
            Op::Linear { bias, .. } => {
                let bias = bias.then(|| &self.parameters[p[1]][..]);
                linear::forward(input.len(), &x, &self.parameters[p[0]], bias)
            }
            op => layer!(op, op => op.naive(&self.place(i, node), &x), else unreachable!()),
        }
    }

    /// The gradients of a layer's inputs; those of its parameters are stored.
    fn backward_of(&mut self, i: usize, node: &Node) -> Vec<Vec<f64>> {
        let input = self.graph.shape(node.inputs[0]);
        let x = self.values[node.inputs[0].index()].clone();
        let (y, dy) = (self.values[i].clone(), self.gradients[i].clone());
        let p = &node.parameters;
        match node.op {
            Op::Input => unreachable!("the input is the first layer and no other"),
            Op::Conv { spec, norm, relu } => {
                let dy = if relu { relu_backward(&y, &dy) } else { dy };
                let dz = match norm {
                    Some(norm) => self.norm_backward(i, norm, &p[p.len() - 4..], &dy),
                    None => dy.clone(),
                };
                let s = self.sliding(node, spec.window);
                self.parameter_gradients[p[0]] = conv::weight_gradient(&s, &x, &dz);
                if spec.bias {
                    self.parameter_gradients[p[1]] = conv::bias_gradient(spec.out, &dz);
                }
                let mut given = vec![conv::input_gradient(&s, &self.parameters[p[0]], &dz)];
                if node.inputs.len() > 1 {
                    given.push(dy);
                }
                given
            }
            Op::BatchNorm(norm) => vec![self.norm_backward(i, norm, p, &dy)],
            Op::Add => vec![dy.clone(), dy],
            Op::Linear { out, bias } => {
                let inputs = input.len();
                self.parameter_gradients[p[0]] = linear::weight_gradient(inputs, out, &x, &dy);
                if bias {
                    self.parameter_gradients[p[1]] = conv::bias_gradient(out, &dy);
                }
                vec![linear::input_gradient(inputs, &self.parameters[p[0]], &dy)]
            }
            op => {
                let of = [&x[..], &y, &dy];
                let at = self.place(i, node);
                vec![layer!(op, op => op.naive_backward(&at, of), else unreachable!())]
            }
        }
    }

    fn place(&self, i: usize, node: &Node) -> NaiveAt<'_> {
        let key = DropoutKey { seed: self.seed, pass: self.pass, layer: i };
        let statistics = node.parameters.iter().map(|p| &self.parameters[*p][..]);
        NaiveAt {
            batch: self.batch,
            input: self.graph.shape(node.inputs[0]),
            output: node.shape,
            draw: self.training.then_some((key, self.step)),
            statistics: statistics.collect(),
        }
    }

    /// Batch norm; `p` are its γ, β, running mean and running variance.
    fn norm_forward(&mut self, i: usize, norm: Norm, p: &[usize], x: Vec<f64>) -> Vec<f64> {
        let [gamma, beta, mean, var] = [p[0], p[1], p[2], p[3]].map(|k| self.parameters[k].clone());
        if !self.training {
            return batch_norm::forward(norm, &x, &mean, &var, &gamma, &beta);
        }
        let s = batch_norm::Statistics::of(&x, gamma.len());
        let (mut mean, mut var) = (mean, var);
        s.update_running(norm, &mut mean, &mut var);
        self.parameters[p[2]] = mean;
        self.parameters[p[3]] = var;
        let y = batch_norm::forward(norm, &x, &s.mean, &s.variance, &gamma, &beta);
        self.before_norm[i] = x;
        y
    }

    fn norm_backward(&mut self, i: usize, norm: Norm, p: &[usize], dy: &[f64]) -> Vec<f64> {
        let g = batch_norm::backward(norm, &self.before_norm[i], &self.parameters[p[0]], dy);
        self.parameter_gradients[p[0]] = g.gamma;
        self.parameter_gradients[p[1]] = g.beta;
        g.input
    }

    fn sliding(&self, node: &Node, window: Window) -> Sliding {
        Sliding {
            batch: self.batch,
            input: self.graph.shape(node.inputs[0]),
            output: node.shape,
            window,
        }
    }
}

/// f32 values in f64.
pub fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|v| f64::from(*v)).collect()
}
