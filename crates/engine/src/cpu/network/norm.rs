//! Batch norms, behind a convolution or on their own.

use std::ops::Range;

use super::State;
use crate::cpu::batch_norm::{self, Saved};
use crate::cpu::elementwise;
use crate::walk::{Layer, Pass};
use crate::{Communicator, GradientWrite, Node, Norm, Result};

impl State {
    pub(crate) fn batch_norm_layer(&mut self, layer: &Layer, norm: Norm) -> Result<()> {
        let (arch, e) = (self.arch, self.io(layer));
        let channels = layer.node.shape.channels;
        match layer.pass {
            Pass::Forward => {
                let partials = &mut self.scratch.partials;
                batch_norm::statistics(arch, self.arena.read(e.x.clone()), channels, partials);
                self.finish_statistics(layer, norm, false)?;
                self.norm_apply(layer, e.x, None, false);
            }
            Pass::Infer(_) => {
                self.running_scale_and_shift(layer.node, norm);
                let (scale, shift) = self.scratch.channels[..2 * channels].split_at(channels);
                let ([x], [y]) = self.arena.views([e.x], [e.y]);
                batch_norm::apply(arch, x, scale, shift, None, false, y);
            }
            Pass::Backward => {
                self.norm_backward(layer, e.x, false)?;
                if !e.skip {
                    let ([dy], [dx]) = self.arena.views([e.dy], [e.dx]);
                    elementwise::pass_gradient(arch, None, dy, e.accumulate, dx);
                }
            }
        }
        Ok(())
    }

    /// Processes whose rows a batch norm looks at.
    fn norm_ranks(&self) -> usize {
        if self.sync_norm { self.communicator.ranks() } else { 1 }
    }

    /// Merges the tasks' statistics, saves them for the backward pass and moves the running ones.
    pub(super) fn finish_statistics(
        &mut self,
        layer: &Layer,
        norm: Norm,
        of_conv: bool,
    ) -> Result<()> {
        let (i, node) = (layer.i, layer.node);
        let channels = node.shape.channels;
        let rows = self.training.batch * node.shape.pixels();
        let task = match &self.convs[i] {
            Some(conv) if of_conv => conv.task_len(),
            Some(_) | None => batch_norm::task_len(channels),
        };
        let ranks = self.norm_ranks();
        let (mean, variance) = self.batch_statistics[i].split_at_mut(channels);
        let tasks = (rows * channels).div_ceil(task);
        let partials = &self.scratch.partials[..tasks * 2 * channels];
        batch_norm::merge_statistics(partials, rows, task / channels, mean, variance);
        if ranks > 1 {
            sync_statistics(&self.communicator, rows, mean, variance)?;
        }
        let running = node.norm_parameters() + 2;
        let mut statistics = std::mem::take(&mut self.parameters.statistics);
        let (running_mean, running_variance) = self.parameters.pair(&mut statistics, running);
        batch_norm::update_running(
            norm.momentum,
            ranks * rows,
            mean,
            variance,
            running_mean,
            running_variance,
        );
        self.parameters.statistics = statistics;
        for v in variance {
            *v = 1.0 / (*v + norm.epsilon).sqrt();
        }
        Ok(())
    }

    /// Scale, shift, residual and ReLU.
    pub(super) fn norm_apply(
        &mut self,
        layer: &Layer,
        before: Range<usize>,
        residual: Option<Range<usize>>,
        relu: bool,
    ) {
        let (i, node) = (layer.i, layer.node);
        let channels = node.shape.channels;
        let (mean, inverse_std) = self.batch_statistics[i].split_at(channels);
        let (scale, shift) = self.scratch.channels[..2 * channels].split_at_mut(channels);
        let first = node.norm_parameters();
        let (gamma, beta) = (self.parameters.weight(first), self.parameters.weight(first + 1));
        batch_norm::scale_and_shift(gamma, beta, mean, |c| inverse_std[c], scale, shift);
        let has_residual = residual.is_some();
        let ([c, r], [y]) =
            self.arena.views([before, residual.unwrap_or(0..0)], [self.training.value[i].range()]);
        let r = has_residual.then_some(r);
        batch_norm::apply(self.arch, c, scale, shift, r, relu, y);
    }

