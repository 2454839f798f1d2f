//! The walk over a graph's layers that every device takes: forwards, backwards, and forwards in
//! inference.
//!
//! A device implements [`Layers`]: one match over the kinds of layers, each of which does whichever
//! pass it is asked for. A kind that a device has forgotten does not compile.

use crate::graph::{Graph, Node, NodeId, Shape};
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

    /// What it reads and writes, in a pass of so many pictures.
    pub(crate) fn io<P: Default>(
        &self,
        training: &Plan,
        count: usize,
        value: impl Fn(usize) -> P,
        gradient: impl Fn(usize) -> P,
    ) -> LayerIo<P> {
        let write = match self.pass {
            Pass::Backward => training.writes[self.i][0],
            Pass::Forward | Pass::Infer(_) => GradientWrite::Skip,
        };
        LayerIo {
            x: value(self.from()),
            second: self.second().map_or(P::default(), |r| value(r.index())),
            y: value(self.i),
            dy: gradient(self.i),
            dx: gradient(self.from()),
            skip: write == GradientWrite::Skip,
            accumulate: write == GradientWrite::Accumulate,
            len: count * self.node.shape.len(),
        }
    }
}

/// Where a layer's values and gradients lie on a device, in whichever pass.
pub(crate) struct LayerIo<P> {
    pub(crate) x: P,
    /// Its second input; empty where there is none.
    pub(crate) second: P,
    pub(crate) y: P,
    pub(crate) dy: P,
    pub(crate) dx: P,
    /// Whether nobody wants the input's gradient, and whether it is added to what is there.
    pub(crate) skip: bool,
    pub(crate) accumulate: bool,
    /// Values of the output of the whole batch.
    pub(crate) len: usize,
}

/// What a device does for each kind of layer, in each pass. Going backwards, a layer comes by only
/// if its output has a gradient; whether its inputs' are wanted is its own to ask
/// ([`Layer::io`]).
pub(crate) trait Layers {
    /// Whether a layer's output has a gradient.
    fn has_gradient(&self, i: usize) -> bool;

    /// A layer's part of its pass.
    fn visit(&mut self, layer: &Layer) -> Result<()>;
}

/// All layers in order.
pub(crate) fn forwards(to: &mut impl Layers, graph: &Graph, pass: Pass) -> Result<()> {
    let mut layers = graph.nodes().iter().enumerate().skip(1);
    layers.try_for_each(|(i, node)| to.visit(&Layer { i, node, graph, pass }))
}

/// All layers whose output has a gradient, from the last to the first.
pub(crate) fn backwards(to: &mut impl Layers, graph: &Graph) -> Result<()> {
    let mut layers = graph.nodes().iter().enumerate().skip(1).rev();
    layers.try_for_each(|(i, node)| match to.has_gradient(i) {
        true => to.visit(&Layer { i, node, graph, pass: Pass::Backward }),
        false => Ok(()),
    })
}
