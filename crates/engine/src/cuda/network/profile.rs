//! The parts of a step, told apart so that each can be timed alone: a pass runs all of them, or only one.

use super::{CudaNetwork, State, has_norm};
use crate::{GradientWrite, Graph, Network, Node, Op, PartTime, Result};

/// What a call of a pass belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Forward,
    NormForward,
    NormBackward,
    InputGradient,
    WeightGradient,
    Rest,
}

const PARTS: [(Part, &str); 6] = [
    (Part::Forward, "convolutions"),
    (Part::NormForward, "norm, add, ReLU forwards"),
    (Part::NormBackward, "norm, add, ReLU backwards"),
    (Part::InputGradient, "input gradients"),
    (Part::WeightGradient, "weight gradients"),
    (Part::Rest, "pooling and the like"),
];

impl State {
    /// Does the work unless only another part's is wanted.
    pub(super) fn part(&self, part: Part, work: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.only {
            Some(only) if only != part => Ok(()),
            _ => work(),
        }
    }
}

impl CudaNetwork {
    /// Times the parts of both passes. Activations and gradients are lost.
    pub(in crate::cuda) fn profile(&mut self) -> Result<Vec<PartTime>> {
        let mut times = vec![];
        for (part, name) in PARTS {
            self.state.only = Some(part);
            let recorded = self.record(|network| {
                network.forward_calls()?;
                network.backward_calls()
            });
            self.state.only = None;
            let milliseconds = f64::from(recorded?.time(&self.state.cuda)?);
            let (flops, bytes) = self.cost(part);
            times.push(PartTime {
                name,
                milliseconds,
                flops,
                bytes,
            });
        }
        Ok(times)
    }

    fn cost(&self, part: Part) -> (f64, f64) {
        let mut sum = (0.0, 0.0);
        for (i, node) in self.graph.nodes().iter().enumerate().skip(1) {
            let (flops, values, weights) = self.cost_of(part, i, node, &self.graph);
            let element = self.state.cuda.precision().bytes() as f64;
            sum.0 += flops * self.batch() as f64;
            sum.1 += element * (values * self.batch() as f64 + weights);
        }
        sum
    }

    /// Operations a picture, values read and written a picture, and weights.
    fn cost_of(&self, part: Part, i: usize, node: &Node, graph: &Graph) -> (f64, f64, f64) {
        let (x, y) = (graph.shape(node.inputs[0]), node.shape);
        let size = |s: crate::Shape| s.len() as f64;
        let skips = self.state.training.writes[i][0] == GradientWrite::Skip;
        let (relu, residual) = match node.op {
            Op::Conv { relu, .. } => (relu, node.inputs.len() > 1),
            _ => (false, false),
        };
        let more = |flag: bool| f64::from(u8::from(flag));
        match part {
            Part::Forward | Part::InputGradient | Part::WeightGradient => {
                let taps = match node.op {
                    Op::Conv { spec, .. } => spec.window.kernel.iter().product(),
                    Op::Linear { .. } => x.pixels(),
                    _ => return (0.0, 0.0, 0.0),
                };
                if part == Part::InputGradient && skips {
                    return (0.0, 0.0, 0.0);
                }
                let weights = (taps * x.channels * y.channels) as f64;
                (
                    2.0 * weights * y.pixels() as f64,
                    size(x) + size(y),
                    weights,
                )
            }
            Part::NormForward if has_norm(&node.op).is_some() => {
                (0.0, (3.0 + more(residual)) * size(y), 0.0)
            }
            Part::NormBackward if has_norm(&node.op).is_some() => {
                let masked = 2.0 * more(relu && residual);
                (0.0, (5.0 + masked + 2.0 * more(residual)) * size(y), 0.0)
            }
            Part::Rest if has_norm(&node.op).is_none() => match node.op {
                Op::Conv { .. } | Op::Linear { .. } => (0.0, 0.0, 0.0),
                _ => (0.0, 2.0 * (size(x) + size(y)), 0.0),
            },
            _ => (0.0, 0.0, 0.0),
        }
    }
}