    /// Through ReLU, residual add and batch norm: the gradient of the layer's output becomes, in
    /// place, that of the values before the norm.
    pub(super) fn norm_backward(
        &mut self,
        layer: &Layer,
        before: Range<usize>,
        relu: bool,
    ) -> Result<()> {
        let ranks = self.norm_ranks();
        let (i, node) = (layer.i, layer.node);
        let (arch, channels) = (self.arch, node.shape.channels);
        let (mean, inverse_std) = self.batch_statistics[i].split_at(channels);
        let residual = layer.second();
        let residual = residual.map(|r| self.training.gradient[r.index()].range());
        let write = self.training.writes[i].get(1).copied();
        let wants_residual = write.is_some_and(|w| w != GradientWrite::Skip);
        // Without ReLU the output is not kept for the backward pass, and its place may hold
        // something else by now.
        let output = if relu { self.training.value[i].range() } else { 0..0 };
        let ([c, y], [dy, dr]) = self.arena.views(
            [before, output],
            [
                self.training.gradient[i].range(),
                residual.filter(|_| wants_residual).unwrap_or(0..0),
            ],
        );
        let saved = Saved { c, y: relu.then_some(y), mean, inverse_std };
        let first = node.norm_parameters();
        let mut gradients = std::mem::take(&mut self.parameters.gradients);
        let (dgamma, dbeta) = self.parameters.pair(&mut gradients, first);
        batch_norm::backward_sums(arch, &saved, dy, &mut self.scratch.partials, dgamma, dbeta);
        let accumulate = write == Some(GradientWrite::Accumulate);
        let gamma = self.parameters.weight(first);
        // The gradients of γ and β stay this process's own, to be added up with all others; the
        // values' are of all rows.
        let (mut all, synced) = (vec![], ranks > 1);
        if synced {
            all.extend_from_slice(dgamma);
            all.extend_from_slice(dbeta);
            self.communicator.sum(&mut all)?;
        }
        let (dgamma, dbeta) = if synced { all.split_at(channels) } else { (&*dgamma, &*dbeta) };
        batch_norm::backward_values(
            arch,
            &saved,
            gamma,
            dgamma,
            dbeta,
            ranks,
            &mut self.scratch.channels,
            wants_residual.then_some((dr, accumulate)),
            dy,
        );
        self.parameters.gradients = gradients;
        Ok(())
    }

    /// The running statistics as scale and shift; a convolution's bias goes into the shift.
    pub(super) fn running_scale_and_shift(&mut self, node: &Node, norm: Norm) {
        let channels = node.shape.channels;
        let first = node.norm_parameters();
        let p = &self.parameters;
        let (gamma, beta) = (p.weight(first), p.weight(first + 1));
        let mean = &p.statistics[p.range(first + 2)];
        let variance = &p.statistics[p.range(first + 3)];
        let (scale, shift) = self.scratch.channels[..2 * channels].split_at_mut(channels);
        let inverse_std = |c: usize| 1.0 / (variance[c] + norm.epsilon).sqrt();
        batch_norm::scale_and_shift(gamma, beta, mean, inverse_std, scale, shift);
        if let Some(bias) = node.bias_parameter() {
            for ((t, s), b) in shift.iter_mut().zip(scale).zip(p.weight(bias)) {
                *t += *s * b;
            }
        }
    }
}

/// Mean and variance of `rows` rows of every process become those of all of them, merged in rank
/// order.
fn sync_statistics(
    communicator: &Communicator,
    rows: usize,
    mean: &mut [f32],
    variance: &mut [f32],
) -> Result<()> {
    let channels = mean.len();
    let squares = variance.iter().map(|v| v * rows as f32);
    let own: Vec<f32> = mean.iter().copied().chain(squares).collect();
    let mut all = vec![0.0; communicator.ranks() * own.len()];
    communicator.gather(&own, &mut all)?;
    let all_rows = communicator.ranks() * rows;
    debug_assert_eq!(own.len(), 2 * channels);
    batch_norm::merge_statistics(&all, all_rows, rows, mean, variance);
    Ok(())
}
