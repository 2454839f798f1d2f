//! Convolutions with what is fused behind them, and linear layers, which are convolutions of 1×1.

use super::State;
use super::walk::Walk;
use crate::cuda::bound_stream::BoundStream;
use crate::cuda::convolution::Convolution;
use crate::cuda::profile::Part;
use crate::walk::{Layer, Pass};
use crate::{GradientWrite, Norm, Result};

impl Walk<'_> {
    pub(crate) fn conv_layer(
        &mut self,
        layer: &Layer,
        norm: Option<Norm>,
        relu: bool,
    ) -> Result<()> {
        let (state, i) = (self.state, layer.i);
        let here = (&*state.stream, state.workspace());
        let second = state.io(layer).second;
        match (layer.pass, norm) {
            (Pass::Forward, Some(norm)) => {
                if !state.is_beside(i, layer.graph) {
                    state.part(Part::Forward, || state.convolve(here, layer, false, 0))?;
                }
                state.part(Part::NormForward, || {
                    let before = state.before_norm(i, layer.node);
                    state.normalise(layer, norm, before, second, relu)
                })
            }
            (Pass::Forward, None) => {
                state.part(Part::Forward, || state.convolve(here, layer, relu, second))
            }
            (Pass::Backward, norm) => {
                state.part(Part::NormBackward, || match norm {
                    Some(norm) => {
                        let before = state.before_norm(i, layer.node);
                        state.norm_backward(layer, norm, before, relu)
                    }
                    None => state.plain_backward(layer, relu),
                })?;
                self.convolution_backward(layer)
            }
            (Pass::Infer(_), norm) => state.infer_convolution(layer, norm, relu),
        }
    }

    pub(crate) fn linear_layer(&mut self, layer: &Layer) -> Result<()> {
        let state = self.state;
        match layer.pass {
            Pass::Forward => {
                let here = (&*state.stream, state.workspace());
                state.part(Part::Forward, || state.convolve(here, layer, false, 0))
            }
            Pass::Backward => self.convolution_backward(layer),
            Pass::Infer(_) => state.infer_convolution(layer, None, false),
        }
    }

    /// From the gradient of the convolution's own output to those of its bias, weights and input.
    fn convolution_backward(&mut self, layer: &Layer) -> Result<()> {
        let (state, node) = (self.state, layer.node);
        let (convolution, e) = (state.convolution(layer), state.io(layer));
        let dw = state.parameters.matrix_gradient(node.parameters[0]);
        let workspace = state.workspaces[1].pointer(&state.cuda);
        let beside = &mut self.beside;
        state.part(Part::WeightGradient, || {
            beside.run(layer.i, |stream| {
                if let Some(bias) = node.bias_parameter() {
                    let (r, sums) = (state.reduction(node), state.parameters.gradient(bias));
                    stream.kernels.sums(&r, e.dy, &state.sums_beside(), sums)?;
                }
                convolution.weight_gradient(stream, workspace, [e.x, e.dy], dw)
            })
        })?;
        if e.skip {
            return Ok(());
        }
        let w = state.parameters.matrix(node.parameters[0]);
        state.part(Part::InputGradient, || {
            convolution.input_gradient(&state.stream, state.workspace(), [w, e.dy], e.dx)
        })
    }
}

impl State {
    fn convolution(&self, layer: &Layer) -> &Convolution {
        let convolution = self.convolutions[layer.i].as_ref();
        convolution.expect("a convolution was prepared")
    }

    /// The convolution, then bias, residual and ReLU where there are any, on a stream with its
    /// working memory.
    pub(super) fn convolve(
        &self,
        (stream, workspace): (&BoundStream, u64),
        layer: &Layer,
        relu: bool,
        residual: u64,
    ) -> Result<()> {
        let node = layer.node;
        let x = self.value(layer.from());
        let w = self.parameters.matrix(node.parameters[0]);
        let y = self.before_norm(layer.i, node);
        let convolution = self.convolution(layer);
        convolution.forward(stream, workspace, [x, w], y)?;
        let bias = node.bias_parameter().map_or(0, |b| self.parameters.value(b));
        if bias == 0 && residual == 0 && !relu {
            return Ok(());
        }
        let (channels, len) = (node.shape.channels, self.batch() * node.shape.len());
        stream.kernels.finish(y, bias, residual, relu, channels, len, y)
    }

    fn infer_convolution(&self, layer: &Layer, norm: Option<Norm>, relu: bool) -> Result<()> {
        let (k, node, e) = (self.kernels(), layer.node, self.io(layer));
        let w = self.parameters.matrix(node.parameters[0]);
        let convolution = self.convolution(layer);
        convolution.forward(&self.stream, self.workspace(), [e.x, w], e.y)?;
        let bias = node.bias_parameter().map_or(0, |b| self.parameters.value(b));
        let channels = node.shape.channels;
        let Some(norm) = norm else {
            return match bias != 0 || e.second != 0 || relu {
                true => k.finish(e.y, bias, e.second, relu, channels, e.len, e.y),
                false => Ok(()),
            };
        };
        if bias != 0 {
            k.finish(e.y, bias, 0, false, channels, e.len, e.y)?;
        }
        self.infer_norm(layer, norm, [e.y, e.second, e.y], relu)
    }

    /// Through ReLU and residual add of a convolution without norm, in place.
    fn plain_backward(&self, layer: &Layer, relu: bool) -> Result<()> {
        let e = self.io(layer);
        if relu {
            self.kernels().pass_gradient(e.y, e.dy, false, e.len, e.dy)?;
        }
        match self.residual_gradient(layer) {
            (0, _) => Ok(()),
            (dr, accumulate) => self.kernels().pass_gradient(0, e.dy, accumulate, e.len, dr),
        }
    }

    /// Where the second input's gradient goes, 0 if nobody wants it, and whether it is added.
    pub(super) fn residual_gradient(&self, layer: &Layer) -> (u64, bool) {
        match (layer.second(), self.training.writes[layer.i].get(1)) {
            (Some(r), Some(write)) if *write != GradientWrite::Skip => {
                (self.gradient(r.index()), *write == GradientWrite::Accumulate)
            }
            _ => (0, false),
        }
    }
}
