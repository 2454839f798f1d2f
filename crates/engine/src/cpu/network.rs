//! A planned graph on the CPU: the loop over its layers, forwards and backwards.

use std::sync::Arc;

use pulp::Arch;
use rayon::prelude::*;

use super::arena::Arena;
use super::batch_norm::{self, Saved};
use super::conv::Conv;
use super::parameters::Parameters;
use super::pool::{self, MaxPool};
use super::{Cpu, elementwise, gemm, normalise};
use crate::{
    Device, Error, GradientWrite, Graph, Network, NetworkOptions, Node, NodeId, Norm, Op, Plan,
    Result, Sgd, Shape, Tensors, Window,
};

/// A graph with its memory and parameters on the CPU.
pub struct CpuNetwork {
    cpu: Cpu,
    graph: Arc<Graph>,
    /// Layers whose outputs nobody overwrites.
    keep: Vec<NodeId>,
    state: State,
}

/// Everything but the graph and the threads, so that both can be borrowed while this changes.
struct State {
    arch: Arch,
    training: Plan,
    inference: Plan,
    /// The prepared convolution of each layer that is one (linear layers are 1×1 convolutions).
    convs: Vec<Option<Conv>>,
    parameters: Parameters,
    arena: Arena,
    /// Mean and 1/√(var + ε) of each batch norm in the last training pass, by layer.
    batch_statistics: Vec<Vec<f32>>,
    scratch: Scratch,
    output: Vec<f32>,
    output_gradient: Vec<f32>,
    step: u64,
    last_was_training: bool,
}

/// Working memory that no layer keeps.
struct Scratch {
    packed: Vec<f32>,
    partials: Vec<f32>,
    channels: Vec<f32>,
}

impl CpuNetwork {
    pub(super) fn new(cpu: &Cpu, graph: &Graph, options: &NetworkOptions) -> Result<Self> {
        let arch = cpu.arch();
        let training = Plan::training(graph, options)?;
        let inference = Plan::inference(graph, options)?;
        let convs: Vec<Option<Conv>> = graph.nodes().iter().map(|n| conv_of(graph, n)).collect();
        let width = gemm::panel_width(arch);
        let most = |f: &dyn Fn(&Conv) -> usize| convs.iter().flatten().map(f).max().unwrap_or(0);
        let channels = graph.nodes().iter().map(|n| n.shape.channels).max();
        let scratch = Scratch {
            packed: vec![0.0; most(&|c| c.packed_len(width))],
            partials: vec![
                0.0;
                most(&|c| c.gradient_scratch(options.batch)).max(norm_partials(
                    graph,
                    &convs,
                    options.batch
                ))
            ],
            channels: vec![0.0; 4 * channels.unwrap_or(0)],
        };
        let statistics = |n: &Node| match has_norm(&n.op) {
            Some(_) => vec![0.0; 2 * n.shape.channels],
            None => vec![],
        };
        let output = options.batch * graph.shape(graph.output_node()).len();
        let state = State {
            arch,
            arena: Arena::new(training.arena.max(inference.arena)),
            training,
            inference,
            convs,
            parameters: Parameters::new(graph),
            batch_statistics: graph.nodes().iter().map(statistics).collect(),
            scratch,
            output: vec![0.0; output],
            output_gradient: vec![0.0; output],
            step: 0,
            last_was_training: false,
        };
        Ok(CpuNetwork {
            cpu: cpu.clone(),
            graph: Arc::new(graph.clone()),
            keep: options.keep.clone(),
            state,
        })
    }
}

impl Network for CpuNetwork {
    type Buffer = Vec<f32>;

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn batch(&self) -> usize {
        self.state.training.batch
    }

    fn memory_bytes(&self) -> usize {
        let s = &self.state;
        let scratch = s.scratch.packed.len() + s.scratch.partials.len() + s.scratch.channels.len();
        s.parameters.bytes() + 4 * (s.arena.len() + scratch + 2 * s.output.len())
    }

    fn train_forward(&mut self, pixels: &[f32], step: u64) -> Result<()> {
        let slot = &self.state.training.value[0];
        Error::check_length("pixels of a training batch", slot.len, pixels.len())?;
        let (state, graph) = (&mut self.state, &self.graph);
        state.step = step;
        state.last_was_training = true;
        self.cpu.within(|| {
            state
                .arena
                .write(state.training.value[0].range())
                .copy_from_slice(pixels);
            for (i, node) in graph.nodes().iter().enumerate().skip(1) {
                state.forward(i, node, graph);
            }
        });
        let output = &state.training.value[graph.output_node().index()];
        state
            .output
            .copy_from_slice(state.arena.read(output.range()));
        Ok(())
    }

    fn output_and_gradient(&mut self) -> (&Vec<f32>, &mut Vec<f32>) {
        (&self.state.output, &mut self.state.output_gradient)
    }

