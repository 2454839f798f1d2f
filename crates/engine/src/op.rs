//! What must be known of every kind of layer, whatever the device: the list that a new kind is
//! added to.

use crate::graph::{Graph, Node, Norm, Shape, Window};
use crate::ops::{Layer as _, Op, layer};

/// What a layer's way back reads beside the gradient of its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayBack {
    /// The value of its first input.
    pub(crate) input: bool,
    /// Its own output.
    pub(crate) output: bool,
    /// What a convolution gives before its norm, which is kept for it.
    pub(crate) before_norm: bool,
}

impl Op {
    pub(crate) fn way_back(&self) -> WayBack {
        let [input, output] = layer!(*self, op => op.reads(), else match self {
            Op::Conv { relu, .. } => [true, *relu],
            Op::Linear { .. } | Op::BatchNorm(_) => [true, false],
            _ => [false, false],
        });
        WayBack {
            input,
            output,
            before_norm: matches!(self, Op::Conv { .. }) && self.norm().is_some(),
        }
    }

    /// Its batch norm, where it is or has one.
    pub(crate) fn norm(&self) -> Option<Norm> {
        match self {
            Op::Conv { norm, .. } => *norm,
            Op::BatchNorm(norm) => Some(*norm),
            _ => None,
        }
    }
}

impl Node {
    /// Where the parameters of its norm begin: γ, β, running mean, running variance.
    pub(crate) fn norm_parameters(&self) -> usize {
        self.parameters[self.parameters.len() - 4]
    }

    /// The parameter that is its bias, if it has one.
    pub(crate) fn bias_parameter(&self) -> Option<usize> {
        let bias = match self.op {
            Op::Conv { spec, .. } => spec.bias,
            Op::Linear { bias, .. } => bias,
            _ => false,
        };
        bias.then(|| self.parameters[1])
    }

    /// As a convolution: what it reads, and by which window. A linear layer is one of 1×1 over the
    /// flattened input.
    pub(crate) fn convolution(&self, graph: &Graph) -> Option<(Shape, Window)> {
        let input = || graph.shape(self.inputs[0]);
        match self.op {
            Op::Conv { spec, .. } => Some((input(), spec.window)),
            Op::Linear { .. } => {
                let flat = Shape::new(1, 1, input().len());
                Some((flat, Window::square(1, 1, 0)))
            }
            _ => None,
        }
    }
}
