//! The gradients, from the last layer to the first.

use super::{State, bias_parameter, max_pool, norm_parameters};
use crate::cpu::batch_norm::{self, Saved};
use crate::cpu::{elementwise, normalise, pool};
use crate::{GradientWrite, Graph, Node, Op};

impl State {
    pub(super) fn backward(&mut self, i: usize, node: &Node, graph: &Graph) {
        let dy = self.training.gradient[i].range();
        if dy.is_empty() {
            return;
        }
        let write = self.training.writes[i][0];
        let (arch, input) = (self.arch, graph.shape(node.inputs[0]));
        let accumulate = write == GradientWrite::Accumulate;
        let x = self.training.value[node.inputs[0].index()].range();
        let y = self.training.value[i].range();
        let dx = self.training.gradient[node.inputs[0].index()].range();
        let skip = write == GradientWrite::Skip;
        match node.op {
            Op::Input => {}
            Op::Conv { norm, relu, .. } => {
                match norm {
                    Some(_) => {
                        let saved = self.training.saved[i].range();
                        self.norm_backward(i, node, saved, relu, None);
                    }
                    None => self.plain_backward(i, node, relu),
                }
                self.conv_backward(i, node);
            }
            Op::Linear { .. } => {
                self.plain_backward(i, node, false);
                self.conv_backward(i, node);
            }
            Op::BatchNorm(_) => self.norm_backward(i, node, x, false, Some((dx, write))),
            Op::Relu if !skip => {
                let ([y, dy], [dx]) = self.arena.views([y, dy], [dx]);
                elementwise::pass_gradient(arch, Some(y), dy, accumulate, dx);
            }
            Op::Add => {
                for (input, write) in node.inputs.iter().zip(&self.training.writes[i]).rev() {
                    if *write == GradientWrite::Skip {
                        continue;
                    }
                    let dx = self.training.gradient[input.index()].range();
                    let ([dy], [dx]) = self.arena.views([dy.clone()], [dx]);
                    let accumulate = *write == GradientWrite::Accumulate;
                    elementwise::pass_gradient(arch, None, dy, accumulate, dx);
                }
            }
            Op::MaxPool(window) if !skip => {
                let ([x, y, dy], [dx]) = self.arena.views([x, y, dy], [dx]);
                max_pool(input, node.shape, window).backward(x, y, dy, accumulate, dx);
            }
            Op::GlobalAvgPool if !skip => {
                let ([dy], [dx]) = self.arena.views([dy], [dx]);
                pool::global_average_backward(dy, input, accumulate, dx);
            }
            Op::Dropout(p) if !skip => {
                let ([dy], [dx]) = self.arena.views([dy], [dx]);
                elementwise::dropout(i, self.step, p, dy, accumulate, dx);
            }
            Op::L2Normalise if !skip => {
                let ([x, y, dy], [dx]) = self.arena.views([x, y, dy], [dx]);
                normalise::backward(x, y, dy, input.len(), accumulate, dx);
            }
            _ => {}
        }
    }

    /// Through ReLU, residual add and batch norm: the gradient of the layer's output becomes, in place, that of the
    /// values before the norm. A norm that is a layer of its own passes it on to `out`.
    fn norm_backward(
        &mut self,
        i: usize,
        node: &Node,
        before: std::ops::Range<usize>,
        relu: bool,
        out: Option<(std::ops::Range<usize>, GradientWrite)>,
    ) {
        let (arch, channels) = (self.arch, node.shape.channels);
        let (mean, inverse_std) = self.batch_statistics[i].split_at(channels);
        let residual = node
            .inputs
            .get(1)
            .map(|r| self.training.gradient[r.index()].range());
        let write = self.training.writes[i].get(1).copied();
        let wants_residual = write.is_some_and(|w| w != GradientWrite::Skip);
        // Without ReLU the output is not kept for the backward pass, and its place may hold something else by now.
        let output = if relu {
            self.training.value[i].range()
        } else {
            0..0
        };
        let ([c, y], [dy, dr]) = self.arena.views(
            [before, output],
            [
                self.training.gradient[i].range(),
                residual.filter(|_| wants_residual).unwrap_or(0..0),
            ],
        );
        let saved = Saved {
            c,
            y: relu.then_some(y),
            mean,
            inverse_std,
        };
        let first = norm_parameters(node);
        let mut gradients = std::mem::take(&mut self.parameters.gradients);
        let (dgamma, dbeta) = self.parameters.pair(&mut gradients, first);
        batch_norm::backward_sums(arch, &saved, dy, &mut self.scratch.partials, dgamma, dbeta);
        let accumulate = write == Some(GradientWrite::Accumulate);
        let gamma = self.parameters.weight(first);
        batch_norm::backward_values(
            arch,
            &saved,
            gamma,
            dgamma,
            dbeta,
            &mut self.scratch.channels,
            wants_residual.then_some((dr, accumulate)),
            dy,
        );
        self.parameters.gradients = gradients;
        if let Some((dx, write)) = out.filter(|(_, w)| *w != GradientWrite::Skip) {
            let dy = self.training.gradient[i].range();
            let ([dy], [dx]) = self.arena.views([dy], [dx]);
            let accumulate = write == GradientWrite::Accumulate;
            elementwise::pass_gradient(arch, None, dy, accumulate, dx);
        }
    }

    /// Through ReLU and residual add of a convolution without norm, in place.
    fn plain_backward(&mut self, i: usize, node: &Node, relu: bool) {
        let dy = self.training.gradient[i].range();
        if relu {
            let ([y], [dy]) = self
                .arena
                .views([self.training.value[i].range()], [dy.clone()]);
            elementwise::mask_in_place(self.arch, y, dy);
        }
        let residual = node.inputs.get(1).zip(self.training.writes[i].get(1));
        if let Some((r, write)) = residual.filter(|(_, w)| **w != GradientWrite::Skip) {
            let dr = self.training.gradient[r.index()].range();
            let ([dy], [dr]) = self.arena.views([dy], [dr]);
            let accumulate = *write == GradientWrite::Accumulate;
            elementwise::pass_gradient(self.arch, None, dy, accumulate, dr);
        }
    }

    /// From the gradient of the convolution's own output to those of its bias, weights and input.
    fn conv_backward(&mut self, i: usize, node: &Node) {
        let conv = self.convs[i].as_ref().expect("a convolution was prepared");
        let arch = self.arch;
        let x = node.inputs[0].index();
        let write = self.training.writes[i][0];
        let dx = match write {
            GradientWrite::Skip => 0..0,
            _ => self.training.gradient[x].range(),
        };
        let ([x, dy], [dx]) = self.arena.views(
            [
                self.training.value[x].range(),
                self.training.gradient[i].range(),
            ],
            [dx],
        );
        if let Some(bias) = bias_parameter(node) {
            let dbias = self.parameters.gradient(bias);
            elementwise::bias_gradient(dy, node.shape.channels, dbias);
        }
        let dw = self.parameters.gradient(node.parameters[0]);
        conv.weight_gradient(arch, x, dy, &mut self.scratch.partials, dw);
        if write != GradientWrite::Skip {
            let weights = self.parameters.weight(node.parameters[0]);
            conv.pack_backward(arch, weights, &mut self.scratch.packed);
            let accumulate = write == GradientWrite::Accumulate;
            conv.input_gradient(arch, dy, &self.scratch.packed, accumulate, dx);
        }
    }
}
