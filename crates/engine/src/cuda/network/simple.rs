//! Layers without weights: values go in, values come out, and gradients go back.

use super::State;
use super::walk::Walk;
use crate::cuda::profile::Part;
use crate::ops::{CudaAt, Unary};
use crate::walk::{Layer, LayerIo, Pass};
use crate::{DropoutKey, GradientWrite, Result};

impl Walk<'_> {
    /// A layer of one input: what it gives, and what it does to its input's gradient, if that is
    /// wanted.
    pub(crate) fn unary_layer(&self, layer: &Layer, op: &impl Unary) -> Result<()> {
        let (state, e) = (self.state, self.state.io(layer));
        state.part(Part::Rest, || match layer.pass {
            Pass::Forward | Pass::Infer(_) => op.cuda(&state.place(layer, &e), e.x, e.y),
            Pass::Backward if e.skip => Ok(()),
            Pass::Backward => {
                let of = [e.x, e.y, e.dy];
                op.cuda_backward(&state.place(layer, &e), of, e.accumulate, e.dx)
            }
        })
    }

    pub(crate) fn add_layer(&self, layer: &Layer) -> Result<()> {
        let (state, e) = (self.state, self.state.io(layer));
        let (k, channels) = (state.kernels(), layer.node.shape.channels);
        state.part(Part::Rest, || {
            if layer.pass != Pass::Backward {
                return k.finish(e.x, 0, e.second, false, channels, e.len, e.y);
            }
            let writes = &state.training.writes[layer.i];
            for (input, write) in layer.node.inputs.iter().zip(writes).rev() {
                if *write != GradientWrite::Skip {
                    let accumulate = *write == GradientWrite::Accumulate;
                    k.pass_gradient(0, e.dy, accumulate, e.len, state.gradient(input.index()))?;
                }
            }
            Ok(())
        })
    }
}

impl State {
    fn place(&self, layer: &Layer, e: &LayerIo<u64>) -> CudaAt<'_> {
        let draws = || {
            let key = DropoutKey { seed: self.seed, pass: self.pass, layer: layer.i };
            (key, self.step, self.carrier.as_ref().map_or(0, |c| c.nccl.rank()))
        };
        let wide = match layer.pass {
            Pass::Forward | Pass::Infer(_) => self.wide_output(layer.i, layer.graph),
            Pass::Backward => match self.takes_wide_gradient(layer.graph, layer.i) {
                true => self.part_of(&self.output_gradient),
                false => 0,
            },
        };
        let mut statistics = [0; 2];
        for (own, parameter) in statistics.iter_mut().zip(&layer.node.parameters) {
            *own = self.parameters.value(*parameter);
        }
        CudaAt {
            kernels: self.kernels(),
            batch: self.batch(),
            input: layer.input(),
            output: layer.node.shape,
            len: e.len,
            draw: (!matches!(layer.pass, Pass::Infer(_))).then(draws),
            wide,
            statistics,
        }
    }
}
