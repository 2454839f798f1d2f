//! The walk over a graph's layers that every device takes: forwards, backwards, and forwards in
//! inference. The one place where devices tell one kind of layer from another.
//!
//! A device implements [`Layers`]: a method for each kind, each in a file of its own, which does
//! whichever pass it is asked for. A kind that a device has forgotten does not compile.

use crate::graph::{Activation, Graph, Node, NodeId, Norm, Op, Shape, Window};
use crate::{GradientWrite, Plan, Result};

/// Which pass over the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Forwards in training: batch statistics, dropout, and what the way back needs is kept.
    Forward,
    /// Gradients of weights and inputs from those of the outputs.
    Backward,
    /// Forwards over so many pictures: running statistics, nothing kept.
    Infer(usize),
}

/// A layer on the walk.
#[derive(Clone, Copy)]
pub(crate) struct Layer<'a> {
    /// Its number.
    pub(crate) i: usize,
    pub(crate) node: &'a Node,
    pub(crate) graph: &'a Graph,
    pub(crate) pass: Pass,
}

impl Layer<'_> {
    /// The number of its first input.
    pub(crate) fn from(&self) -> usize {
        self.node.inputs[0].index()
    }

    /// The shape of its first input.
    pub(crate) fn input(&self) -> Shape {
        self.graph.shape(self.node.inputs[0])
    }

    /// Its second input, if it has one: what is added.
    pub(crate) fn second(&self) -> Option<NodeId> {
        self.node.inputs.get(1).copied()
    }

    /// What it does with its first input's gradient.
    pub(crate) fn write(&self, plan: &Plan) -> GradientWrite {
        plan.writes[self.i][0]
    }
}

/// What a device does for each kind of layer, in each pass. Going backwards, a layer comes by only
/// if its output has a gradient; whether its inputs' are wanted is its own to ask
/// ([`Layer::write`]).
pub(crate) trait Layers {
    /// Whether a layer's output has a gradient.
    fn has_gradient(&self, i: usize) -> bool;

    /// Before a layer, on the way it is on.
    fn before(&mut self, _layer: &Layer) -> Result<()> {
        Ok(())
    }

    /// A convolution, with the norm, the sum and the ReLU behind it.
    fn conv(&mut self, layer: &Layer, norm: Option<Norm>, relu: bool) -> Result<()>;
    /// A matrix and a bias.
    fn linear(&mut self, layer: &Layer) -> Result<()>;
    /// A batch norm on its own.
    fn batch_norm(&mut self, layer: &Layer, norm: Norm) -> Result<()>;
    /// Nothing below zero.
    fn relu(&mut self, layer: &Layer) -> Result<()>;
    /// A function of each value alone.
    fn activation(&mut self, layer: &Layer, activation: Activation) -> Result<()>;
    /// The sum of two.
    fn add(&mut self, layer: &Layer) -> Result<()>;
    /// The greatest value in a window.
    fn max_pool(&mut self, layer: &Layer, window: Window) -> Result<()>;
    /// The mean over all places.
    fn global_avg_pool(&mut self, layer: &Layer) -> Result<()>;
    /// Each place four times.
    fn upsample(&mut self, layer: &Layer) -> Result<()>;
    /// Some values left out, the others made larger.
    fn dropout(&mut self, layer: &Layer, p: f32) -> Result<()>;
    /// Divided by its length.
    fn l2_normalise(&mut self, layer: &Layer) -> Result<()>;
    /// Channels moved, from this one of the input's on.
    fn channels(&mut self, layer: &Layer, first: isize) -> Result<()>;
    /// Colours as Lab.
    fn lab(&mut self, layer: &Layer) -> Result<()>;
}

/// All layers in order.
pub(crate) fn forwards(to: &mut impl Layers, graph: &Graph, pass: Pass) -> Result<()> {
    (1..graph.nodes().len()).try_for_each(|i| visit(to, graph, i, pass))
}

/// All layers whose output has a gradient, from the last to the first.
pub(crate) fn backwards(to: &mut impl Layers, graph: &Graph) -> Result<()> {
    let mut layers = (1..graph.nodes().len()).rev();
    layers.try_for_each(|i| match to.has_gradient(i) {
        true => visit(to, graph, i, Pass::Backward),
        false => Ok(()),
    })
}

fn visit(to: &mut impl Layers, graph: &Graph, i: usize, pass: Pass) -> Result<()> {
    let node = &graph.nodes()[i];
    let layer = &Layer { i, node, graph, pass };
    to.before(layer)?;
    match node.op {
        Op::Input => Ok(()),
        Op::Conv { norm, relu, .. } => to.conv(layer, norm, relu),
        Op::Linear { .. } => to.linear(layer),
        Op::BatchNorm(norm) => to.batch_norm(layer, norm),
        Op::Relu => to.relu(layer),
        Op::Activation(activation) => to.activation(layer, activation),
        Op::Add => to.add(layer),
        Op::MaxPool(window) => to.max_pool(layer, window),
        Op::GlobalAvgPool => to.global_avg_pool(layer),
        Op::Upsample => to.upsample(layer),
        Op::Dropout(p) => to.dropout(layer, p),
        Op::L2Normalise => to.l2_normalise(layer),
        Op::Channels { first } => to.channels(layer, first),
        Op::Lab => to.lab(layer),
    }
}
