//! Convolutions with what is fused behind them, and linear layers, which are convolutions of 1×1.

use rayon::prelude::*;

use super::State;
use crate::cpu::{batch_norm, elementwise};
use crate::walk::{Layer, Pass};
use crate::{GradientWrite, NodeId, Norm, Result};

impl State {
    pub(crate) fn conv_layer(
        &mut self,
        layer: &Layer,
        norm: Option<Norm>,
        relu: bool,
    ) -> Result<()> {
        let saved = self.training.saved[layer.i].range();
        match (layer.pass, norm) {
            (Pass::Forward, Some(norm)) => {
                self.conv_forward(layer, true, relu);
                self.finish_statistics(layer, norm, true)?;
                let second = self.io(layer).second;
                let second = layer.second().map(|_| second);
                self.norm_apply(layer, saved, second, relu);
            }
            (Pass::Forward, None) => self.conv_forward(layer, false, relu),
            (Pass::Backward, Some(_)) => {
                self.norm_backward(layer, saved, relu)?;
                self.conv_backward(layer);
            }
            (Pass::Backward, None) => {
                self.plain_backward(layer, relu);
                self.conv_backward(layer);
            }
            (Pass::Infer(_), norm) => self.conv_infer(layer, norm, relu),
        }
        Ok(())
    }

    /// The convolution of a training pass: with a norm to follow, its output goes to the saved
    /// buffer and each task takes its statistics while the values are in cache; without, bias,
    /// residual and ReLU are applied at once.
    fn conv_forward(&mut self, layer: &Layer, norm: bool, relu: bool) {
        let (i, node) = (layer.i, layer.node);
        let conv = self.convs[i].as_ref().expect("a convolution was prepared");
        let (arch, channels) = (self.arch, node.shape.channels);
        let value = |x: NodeId| self.training.value[x.index()].range();
        let target = if norm { &self.training.saved[i] } else { &self.training.value[i] };
        let residual = layer.second().map(value);
        let ([x, residual], [y]) = self.arena.views(
            [value(node.inputs[0]), residual.filter(|_| !norm).unwrap_or(0..0)],
            [target.range()],
        );
        let bias = node.bias_parameter().map(|b| self.parameters.weight(b));
        let weights = self.parameters.weight(node.parameters[0]);
        conv.pack_forward(arch, weights, &mut self.scratch.packed);
        let packed = &self.scratch.packed;
        let task_len = conv.task_len();
        let tasks = y.par_chunks_mut(task_len);
        if norm {
            let partials = self.scratch.partials.par_chunks_mut(2 * channels);
            tasks.zip(partials).enumerate().for_each(|(task, (y, out))| {
                conv.forward_task(arch, x, packed, task, y);
                if bias.is_some() {
                    elementwise::finish_plain(arch, bias, None, false, channels, y);
                }
                batch_norm::task_statistics(arch, y, out);
            });
            return;
        }
        tasks.enumerate().for_each(|(task, y)| {
            conv.forward_task(arch, x, packed, task, y);
            let residual = (!residual.is_empty()).then(|| &residual[task * task_len..][..y.len()]);
            elementwise::finish_plain(arch, bias, residual, relu, channels, y);
        });
    }

    /// The convolution of an inference, with everything behind it applied while the values are in
    /// cache.
    fn conv_infer(&mut self, layer: &Layer, norm: Option<Norm>, relu: bool) {
        if let Some(norm) = norm {
            self.running_scale_and_shift(layer.node, norm);
        }
        let (node, e, arch) = (layer.node, self.io(layer), self.arch);
        let channels = node.shape.channels;
        let (scale, shift) = self.scratch.channels[..2 * channels].split_at(channels);
        let ([x, r], [y]) = self.arena.views([e.x, e.second], [e.y]);
        let conv = self.convs[layer.i].as_ref();
        let conv = conv.expect("a convolution was prepared");
        let weights = self.parameters.weight(node.parameters[0]);
        conv.pack_forward(arch, weights, &mut self.scratch.packed);
        let packed = &self.scratch.packed;
        let bias = node.bias_parameter().map(|b| self.parameters.weight(b));
        let len = conv.task_len();
        y.par_chunks_mut(len).enumerate().for_each(|(task, y)| {
            conv.forward_task(arch, x, packed, task, y);
            let r = (!r.is_empty()).then(|| &r[task * len..][..y.len()]);
            match norm {
                Some(_) => batch_norm::apply_in_place(arch, scale, shift, r, relu, y),
                None => elementwise::finish_plain(arch, bias, r, relu, channels, y),
            }
        });
    }

    /// Through ReLU and residual add of a convolution without norm, in place.
    fn plain_backward(&mut self, layer: &Layer, relu: bool) {
        let dy = self.training.gradient[layer.i].range();
        if relu {
            let ([y], [dy]) =
                self.arena.views([self.training.value[layer.i].range()], [dy.clone()]);
            elementwise::mask_in_place(self.arch, y, dy);
        }
        let residual = layer.second().zip(self.training.writes[layer.i].get(1));
        if let Some((r, write)) = residual.filter(|(_, w)| **w != GradientWrite::Skip) {
            let dr = self.training.gradient[r.index()].range();
            let ([dy], [dr]) = self.arena.views([dy], [dr]);
            let accumulate = *write == GradientWrite::Accumulate;
            elementwise::pass_gradient(self.arch, None, dy, accumulate, dr);
        }
    }

    /// From the gradient of the convolution's own output to those of its bias, weights and input.
    fn conv_backward(&mut self, layer: &Layer) {
        let (node, e, arch) = (layer.node, self.io(layer), self.arch);
        let conv = self.convs[layer.i].as_ref();
        let conv = conv.expect("a convolution was prepared");
        let dx = if e.skip { 0..0 } else { e.dx };
        let ([x, dy], [dx]) = self.arena.views([e.x, e.dy], [dx]);
        if let Some(bias) = node.bias_parameter() {
            let dbias = self.parameters.gradient(bias);
            elementwise::bias_gradient(dy, node.shape.channels, dbias);
        }
        let dw = self.parameters.gradient(node.parameters[0]);
        conv.weight_gradient(arch, x, dy, &mut self.scratch.partials, dw);
        if !e.skip {
            let weights = self.parameters.weight(node.parameters[0]);
            conv.pack_backward(arch, weights, &mut self.scratch.packed);
            conv.input_gradient(arch, dy, &self.scratch.packed, e.accumulate, dx);
        }
    }
}
