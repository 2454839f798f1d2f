//! Layers without weights: values go in, values come out, and gradients go back.

use super::State;
use crate::cuda::launch::Sliding;
use crate::walk::{Layer, Pass};
use crate::{Activation, DropoutKey, GradientWrite, Result, Window};

impl State {
    pub(super) fn relu_layer(&self, layer: &Layer) -> Result<()> {
        let (k, e) = (self.kernels(), self.ends(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                k.finish(e.x, 0, 0, true, layer.node.shape.channels, e.len, e.y)
            }
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => k.pass_gradient(e.y, e.dy, e.accumulate, e.len, e.dx),
        }
    }

    pub(super) fn activation_layer(&self, layer: &Layer, f: Activation) -> Result<()> {
        let (k, e) = (self.kernels(), self.ends(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => k.activation(f, e.x, e.len, e.y),
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => k.activation_backward(f, [e.y, e.dy], e.accumulate, e.len, e.dx),
        }
    }

    pub(super) fn add_layer(&self, layer: &Layer) -> Result<()> {
        let (k, e) = (self.kernels(), self.ends(layer));
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let channels = layer.node.shape.channels;
                k.finish(e.x, 0, e.second, false, channels, e.len, e.y)
            }
            Pass::Backward => {
                let writes = &self.training.writes[layer.i];
                for (input, write) in layer.node.inputs.iter().zip(writes).rev() {
                    if *write != GradientWrite::Skip {
                        let accumulate = *write == GradientWrite::Accumulate;
                        let dx = self.gradient(input.index());
                        k.pass_gradient(0, e.dy, accumulate, e.len, dx)?;
                    }
                }
                Ok(())
            }
        }
    }

    pub(super) fn max_pool_layer(&self, layer: &Layer, window: Window) -> Result<()> {
        let (k, e) = (self.kernels(), self.ends(layer));
        let (input, output, batch) = (layer.input(), layer.node.shape, self.batch());
        let of = &Sliding { input, output, window, batch };
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => k.max_pool(e.x, of, e.y),
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => k.max_pool_backward([e.x, e.y, e.dy], of, e.accumulate, e.dx),
        }
    }

    pub(super) fn global_avg_pool_layer(&self, layer: &Layer) -> Result<()> {
        let (k, e, batch) = (self.kernels(), self.ends(layer), self.batch());
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => k.global_average(e.x, layer.input(), batch, e.y),
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => {
                k.global_average_backward(e.dy, layer.input(), batch, e.accumulate, e.dx)
            }
        }
    }

    pub(super) fn upsample_layer(&self, layer: &Layer) -> Result<()> {
        let (k, e, batch) = (self.kernels(), self.ends(layer), self.batch());
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => k.upsample(e.x, layer.input(), batch, e.y),
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => k.upsample_backward(e.dy, layer.input(), batch, e.accumulate, e.dx),
        }
    }

    pub(super) fn dropout_layer(&self, layer: &Layer, p: f32) -> Result<()> {
        let (k, e) = (self.kernels(), self.ends(layer));
        let key = DropoutKey { seed: self.seed, pass: self.pass, layer: layer.i };
        let rank = self.carrier.as_ref().map_or(0, |c| c.nccl.rank());
        let draw = (self.step, rank);
        match layer.pass {
            Pass::Forward => k.dropout(e.x, key, draw, p, false, e.len, e.y),
            Pass::Infer(_) => {
                let channels = layer.node.shape.channels;
                k.finish(e.x, 0, 0, false, channels, e.len, e.y)
            }
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => k.dropout(e.dy, key, draw, p, e.accumulate, e.len, e.dx),
        }
    }

    pub(super) fn l2_normalise_layer(&self, layer: &Layer) -> Result<()> {
        let (k, e, batch) = (self.kernels(), self.ends(layer), self.batch());
        let dim = layer.input().len();
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => {
                let wide = self.wide_output(layer.i, layer.graph);
                k.l2_normalise(e.x, batch, dim, e.y, wide)
            }
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => {
                let wide = match self.takes_wide_gradient(layer.graph, layer.i) {
                    true => self.part_of(&self.output_gradient),
                    false => 0,
                };
                k.l2_normalise_backward(e.x, [e.dy, wide], batch, dim, e.accumulate, e.dx)
            }
        }
    }

    pub(super) fn channels_layer(&self, layer: &Layer, first: isize) -> Result<()> {
        let (k, e) = (self.kernels(), self.ends(layer));
        let (input, output) = (layer.input(), layer.node.shape);
        let [from, to] = [input, output].map(|s| s.channels);
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => k.channels(e.x, [from, to], first, false, e.len, e.y),
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => {
                let len = self.batch() * input.len();
                k.channels(e.dy, [to, from], -first, e.accumulate, len, e.dx)
            }
        }
    }

    pub(super) fn lab_layer(&self, layer: &Layer) -> Result<()> {
        let (k, e) = (self.kernels(), self.ends(layer));
        let statistic = |k: usize| self.parameters.value(layer.node.parameters[k]);
        let by = [statistic(0), statistic(1)];
        match layer.pass {
            Pass::Forward | Pass::Infer(_) => k.lab(e.x, by, e.len / 3, e.y),
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => k.lab_backward([e.x, e.dy], by, e.accumulate, e.len / 3, e.dx),
        }
    }
}
