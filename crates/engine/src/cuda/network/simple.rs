//! Layers without weights: values go in, values come out, and gradients go back.

use super::State;
use crate::cuda::launch::Sliding;
use crate::walk::{Layer, Pass};
use crate::{DropoutKey, GradientWrite, Op, Result};

impl State {
    pub(super) fn simple_layer(&self, layer: &Layer) -> Result<()> {
        let (k, e, batch) = (self.kernels(), self.ends(layer), self.batch());
        let (input, output) = (layer.input(), layer.node.shape);
        let (len, add) = (e.len, e.accumulate);
        let backward = layer.pass == Pass::Backward;
        if backward && e.skip && !matches!(layer.node.op, Op::Add) {
            return Ok(());
        }
        match (layer.node.op, backward) {
            // In files of their own.
            (Op::Input | Op::Conv { .. } | Op::Linear { .. } | Op::BatchNorm(_), _) => Ok(()),
            (Op::Relu, false) => k.finish(e.x, 0, 0, true, output.channels, len, e.y),
            (Op::Relu, true) => k.pass_gradient(e.y, e.dy, add, len, e.dx),
            (Op::Activation(f), false) => k.activation(f, e.x, len, e.y),
            (Op::Activation(f), true) => k.activation_backward(f, [e.y, e.dy], add, len, e.dx),
            (Op::Add, false) => k.finish(e.x, 0, e.second, false, output.channels, len, e.y),
            (Op::Add, true) => {
                let writes = &self.training.writes[layer.i];
                for (input, write) in layer.node.inputs.iter().zip(writes).rev() {
                    if *write != GradientWrite::Skip {
                        let accumulate = *write == GradientWrite::Accumulate;
                        let dx = self.gradient(input.index());
                        k.pass_gradient(0, e.dy, accumulate, len, dx)?;
                    }
                }
                Ok(())
            }
            (Op::MaxPool(window), _) => {
                let of = &Sliding { input, output, window, batch };
                match backward {
                    false => k.max_pool(e.x, of, e.y),
                    true => k.max_pool_backward([e.x, e.y, e.dy], of, add, e.dx),
                }
            }
            (Op::GlobalAvgPool, false) => k.global_average(e.x, input, batch, e.y),
            (Op::GlobalAvgPool, true) => k.global_average_backward(e.dy, input, batch, add, e.dx),
            (Op::Upsample, false) => k.upsample(e.x, input, batch, e.y),
            (Op::Upsample, true) => k.upsample_backward(e.dy, input, batch, add, e.dx),
            (Op::Dropout(p), _) => {
                let key = DropoutKey { seed: self.seed, pass: self.pass, layer: layer.i };
                let draw = (self.step, self.carrier.as_ref().map_or(0, |c| c.nccl.rank()));
                match layer.pass {
                    Pass::Forward => k.dropout(e.x, key, draw, p, false, len, e.y),
                    Pass::Infer(_) => k.finish(e.x, 0, 0, false, output.channels, len, e.y),
                    Pass::Backward => k.dropout(e.dy, key, draw, p, add, len, e.dx),
                }
            }
            (Op::L2Normalise, false) => {
                let wide = self.wide_output(layer.i, layer.graph);
                k.l2_normalise(e.x, batch, input.len(), e.y, wide)
            }
            (Op::L2Normalise, true) => {
                let wide = match self.takes_wide_gradient(layer.graph, layer.i) {
                    true => self.part_of(&self.output_gradient),
                    false => 0,
                };
                k.l2_normalise_backward(e.x, [e.dy, wide], batch, input.len(), add, e.dx)
            }
            (Op::Channels { first }, false) => {
                k.channels(e.x, [input.channels, output.channels], first, false, len, e.y)
            }
            (Op::Channels { first }, true) => {
                let (turned, len) = ([output.channels, input.channels], batch * input.len());
                k.channels(e.dy, turned, -first, add, len, e.dx)
            }
            (Op::Lab, _) => {
                let statistic = |k: usize| self.parameters.value(layer.node.parameters[k]);
                let by = [statistic(0), statistic(1)];
                match backward {
                    false => k.lab(e.x, by, len / 3, e.y),
                    true => k.lab_backward([e.x, e.dy], by, add, len / 3, e.dx),
                }
            }
        }
    }
}
