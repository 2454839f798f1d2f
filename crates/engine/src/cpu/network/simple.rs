//! Layers without weights: values go in, values come out, and gradients go back.

use super::State;
use crate::cpu::elementwise;
use crate::ops::{CpuAt, Unary};
use crate::walk::{Layer, Pass};
use crate::{DropoutKey, GradientWrite};

impl State {
    /// A layer of one input: what it gives, and what it does to its input's gradient, if that is
    /// wanted.
    pub(crate) fn unary_layer(&mut self, layer: &Layer, op: &impl Unary) {
        let (e, at) = (self.io(layer), self.place(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                op.cpu(&at, x, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let saved = op.saved();
                let x = if saved.input { e.x } else { 0..0 };
                let y = if saved.output { e.y } else { 0..0 };
                let (of, [dx]) = self.arena.views([x, y, e.dy], [e.dx]);
                op.cpu_backward(&at, of, e.accumulate, dx);
            }
        }
    }

    fn place(&self, layer: &Layer) -> CpuAt {
        let draws = || {
            let key = DropoutKey { seed: self.seed, pass: self.pass, layer: layer.i };
            (key, self.step, self.communicator.rank())
        };
        let p = &self.parameters;
        let mut statistics = [[0.0; 3]; 2];
        for (own, parameter) in statistics.iter_mut().zip(&layer.node.parameters) {
            own.copy_from_slice(&p.statistics[p.range(*parameter)]);
        }
        CpuAt {
            arch: self.arch,
            input: layer.input(),
            output: layer.node.shape,
            draw: (!matches!(layer.pass, Pass::Infer(_))).then(draws),
            statistics,
        }
    }

    pub(crate) fn add_layer(&mut self, layer: &Layer) {
        let (arch, e) = (self.arch, self.io(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([a, b], [y]) = self.arena.views([e.x, e.second], [e.y]);
                elementwise::add(arch, a, b, y);
            }
            Pass::Backward => {
                let writes = &self.training.writes[layer.i];
                for (input, write) in layer.node.inputs.iter().zip(writes).rev() {
                    if *write == GradientWrite::Skip {
                        continue;
                    }
                    let dx = self.training.gradient[input.index()].range();
                    let ([dy], [dx]) = self.arena.views([e.dy.clone()], [dx]);
                    let accumulate = *write == GradientWrite::Accumulate;
                    elementwise::pass_gradient(arch, None, dy, accumulate, dx);
                }
            }
        }
    }
}
