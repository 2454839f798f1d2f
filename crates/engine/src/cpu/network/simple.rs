//! Layers without weights: values go in, values come out, and gradients go back.

use std::ops::Range;

use super::State;
use super::ends::Ends;
use crate::cpu::pool::MaxPool;
use crate::cpu::{activation, colour, elementwise, normalise, pool, upsample};
use crate::walk::{Layer, Pass};
use crate::{DropoutKey, GradientWrite, Op};

impl State {
    /// A layer of one input: what it gives, and what it does to its input's gradient (+= where it
    /// is told so), for which it reads some of its ends, if that one is wanted.
    fn unary<const N: usize>(
        &mut self,
        layer: &Layer,
        forward: impl FnOnce(&[f32], &mut [f32]),
        reads: impl FnOnce(Ends) -> [Range<usize>; N],
        backward: impl FnOnce([&[f32]; N], bool, &mut [f32]),
    ) {
        let e = self.ends(layer);
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                forward(x, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let (accumulate, dx) = (e.accumulate, e.dx.clone());
                let (read, [dx]) = self.arena.views(reads(e), [dx]);
                backward(read, accumulate, dx);
            }
        }
    }

    pub(super) fn simple_layer(&mut self, layer: &Layer) {
        let (arch, input, output) = (self.arch, layer.input(), layer.node.shape);
        match layer.node.op {
            // In files of their own.
            Op::Input | Op::Conv { .. } | Op::Linear { .. } | Op::BatchNorm(_) => {}
            Op::Relu => self.unary(
                layer,
                |x, y| elementwise::relu(arch, x, y),
                |e| [e.y, e.dy],
                |[y, dy], add, dx| elementwise::pass_gradient(arch, Some(y), dy, add, dx),
            ),
            Op::Activation(f) => self.unary(
                layer,
                |x, y| activation::forward(f, x, y),
                |e| [e.y, e.dy],
                |[y, dy], add, dx| activation::backward(f, y, dy, add, dx),
            ),
            Op::Add => self.add_layer(layer),
            Op::MaxPool(window) => {
                let pool = MaxPool { input, output, window };
                self.unary(
                    layer,
                    |x, y| pool.forward(x, y),
                    |e| [e.x, e.y, e.dy],
                    |[x, y, dy], add, dx| pool.backward(x, y, dy, add, dx),
                );
            }
            Op::GlobalAvgPool => self.unary(
                layer,
                |x, y| pool::global_average(x, input, y),
                |e| [e.dy],
                |[dy], add, dx| pool::global_average_backward(dy, input, add, dx),
            ),
            Op::Upsample => self.unary(
                layer,
                |x, y| upsample::forward(x, input, y),
                |e| [e.dy],
                |[dy], add, dx| upsample::backward(dy, input, add, dx),
            ),
            Op::Dropout(p) => {
                let key = DropoutKey { seed: self.seed, pass: self.pass, layer: layer.i };
                let (infers, step) = (matches!(layer.pass, Pass::Infer(_)), self.step);
                let rank = self.communicator.rank();
                self.unary(
                    layer,
                    |x, y| match infers {
                        true => y.copy_from_slice(x),
                        false => elementwise::dropout(key, step, rank, p, x, false, y),
                    },
                    |e| [e.dy],
                    |[dy], add, dx| elementwise::dropout(key, step, rank, p, dy, add, dx),
                );
            }
            Op::L2Normalise => self.unary(
                layer,
                |x, y| normalise::forward(x, input.len(), y),
                |e| [e.x, e.y, e.dy],
                |[x, y, dy], add, dx| normalise::backward(x, y, dy, input.len(), add, dx),
            ),
            Op::Channels { first } => {
                let [from, to] = [input, output].map(|s| s.channels);
                self.unary(
                    layer,
                    |x, y| elementwise::channels(x, [from, to], first, false, y),
                    |e| [e.dy],
                    |[dy], add, dx| elementwise::channels(dy, [to, from], -first, add, dx),
                );
            }
            Op::Lab => {
                let p = &self.parameters;
                let statistic = |k: usize| -> [f32; 3] {
                    let values = &p.statistics[p.range(layer.node.parameters[k])];
                    std::array::from_fn(|c| values[c])
                };
                let colours = colour::Normalised { mean: statistic(0), std: statistic(1) };
                self.unary(
                    layer,
                    |x, y| colours.to_lab(x, y),
                    |e| [e.x, e.dy],
                    |[x, dy], add, dx| colours.lab_backward(x, dy, add, dx),
                );
            }
        }
    }

    fn add_layer(&mut self, layer: &Layer) {
        let (arch, e) = (self.arch, self.ends(layer));
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
