//! A training pass forwards, layer by layer.

use rayon::prelude::*;

use super::{State, bias_parameter, max_pool, norm_parameters};
use crate::cpu::{batch_norm, elementwise, normalise, pool};
use crate::{Graph, Node, NodeId, Norm, Op};

impl State {
    pub(super) fn forward(&mut self, i: usize, node: &Node, graph: &Graph) {
        let value = |x: NodeId| self.training.value[x.index()].range();
        let (x, y) = (value(node.inputs[0]), self.training.value[i].range());
        let second = node.inputs.get(1).map(|r| value(*r));
        let (arch, input) = (self.arch, graph.shape(node.inputs[0]));
        match node.op {
            Op::Input => {}
            Op::Conv {
                norm: Some(norm),
                relu,
                ..
            } => {
                self.conv_forward(i, node, true);
                self.finish_statistics(i, node, norm, true);
                self.norm_apply(i, node, self.training.saved[i].range(), second, relu);
            }
            Op::Conv { norm: None, .. } | Op::Linear { .. } => self.conv_forward(i, node, false),
            Op::BatchNorm(norm) => {
                let partials = &mut self.scratch.partials;
                batch_norm::statistics(arch, self.arena.read(x.clone()), input.channels, partials);
                self.finish_statistics(i, node, norm, false);
                self.norm_apply(i, node, x, None, false);
            }
            Op::Relu => {
                let ([x], [y]) = self.arena.views([x], [y]);
                elementwise::relu(arch, x, y);
            }
            Op::Add => {
                let ([a, b], [y]) = self.arena.views([x, second.unwrap_or(0..0)], [y]);
                elementwise::add(arch, a, b, y);
            }
            Op::MaxPool(window) => {
                let ([x], [y]) = self.arena.views([x], [y]);
                max_pool(input, node.shape, window).forward(x, y);
            }
            Op::GlobalAvgPool => {
                let ([x], [y]) = self.arena.views([x], [y]);
                pool::global_average(x, input, y);
            }
            Op::Dropout(p) => {
                let ([x], [y]) = self.arena.views([x], [y]);
                elementwise::dropout(i, self.step, p, x, false, y);
            }
            Op::L2Normalise => {
                let ([x], [y]) = self.arena.views([x], [y]);
                normalise::forward(x, input.len(), y);
            }
        }
    }

    /// The convolution of a training pass: with a norm to follow, its output goes to the saved buffer and each task
    /// takes its statistics while the values are in cache; without, bias, residual and ReLU are applied at once.
    fn conv_forward(&mut self, i: usize, node: &Node, norm: bool) {
        let conv = self.convs[i].as_ref().expect("a convolution was prepared");
        let (arch, channels) = (self.arch, node.shape.channels);
        let value = |x: NodeId| self.training.value[x.index()].range();
        let target = if norm {
            &self.training.saved[i]
        } else {
            &self.training.value[i]
        };
        let residual = node.inputs.get(1).map(|r| value(*r));
        let ([x, residual], [y]) = self.arena.views(
            [
                value(node.inputs[0]),
                residual.clone().filter(|_| !norm).unwrap_or(0..0),
            ],
            [target.range()],
        );
        let bias = bias_parameter(node).map(|b| self.parameters.weight(b));
        let weights = self.parameters.weight(node.parameters[0]);
        conv.pack_forward(arch, weights, &mut self.scratch.packed);
        let packed = &self.scratch.packed;
        let task_len = conv.task_len();
        let tasks = y.par_chunks_mut(task_len);
        if norm {
            let partials = self.scratch.partials.par_chunks_mut(2 * channels);
            tasks
                .zip(partials)
                .enumerate()
                .for_each(|(task, (y, out))| {
                    conv.forward_task(arch, x, packed, task, y);
                    if bias.is_some() {
                        elementwise::finish_plain(arch, bias, None, false, channels, y);
                    }
                    batch_norm::task_statistics(arch, y, out);
                });
            return;
        }
        let relu = matches!(node.op, Op::Conv { relu: true, .. });
        tasks.enumerate().for_each(|(task, y)| {
            conv.forward_task(arch, x, packed, task, y);
            let residual = (!residual.is_empty()).then(|| &residual[task * task_len..][..y.len()]);
            elementwise::finish_plain(arch, bias, residual, relu, channels, y);
        });
    }

    /// Merges the tasks' statistics, saves them for the backward pass and moves the running ones.
    fn finish_statistics(&mut self, i: usize, node: &Node, norm: Norm, of_conv: bool) {
        let channels = node.shape.channels;
        let rows = self.training.batch * node.shape.pixels();
        let task = match &self.convs[i] {
            Some(conv) if of_conv => conv.task_len(),
            _ => batch_norm::task_len(channels),
        };
        let (mean, variance) = self.batch_statistics[i].split_at_mut(channels);
        let tasks = (rows * channels).div_ceil(task);
        let partials = &self.scratch.partials[..tasks * 2 * channels];
        batch_norm::merge_statistics(partials, rows, task / channels, mean, variance);
        let running = norm_parameters(node) + 2;
        let mut statistics = std::mem::take(&mut self.parameters.statistics);
        let (running_mean, running_variance) = self.parameters.pair(&mut statistics, running);
        batch_norm::update_running(
            norm.momentum,
            rows,
            mean,
            variance,
            running_mean,
            running_variance,
        );
        self.parameters.statistics = statistics;
        for v in variance {
            *v = 1.0 / (*v + norm.epsilon).sqrt();
        }
    }

    fn norm_apply(
        &mut self,
        i: usize,
        node: &Node,
        before: std::ops::Range<usize>,
        residual: Option<std::ops::Range<usize>>,
        relu: bool,
    ) {
        let channels = node.shape.channels;
        let (mean, inverse_std) = self.batch_statistics[i].split_at(channels);
        let (scale, shift) = self.scratch.channels[..2 * channels].split_at_mut(channels);
        let first = norm_parameters(node);
        let (gamma, beta) = (
            self.parameters.weight(first),
            self.parameters.weight(first + 1),
        );
        batch_norm::scale_and_shift(gamma, beta, mean, |c| inverse_std[c], scale, shift);
        let has_residual = residual.is_some();
        let ([c, r], [y]) = self.arena.views(
            [before, residual.unwrap_or(0..0)],
            [self.training.value[i].range()],
        );
        batch_norm::apply(
            self.arch,
            c,
            scale,
            shift,
            has_residual.then_some(r),
            relu,
            y,
        );
    }
}
