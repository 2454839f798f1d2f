//! Layers without weights: values go in, values come out, and gradients go back.

use super::State;
use crate::cpu::pool::MaxPool;
use crate::cpu::{activation, colour, elementwise, normalise, pool, upsample};
use crate::walk::{Layer, Pass};
use crate::{Activation, DropoutKey, GradientWrite, Window};

impl State {
    pub(super) fn relu_layer(&mut self, layer: &Layer) {
        let (arch, e) = (self.arch, self.ends(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                elementwise::relu(arch, x, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([y, dy], [dx]) = self.arena.views([e.y, e.dy], [e.dx]);
                elementwise::pass_gradient(arch, Some(y), dy, e.accumulate, dx);
            }
        }
    }

    pub(super) fn activation_layer(&mut self, layer: &Layer, f: Activation) {
        let e = self.ends(layer);
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                activation::forward(f, x, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([y, dy], [dx]) = self.arena.views([e.y, e.dy], [e.dx]);
                activation::backward(f, y, dy, e.accumulate, dx);
            }
        }
    }

    pub(super) fn add_layer(&mut self, layer: &Layer) {
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

    pub(super) fn max_pool_layer(&mut self, layer: &Layer, window: Window) {
        let e = self.ends(layer);
        let pool = MaxPool { input: layer.input(), output: layer.node.shape, window };
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                pool.forward(x, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([x, y, dy], [dx]) = self.arena.views([e.x, e.y, e.dy], [e.dx]);
                pool.backward(x, y, dy, e.accumulate, dx);
            }
        }
    }

    pub(super) fn global_avg_pool_layer(&mut self, layer: &Layer) {
        let (input, e) = (layer.input(), self.ends(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                pool::global_average(x, input, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([dy], [dx]) = self.arena.views([e.dy], [e.dx]);
                pool::global_average_backward(dy, input, e.accumulate, dx);
            }
        }
    }

    pub(super) fn upsample_layer(&mut self, layer: &Layer) {
        let (input, e) = (layer.input(), self.ends(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                upsample::forward(x, input, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([dy], [dx]) = self.arena.views([e.dy], [e.dx]);
                upsample::backward(dy, input, e.accumulate, dx);
            }
        }
    }

    pub(super) fn dropout_layer(&mut self, layer: &Layer, p: f32) {
        let (e, rank) = (self.ends(layer), self.communicator.rank());
        let key = DropoutKey { seed: self.seed, pass: self.pass, layer: layer.i };
        match layer.pass {
            Pass::Forward => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                elementwise::dropout(key, self.step, rank, p, x, false, y);
            }
            Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                y.copy_from_slice(x);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([dy], [dx]) = self.arena.views([e.dy], [e.dx]);
                elementwise::dropout(key, self.step, rank, p, dy, e.accumulate, dx);
            }
        }
    }

    pub(super) fn l2_normalise_layer(&mut self, layer: &Layer) {
        let (len, e) = (layer.input().len(), self.ends(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                normalise::forward(x, len, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([x, y, dy], [dx]) = self.arena.views([e.x, e.y, e.dy], [e.dx]);
                normalise::backward(x, y, dy, len, e.accumulate, dx);
            }
        }
    }

    pub(super) fn channels_layer(&mut self, layer: &Layer, first: isize) {
        let e = self.ends(layer);
        let [from, to] = [layer.input(), layer.node.shape].map(|s| s.channels);
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                elementwise::channels(x, [from, to], first, false, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([dy], [dx]) = self.arena.views([e.dy], [e.dx]);
                elementwise::channels(dy, [to, from], -first, e.accumulate, dx);
            }
        }
    }

    pub(super) fn lab_layer(&mut self, layer: &Layer) {
        let e = self.ends(layer);
        let p = &self.parameters;
        let statistic = |k: usize| -> [f32; 3] {
            let values = &p.statistics[p.range(layer.node.parameters[k])];
            std::array::from_fn(|c| values[c])
        };
        let colours = colour::Normalised { mean: statistic(0), std: statistic(1) };
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                colours.to_lab(x, y);
            }
            Pass::Backward if e.skip => {}
            Pass::Backward => {
                let ([x, dy], [dx]) = self.arena.views([e.x, e.dy], [e.dx]);
                colours.lab_backward(x, dy, e.accumulate, dx);
            }
        }
    }
}
