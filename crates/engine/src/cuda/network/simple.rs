//! Layers without weights: values go in, values come out, and gradients go back.

use super::State;
use super::walk::Ends;
use crate::ops::{CudaAt, Layer as _, layer};
use crate::walk::{Layer, Pass};
use crate::{DropoutKey, GradientWrite, Op, Result};

impl State {
    pub(super) fn simple_layer(&self, layer: &Layer) -> Result<()> {
        let (e, backward) = (self.ends(layer), layer.pass == Pass::Backward);
        layer!(
            layer.node.op,
            op => match backward {
                false => op.cuda(&self.place(layer, &e), e.x, e.y),
                true if e.skip => Ok(()),
                true => {
                    let of = [e.x, e.y, e.dy];
                    op.cuda_backward(&self.place(layer, &e), of, e.accumulate, e.dx)
                }
            },
            else match layer.node.op {
                Op::Add => self.add_layer(layer, &e),
                _ => Ok(()),
            }
        )
    }

    fn place(&self, layer: &Layer, e: &Ends) -> CudaAt<'_> {
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

    fn add_layer(&self, layer: &Layer, e: &Ends) -> Result<()> {
        let (k, channels) = (self.kernels(), layer.node.shape.channels);
        if layer.pass != Pass::Backward {
            return k.finish(e.x, 0, e.second, false, channels, e.len, e.y);
        }
        let writes = &self.training.writes[layer.i];
        for (input, write) in layer.node.inputs.iter().zip(writes).rev() {
            if *write != GradientWrite::Skip {
                let accumulate = *write == GradientWrite::Accumulate;
                k.pass_gradient(0, e.dy, accumulate, e.len, self.gradient(input.index()))?;
            }
        }
        Ok(())
    }
}
