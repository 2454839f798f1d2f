//! What the parts of a pass must do at least, and how one of them runs alone.

use super::{CudaNetwork, State};
use crate::cuda::profile::{Cost, Part};
use crate::cuda::stream::GpuStream;
use crate::{GradientWrite, Graph, Node, Result};

/// What a pass forwards has.
pub(super) const FORWARD: [Part; 2] = [Part::Forward, Part::NormForward];
/// What a pass backwards has, and what both have.
pub(super) const BACKWARD: [Part; 4] =
    [Part::NormBackward, Part::InputGradient, Part::WeightGradient, Part::Rest];

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
    /// Tells a stream that times its parts what those of a pass must do at least.
    pub(super) fn add_costs(&self, stream: &mut GpuStream, parts: &[Part]) {
        for part in parts {
            stream.add_cost(*part, self.cost(*part));
        }
    }

    fn cost(&self, part: Part) -> Cost {
        let mut sum = Cost::default();
        for (i, node) in self.graph.nodes().iter().enumerate().skip(1) {
            let (flops, values, weights) = self.cost_of(part, i, node, &self.graph);
            let element = self.state.cuda.precision().bytes() as f64;
            sum.flops += flops * self.state.batch() as f64;
            sum.bytes += element * (values * self.state.batch() as f64 + weights);
        }
        sum
    }

    /// Operations a picture, values read and written a picture, and weights.
    fn cost_of(&self, part: Part, i: usize, node: &Node, graph: &Graph) -> (f64, f64, f64) {
        let (x, y) = (graph.shape(node.inputs[0]), node.shape);
        let size = |s: crate::Shape| s.len() as f64;
        let skips = self.state.training.writes[i][0] == GradientWrite::Skip;
        let (relu, residual) = (node.op.saved().output, node.inputs.len() > 1);
        let more = |flag: bool| f64::from(u8::from(flag));
        match part {
            Part::Forward | Part::InputGradient | Part::WeightGradient => {
                let Some((read, window)) = node.convolution(graph) else {
                    return (0.0, 0.0, 0.0);
                };
                if part == Part::InputGradient && skips {
                    return (0.0, 0.0, 0.0);
                }
                let taps: usize = window.kernel.iter().product();
                let weights = (taps * read.channels * y.channels) as f64;
                (2.0 * weights * y.pixels() as f64, size(x) + size(y), weights)
            }
            Part::NormForward if node.op.norm().is_some() => {
                (0.0, (3.0 + more(residual)) * size(y), 0.0)
            }
            Part::NormBackward if node.op.norm().is_some() => {
                let masked = 2.0 * more(relu && residual);
                (0.0, (5.0 + masked + 2.0 * more(residual)) * size(y), 0.0)
            }
            Part::Rest if node.op.norm().is_none() && node.convolution(graph).is_none() => {
                (0.0, 2.0 * (size(x) + size(y)), 0.0)
            }
            _ => (0.0, 0.0, 0.0),
        }
    }
}
