//! Inference, layer by layer: running statistics, no dropout, nothing saved.
//!
//! Always over a whole batch: what a smaller one leaves of the pictures before is computed too and read by nobody, since
//! no layer mixes pictures here.

use cudarc::driver::CudaSlice;

use super::{State, bias_parameter};
use crate::cuda::failed;
use crate::cuda::launch::Applied;
use crate::{Graph, Node, NodeId, Norm, Op, Result};

impl State {
    pub(super) fn infer_pass(&self, graph: &Graph) -> Result<()> {
        for (i, node) in graph.nodes().iter().enumerate().skip(1) {
            self.infer(i, node, graph)?;
        }
        Ok(())
    }

    fn infer(&self, i: usize, node: &Node, graph: &Graph) -> Result<()> {
        let k = self.kernels();
        let value = |x: NodeId| self.output_in(&self.inference, x.index());
        let (x, y) = (value(node.inputs[0]), value(NodeId(i)));
        let second = node.inputs.get(1).map_or(0, |r| value(*r));
        let input = graph.shape(node.inputs[0]);
        let (batch, channels) = (self.batch(), node.shape.channels);
        let len = batch * node.shape.len();
        match node.op {
            Op::Input => Ok(()),
            Op::Conv { norm, relu, .. } => {
                self.infer_convolution(i, node, x, y)?;
                let bias = bias_parameter(node).map_or(0, |b| self.parameters.value(b));
                let Some(norm) = norm else {
                    return match bias != 0 || second != 0 || relu {
                        true => k.finish(y, bias, second, relu, channels, len, y),
                        false => Ok(()),
                    };
                };
                if bias != 0 {
                    k.finish(y, bias, 0, false, channels, len, y)?;
                }
                self.infer_norm(i, node, norm, [y, second, y], relu)
            }
            Op::Linear { .. } => {
                self.infer_convolution(i, node, x, y)?;
                match bias_parameter(node) {
                    Some(b) => {
                        let bias = self.parameters.value(b);
                        k.finish(y, bias, 0, false, channels, len, y)
                    }
                    None => Ok(()),
                }
            }
            Op::BatchNorm(norm) => self.infer_norm(i, node, norm, [x, 0, y], false),
            Op::Relu => k.finish(x, 0, 0, true, channels, len, y),
            Op::Add => k.finish(x, 0, second, false, channels, len, y),
            Op::MaxPool(window) => k.max_pool(x, [input, node.shape], window, batch, y),
            Op::GlobalAvgPool => k.global_average(x, input, batch, y),
            Op::Dropout(_) => k.finish(x, 0, 0, false, channels, len, y),
            Op::L2Normalise => {
                let wide = self.wide_output(i, graph);
                k.l2_normalise(x, batch, input.len(), y, wide)
            }
        }
    }

    fn infer_norm(
        &self,
        i: usize,
        node: &Node,
        norm: Norm,
        [x, residual, y]: [u64; 3],
        relu: bool,
    ) -> Result<()> {
        let applied = Applied {
            x,
            residual,
            relu,
            y,
        };
        let (r, t) = (self.reduction(node), self.norm_tensors(i, node));
        self.kernels().apply(&r, norm, &t, None, &applied)
    }

    fn infer_convolution(&self, i: usize, node: &Node, x: u64, y: u64) -> Result<()> {
        let convolution = self.convolutions[i].as_ref();
        let convolution = convolution.expect("a convolution was prepared");
        let w = self.parameters.matrix(node.parameters[0]);
        convolution.forward(&self.lane, self.workspace(), [x, w], y)
    }

    /// The result of an inference, as much of it as was asked for.
    pub(super) fn read_inferred(&self, graph: &Graph, output: &mut [f32]) -> Result<()> {
        let node = graph.output_node();
        if !matches!(graph.node(node).op, Op::L2Normalise) {
            let from = self.at(&self.inference.value[node.index()]);
            let to = self.part_of(&self.output);
            self.kernels().widen(from, output.len(), to)?;
        }
        let all: &CudaSlice<f32> = self.output.memory()?;
        let view = all.slice(..output.len());
        let read = self.cuda.stream().memcpy_dtoh(&view, output);
        read.map_err(|e| failed("reading features", e))
    }
}
