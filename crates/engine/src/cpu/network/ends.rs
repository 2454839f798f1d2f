//! Where a layer's values and gradients lie, in whichever pass.

use std::ops::Range;

use super::State;
use crate::GradientWrite;
use crate::walk::{Layer, Pass};

/// The ranges of the arena that most layers touch.
pub(super) struct Ends {
    pub(super) x: Range<usize>,
    /// Its second input; empty where there is none.
    pub(super) second: Range<usize>,
    pub(super) y: Range<usize>,
    pub(super) dy: Range<usize>,
    pub(super) dx: Range<usize>,
    /// Whether nobody wants the input's gradient, and whether it is added to what is there.
    pub(super) skip: bool,
    pub(super) accumulate: bool,
}

impl State {
    pub(super) fn ends(&self, layer: &Layer) -> Ends {
        let (plan, count) = match layer.pass {
            Pass::Forward | Pass::Backward => (&self.training, self.training.batch),
            Pass::Infer(count) => (&self.inference, count),
        };
        let value = |i: usize| plan.value[i].head(count * layer.graph.nodes()[i].shape.len());
        let gradient = |i: usize| self.training.gradient[i].range();
        let write = match layer.pass {
            Pass::Backward => layer.write(&self.training),
            Pass::Forward | Pass::Infer(_) => GradientWrite::Skip,
        };
        Ends {
            x: value(layer.from()),
            second: layer.second().map_or(0..0, |r| value(r.index())),
            y: value(layer.i),
            dy: gradient(layer.i),
            dx: gradient(layer.from()),
            skip: write == GradientWrite::Skip,
            accumulate: write == GradientWrite::Accumulate,
        }
    }
}