    fn backward(&mut self) -> Result<()> {
        if !self.state.last_was_training {
            return Err(Error::Plan(
                "backward needs a training pass before it".into(),
            ));
        }
        let (state, graph) = (&mut self.state, &self.graph);
        let output = state.training.gradient[graph.output_node().index()].range();
        state
            .arena
            .write(output)
            .copy_from_slice(&state.output_gradient);
        self.cpu.within(|| {
            for (i, node) in graph.nodes().iter().enumerate().skip(1).rev() {
                state.backward(i, node, graph);
            }
        });
        Ok(())
    }

    fn update(&mut self, sgd: &Sgd) -> Result<()> {
        let state = &mut self.state;
        self.cpu.within(|| state.parameters.update(state.arch, sgd));
        Ok(())
    }

    fn infer(&mut self, pixels: &[f32], output: &mut [f32]) -> Result<()> {
        let count = self.count_pictures(pixels)?;
        if count == 0 || count > self.batch() {
            return Err(Error::Length {
                what: format!("pictures to infer (1 to {})", self.batch()),
                expected: self.batch(),
                got: count,
            });
        }
        let (state, graph) = (&mut self.state, &self.graph);
        let node = graph.output_node();
        let len = count * graph.shape(node).len();
        Error::check_length("features to infer", len, output.len())?;
        state.last_was_training = false;
        self.cpu.within(|| {
            let input = state.inference.value[0].head(pixels.len());
            state.arena.write(input).copy_from_slice(pixels);
            for (i, node) in graph.nodes().iter().enumerate().skip(1) {
                state.infer(i, node, graph, count);
            }
        });
        output.copy_from_slice(
            state
                .arena
                .read(state.inference.value[node.index()].head(len)),
        );
        Ok(())
    }

    fn kept(&self, node: NodeId, count: usize) -> Result<Vec<f32>> {
        let s = &self.state;
        if !self.keep.contains(&node) && node != self.graph.output_node() {
            let name = &self.graph.node(node).name;
            return Err(Error::Plan(format!(
                "{name}: its output is not kept; name it in NetworkOptions::keep"
            )));
        }
        let plan = if s.last_was_training {
            &s.training
        } else {
            &s.inference
        };
        let len = count * self.graph.shape(node).len();
        if count > plan.batch {
            return Err(Error::Length {
                what: "pictures of the last pass".into(),
                expected: plan.batch,
                got: count,
            });
        }
        Ok(s.arena.read(plan.value[node.index()].head(len)).to_vec())
    }

    fn input_gradient(&self) -> Result<Vec<f32>> {
        let slot = &self.state.training.gradient[0];
        if slot.len == 0 {
            return Err(Error::Plan(
                "the gradient of the pictures was not asked for when the network was built".into(),
            ));
        }
        Ok(self.state.arena.read(slot.range()).to_vec())
    }

    fn read(&self, which: Tensors, parameter: usize) -> Result<Vec<f32>> {
        Ok(self.state.parameters.read(which, parameter))
    }

    fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()> {
        self.state.parameters.write(which, parameter, values)
    }
}

fn conv_of(graph: &Graph, node: &Node) -> Option<Conv> {
    match node.op {
        Op::Conv { spec, .. } => Some(Conv::new(
            graph.shape(node.inputs[0]),
            node.shape,
            spec.window,
        )),
        Op::Linear { out, .. } => {
            let input = Shape::new(1, 1, graph.shape(node.inputs[0]).len());
            Some(Conv::new(
                input,
                Shape::new(1, 1, out),
                Window::square(1, 1, 0),
            ))
        }
        _ => None,
    }
}

fn has_norm(op: &Op) -> Option<Norm> {
    match op {
        Op::Conv { norm, .. } => *norm,
        Op::BatchNorm(norm) => Some(*norm),
        _ => None,
    }
}

/// Scratch values for the partial sums of the most demanding batch norm.
fn norm_partials(graph: &Graph, convs: &[Option<Conv>], batch: usize) -> usize {
    let need = |(node, conv): (&Node, &Option<Conv>)| {
        has_norm(&node.op)?;
        let (len, channels) = (batch * node.shape.len(), node.shape.channels);
        let task = batch_norm::task_len(channels);
        let task = conv.as_ref().map_or(task, |c| task.min(c.task_len()));
        Some(len.div_ceil(task) * 2 * channels)
    };
    graph
        .nodes()
        .iter()
        .zip(convs)
        .filter_map(need)
        .max()
        .unwrap_or(0)
}

/// Where the parameters of a layer with a norm begin: γ, β, running mean, running variance.
fn norm_parameters(node: &Node) -> usize {
    node.parameters[node.parameters.len() - 4]
}

fn bias_parameter(node: &Node) -> Option<usize> {
    match node.op {
        Op::Conv { spec, .. } if spec.bias => Some(node.parameters[1]),
        Op::Linear { bias: true, .. } => Some(node.parameters[1]),
        _ => None,
    }
}

impl State {
    fn forward(&mut self, i: usize, node: &Node, graph: &Graph) {
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

    fn backward(&mut self, i: usize, node: &Node, graph: &Graph) {
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

    fn infer(&mut self, i: usize, node: &Node, graph: &Graph, count: usize) {
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

fn max_pool(input: Shape, output: Shape, window: Window) -> MaxPool {
    MaxPool {
        input,
        output,
        window,
    }
}
