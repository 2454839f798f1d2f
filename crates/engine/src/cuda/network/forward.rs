//! A training pass forwards, layer by layer. Where two convolutions in a row read the same, as in a residual block with a
//! shortcut, the second goes beside the first: alone, it does not fill the chip.

use super::{State, bias_parameter};
use crate::cuda::lane::{Beside, Lane};
use crate::cuda::launch::Applied;
use crate::cuda::profile::Part;
use crate::{Graph, Node, Norm, Op, Result};

impl State {
    pub(super) fn forward_pass(&self, graph: &Graph) -> Result<()> {
        let mut beside = Beside::new(&self.lane, &self.side);
        let nodes = graph.nodes();
        for (i, node) in nodes.iter().enumerate().skip(1) {
            if self.is_beside(i + 1, graph) {
                let workspace = self.workspaces[1].pointer(&self.cuda);
                beside.run(i + 1, |lane| {
                    self.convolve((lane, workspace), i + 1, &nodes[i + 1], false, 0)
                })?;
            }
            if self.is_beside(i, graph) {
                beside.wait_for(i)?;
            }
            self.forward(i, node, graph)?;
        }
        self.part(Part::Rest, || self.take_output(graph))
    }

    /// Whether a layer is a convolution with a norm that reads what the one before it reads, and nothing else. Its place in
    /// memory is free a layer early: what the one before it reads and writes is needed longer, if it has a gradient.
    fn is_beside(&self, i: usize, graph: &Graph) -> bool {
        let normalised = |n: &Node| matches!(n.op, Op::Conv { norm: Some(_), .. });
        let Some([before, node]) = i.checked_sub(1).and_then(|b| graph.nodes().get(b..=i)) else {
            return false;
        };
        let both = normalised(before) && normalised(node) && before.inputs == node.inputs;
        let kept = self.gradient(i - 1) != 0;
        both && kept && self.only.is_none() && !self.is_beside(i - 1, graph)
    }

    fn forward(&self, i: usize, node: &Node, graph: &Graph) -> Result<()> {
        let x = self.value(node.inputs[0].index());
        let second = node.inputs.get(1).map_or(0, |r| self.value(r.index()));
        let here = (&*self.lane, self.workspace());
        match node.op {
            Op::Conv {
                norm: Some(norm),
                relu,
                ..
            } => {
                if !self.is_beside(i, graph) {
                    self.part(Part::Forward, || self.convolve(here, i, node, false, 0))?;
                }
                self.part(Part::NormForward, || {
                    self.normalise(i, node, norm, self.before_norm(i, node), second, relu)
                })
            }
            Op::Conv { relu, .. } => {
                self.part(Part::Forward, || self.convolve(here, i, node, relu, second))
            }
            Op::Linear { .. } => {
                self.part(Part::Forward, || self.convolve(here, i, node, false, 0))
            }
            Op::BatchNorm(norm) => self.part(Part::NormForward, || {
                self.normalise(i, node, norm, x, 0, false)
            }),
            _ => self.part(Part::Rest, || self.forward_rest(i, node, graph)),
        }
    }

    fn forward_rest(&self, i: usize, node: &Node, graph: &Graph) -> Result<()> {
        let k = self.kernels();
        let (x, y) = (self.value(node.inputs[0].index()), self.value(i));
        let second = node.inputs.get(1).map_or(0, |r| self.value(r.index()));
        let input = graph.shape(node.inputs[0]);
        let (batch, channels) = (self.batch(), node.shape.channels);
        let len = batch * node.shape.len();
        match node.op {
            Op::Input | Op::Conv { .. } | Op::Linear { .. } | Op::BatchNorm(_) => Ok(()),
            Op::Relu => k.finish(x, 0, 0, true, channels, len, y),
            Op::Add => k.finish(x, 0, second, false, channels, len, y),
            Op::MaxPool(window) => k.max_pool(x, [input, node.shape], window, batch, y),
            Op::GlobalAvgPool => k.global_average(x, input, batch, y),
            Op::Dropout(p) => {
                k.dropout(x, i, self.step, p, false, len, y)
            }
            Op::L2Normalise => {
                let wide = self.wide_output(i, graph);
                k.l2_normalise(x, batch, input.len(), y, wide)
            }
        }
    }

    /// The convolution, then bias, residual and ReLU where there are any, on a lane with its working memory.
    fn convolve(
        &self,
        (lane, workspace): (&Lane, u64),
        i: usize,
        node: &Node,
        relu: bool,
        residual: u64,
    ) -> Result<()> {
        let convolution = self.convolutions[i].as_ref();
        let convolution = convolution.expect("a convolution was prepared");
        let x = self.value(node.inputs[0].index());
        let w = self.parameters.matrix(node.parameters[0]);
        let y = self.before_norm(i, node);
        convolution.forward(lane, workspace, [x, w], y)?;
        let bias = bias_parameter(node).map_or(0, |b| self.parameters.value(b));
        if bias == 0 && residual == 0 && !relu {
            return Ok(());
        }
        let (channels, len) = (node.shape.channels, self.batch() * node.shape.len());
        lane.kernels
            .finish(y, bias, residual, relu, channels, len, y)
    }

    fn normalise(
        &self,
        i: usize,
        node: &Node,
        norm: Norm,
        before: u64,
        residual: u64,
        relu: bool,
    ) -> Result<()> {
        let (k, t) = (self.kernels(), self.norm_tensors(i, node));
        let applied = Applied {
            x: before,
            residual,
            relu,
            y: self.value(i),
        };
        if let Some(cut) = &self.on_chip[i] {
            let meeting = self.meeting(i, node, false);
            return k.norm_forward_on_chip(cut, norm, &t, meeting, &applied, self.above(i));
        }
        let (r, s) = (self.reduction(node), self.sums());
        k.statistics(&r, before, &s)?;
        k.apply(&r, norm, &t, Some(&s), &applied)
    }

    /// The f32 output, for a layer that is the graph's result and can write it unrounded.
    pub(super) fn wide_output(&self, i: usize, graph: &Graph) -> u64 {
        match graph.output_node().index() == i {
            true => self.part_of(&self.output),
            false => 0,
        }
    }

    /// The result in f32, unless its layer has written it so itself.
    fn take_output(&self, graph: &Graph) -> Result<()> {
        let output = graph.output_node();
        if matches!(graph.node(output).op, Op::L2Normalise) {
            return Ok(());
        }
        let to = self.part_of(&self.output);
        let from = self.value(output.index());
        self.kernels().widen(from, self.output_len(), to)
    }
}
