//! Inference, layer by layer: running statistics, no dropout, nothing saved.

use rayon::prelude::*;

use super::{State, bias_parameter, has_norm, max_pool, norm_parameters};
use crate::cpu::{batch_norm, elementwise, normalise, pool};
use crate::{Graph, Node, NodeId, Norm, Op};

impl State {
    pub(super) fn infer(&mut self, i: usize, node: &Node, graph: &Graph, count: usize) {
        let value = |x: NodeId| self.inference.value[x.index()].head(count * graph.shape(x).len());
        let (x, y) = (value(node.inputs[0]), value(NodeId(i)));
        let (arch, input) = (self.arch, graph.shape(node.inputs[0]));
        let second = node.inputs.get(1).map_or(0..0, |r| value(*r));
        if let Some(norm) = has_norm(&node.op) {
            self.running_scale_and_shift(node, norm);
        }
        let channels = node.shape.channels;
        let (scale, shift) = self.scratch.channels[..2 * channels].split_at(channels);
        let ([x, r], [y]) = self.arena.views([x, second], [y]);
        match node.op {
            Op::Input => {}
            Op::Conv { .. } | Op::Linear { .. } => {
                let conv = self.convs[i].as_ref().expect("a convolution was prepared");
                let (norm, relu) = match node.op {
                    Op::Conv { norm, relu, .. } => (norm.is_some(), relu),
                    _ => (false, false),
                };
                let weights = self.parameters.weight(node.parameters[0]);
                conv.pack_forward(arch, weights, &mut self.scratch.packed);
                let packed = &self.scratch.packed;
                let bias = bias_parameter(node).map(|b| self.parameters.weight(b));
                let len = conv.task_len();
                y.par_chunks_mut(len).enumerate().for_each(|(task, y)| {
                    conv.forward_task(arch, x, packed, task, y);
                    let r = (!r.is_empty()).then(|| &r[task * len..][..y.len()]);
                    if norm {
                        batch_norm::apply_in_place(arch, scale, shift, r, relu, y);
                    } else {
                        elementwise::finish_plain(arch, bias, r, relu, channels, y);
                    }
                });
            }
            Op::BatchNorm(_) => batch_norm::apply(arch, x, scale, shift, None, false, y),
            Op::Relu => elementwise::relu(arch, x, y),
            Op::Add => elementwise::add(arch, x, r, y),
            Op::MaxPool(window) => max_pool(input, node.shape, window).forward(x, y),
            Op::GlobalAvgPool => pool::global_average(x, input, y),
            Op::Dropout(_) => y.copy_from_slice(x),
            Op::L2Normalise => normalise::forward(x, input.len(), y),
        }
    }

    /// The running statistics as scale and shift; a convolution's bias goes into the shift.
    fn running_scale_and_shift(&mut self, node: &Node, norm: Norm) {
        let channels = node.shape.channels;
        let first = norm_parameters(node);
        let p = &self.parameters;
        let (gamma, beta) = (p.weight(first), p.weight(first + 1));
        let mean = &p.statistics[p.range(first + 2)];
        let variance = &p.statistics[p.range(first + 3)];
        let (scale, shift) = self.scratch.channels[..2 * channels].split_at_mut(channels);
        let inverse_std = |c: usize| 1.0 / (variance[c] + norm.epsilon).sqrt();
        batch_norm::scale_and_shift(gamma, beta, mean, inverse_std, scale, shift);
        if let Some(bias) = bias_parameter(node) {
            for ((t, s), b) in shift.iter_mut().zip(scale).zip(p.weight(bias)) {
                *t += *s * b;
            }
        }
    }
}
