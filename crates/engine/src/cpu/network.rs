//! A planned graph on the CPU, and its layers, which [`crate::walk`] goes through.

mod conv;
mod norm;
mod simple;

use std::ops::Range;
use std::sync::Arc;

use pulp::Arch;

use super::arena::Arena;
use super::batch_norm;
use super::conv::Conv;
use super::parameters::Parameters;
use super::stream::{CpuStream, values, values_mut};
use super::{Cpu, gemm, optimisers};
use crate::walk::{self, Layer, LayerIo, Layers, Pass};
use crate::{
    Buffer, Communicator, Graph, Input, NetworkOptions, Node, NodeId, Parameter, ParameterGroup,
    Plan, Result, Scalar, Tensors,
};

/// A graph with its memory and parameters on the CPU.
pub(crate) struct CpuNetwork {
    cpu: Cpu,
    graph: Arc<Graph>,
    state: State,
}

/// Everything but the graph and the threads, so that both can be borrowed while this changes.
pub(crate) struct State {
    arch: Arch,
    training: Plan,
    inference: Plan,
    /// The prepared convolution of each layer that is one (linear layers are 1×1 convolutions).
    convs: Vec<Option<Conv>>,
    parameters: Parameters,
    arena: Arena,
    /// Mean and 1/√(var + ε) of each batch norm in the last training pass, by layer.
    batch_statistics: Vec<Vec<f32>>,
    /// The pass whose memory that is, and the memory of the others.
    pass: usize,
    others: Vec<PassMemory>,
    /// Whether the first pass's gradients are the sums of all.
    summed: bool,
    scratch: LayerScratch,
    output: Buffer,
    output_gradient: Buffer,
    input_gradient: Option<Buffer>,
    /// What dropout draws by, beside pass and layer.
    seed: u64,
    step: u64,
    last_was_training: bool,
    /// The processes that take the step, and whether batch norm looks at all their rows.
    communicator: Communicator,
    sync_norm: bool,
}

/// What each pass has for itself.
struct PassMemory {
    arena: Arena,
    batch_statistics: Vec<Vec<f32>>,
    gradients: Vec<f32>,
}

impl State {
    /// Makes a pass's memory the one at hand.
    fn select(&mut self, pass: usize) {
        for turn in [self.pass, pass] {
            let other = &mut self.others[turn];
            std::mem::swap(&mut self.arena, &mut other.arena);
            std::mem::swap(&mut self.batch_statistics, &mut other.batch_statistics);
            std::mem::swap(&mut self.parameters.gradients, &mut other.gradients);
        }
        self.pass = pass;
    }

    /// The passes' gradients, added up in their order and over all processes, become the first
    /// one's.
    fn sum_gradients(&mut self) -> Result<()> {
        self.select(0);
        if std::mem::replace(&mut self.summed, true) {
            return Ok(());
        }
        for other in &self.others[1..] {
            let sums = self.parameters.gradients.iter_mut();
            sums.zip(&other.gradients).for_each(|(s, g)| *s += g);
        }
        self.communicator.sum(&mut self.parameters.gradients)
    }

    /// Running statistics that each process has moved by its own rows become their mean over all
    /// processes.
    fn agree_on_statistics(&mut self) -> Result<()> {
        if self.sync_norm || self.communicator.is_single() {
            return Ok(());
        }
        let statistics = &mut self.parameters.statistics;
        self.communicator.sum(statistics)?;
        let share = 1.0 / self.communicator.ranks() as f32;
        statistics.iter_mut().for_each(|s| *s *= share);
        Ok(())
    }
}

/// Working memory that no layer keeps.
struct LayerScratch {
    packed: Vec<f32>,
    partials: Vec<f32>,
    channels: Vec<f32>,
}

impl CpuNetwork {
    pub(super) fn new(cpu: &Cpu, graph: &Arc<Graph>, options: &NetworkOptions) -> Result<Self> {
        let arch = cpu.arch();
        let training = Plan::training(graph, options)?;
        let inference = Plan::inference(graph, options)?;
        let convs: Vec<Option<Conv>> = graph.nodes().iter().map(|n| conv_of(graph, n)).collect();
        let width = gemm::panel_width(arch);
        let most = |f: &dyn Fn(&Conv) -> usize| convs.iter().flatten().map(f).max().unwrap_or(0);
        let channels = graph.nodes().iter().map(|n| n.shape.channels).max();
        let scratch = LayerScratch {
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
        let statistics = |n: &Node| match n.op.norm() {
            Some(_) => vec![0.0; 2 * n.shape.channels],
            None => vec![],
        };
        let len = options.passes * options.batch * graph.shape(graph.output_node()).len();
        let zeros = |len: usize| Buffer::new(len, vec![0.0_f32; len]);
        let input = options.passes * options.batch * graph.nodes()[0].shape.len();
        let arena = training.arena.max(inference.arena);
        let parameters = Parameters::new(graph, options);
        let pass = |pass: usize| PassMemory {
            // The first pass's memory is the one at hand.
            arena: Arena::new(if pass == 0 { 0 } else { arena }),
            batch_statistics: match pass {
                0 => vec![],
                _ => graph.nodes().iter().map(statistics).collect(),
            },
            gradients: vec![0.0; if pass == 0 { 0 } else { parameters.weights.len() }],
        };
        let state = State {
            arch,
            arena: Arena::new(arena),
            pass: 0,
            summed: false,
            others: (0..options.passes).map(pass).collect(),
            training,
            inference,
            convs,
            parameters,
            batch_statistics: graph.nodes().iter().map(statistics).collect(),
            scratch,
            output: zeros(len),
            output_gradient: zeros(len),
            input_gradient: options.input_gradient.then(|| zeros(input)),
            seed: 0,
            step: 0,
            last_was_training: false,
            communicator: Communicator::single(),
            sync_norm: options.sync_norm,
        };
        Ok(CpuNetwork { cpu: cpu.clone(), graph: graph.clone(), state })
    }

    /// The values of one pass among those of all.
    fn part(&self, pass: usize, buffer: &Buffer) -> Range<usize> {
        let each = buffer.len() / self.state.others.len();
        pass * each..(pass + 1) * each
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let s = &self.state;
        let scratch = s.scratch.packed.len() + s.scratch.partials.len() + s.scratch.channels.len();
        let others = |p: &PassMemory| p.arena.len() + p.gradients.len();
        let passes = s.arena.len() + s.others.iter().map(others).sum::<usize>();
        let inputs = s.input_gradient.as_ref().map_or(0, Buffer::len);
        s.parameters.bytes() + 4 * (passes + scratch + 2 * s.output.len() + inputs)
    }

    pub(crate) fn seed_dropout(&mut self, seed: u64) {
        self.state.seed = seed;
    }

    pub(crate) fn forward(
        &mut self,
        stream: &mut CpuStream,
        pass: usize,
        input: Input,
    ) -> Result<()> {
        let to = self.part(pass, &self.state.output);
        let (state, graph) = (&mut self.state, &self.graph);
        state.select(pass);
        state.step = stream.number();
        state.communicator = stream.communicator().clone();
        state.last_was_training = true;
        self.cpu.install(|| {
            let one = graph.nodes()[0].shape.len();
            let to = state.arena.write(state.training.value[0].range());
            read_input(&input, one, to)?;
            walk::forwards(state, graph, Pass::Forward)
        })?;
        let output = &state.training.value[graph.output_node().index()];
        let from = state.arena.read(output.range());
        values_mut(&mut state.output)?[to].copy_from_slice(from);
        Ok(())
    }

    pub(crate) fn output(&self) -> &Buffer {
        &self.state.output
    }

    pub(crate) fn output_and_gradient(&mut self) -> (&Buffer, &mut Buffer) {
        (&self.state.output, &mut self.state.output_gradient)
    }

    pub(crate) fn backward(&mut self, pass: usize) -> Result<()> {
        let from = self.part(pass, &self.state.output_gradient);
        let inputs = self.state.input_gradient.as_ref();
        let inputs = inputs.map(|b| self.part(pass, b));
        let (state, graph) = (&mut self.state, &self.graph);
        state.select(pass);
        state.summed = false;
        let output = state.training.gradient[graph.output_node().index()].range();
        let given = &values(&state.output_gradient)?[from];
        state.arena.write(output).copy_from_slice(given);
        self.cpu.install(|| walk::backwards(state, graph))?;
        if let (Some(to), Some(part)) = (&mut state.input_gradient, inputs) {
            let from = state.arena.read(state.training.gradient[0].range());
            values_mut(to)?[part].copy_from_slice(from);
        }
        Ok(())
    }

    pub(crate) fn input_gradient(&self) -> Option<&Buffer> {
        self.state.input_gradient.as_ref()
    }

    pub(crate) fn regroup(&mut self, groups: &dyn Fn(&Parameter) -> ParameterGroup) -> Result<()> {
        self.state.parameters.regroup(&self.graph, groups);
        Ok(())
    }

    pub(crate) fn update(&mut self, stream: &mut CpuStream) -> Result<()> {
        let state = &mut self.state;
        if stream.failed() {
            state.parameters.settle_statistics(true);
            return Ok(());
        }
        state.agree_on_statistics()?;
        state.parameters.settle_statistics(false);
        let (rate, number) = (stream.scalar(Scalar::RATE), stream.number());
        self.cpu.install(|| {
            state.sum_gradients()?;
            state.parameters.update(state.arch, rate, number);
            Ok(())
        })
    }

    pub(crate) fn follow(
        &mut self,
        stream: &mut CpuStream,
        other: &CpuNetwork,
        m: Scalar,
    ) -> Result<()> {
        if stream.failed() {
            self.state.parameters.settle_statistics(true);
            return Ok(());
        }
        let (m, arch) = (stream.scalar(m), self.state.arch);
        self.state.agree_on_statistics()?;
        let (own, others) = (&mut self.state.parameters, &other.state.parameters);
        self.cpu.install(|| {
            optimisers::ema(arch, m, &mut own.weights, &others.weights);
            optimisers::ema(arch, m, &mut own.statistics, &others.statistics);
        });
        own.settle_statistics(false);
        Ok(())
    }

    pub(crate) fn infer(&mut self, count: usize, pixels: &[f32], output: &mut [f32]) -> Result<()> {
        let (state, graph) = (&mut self.state, &self.graph);
        state.last_was_training = false;
        state.select(0);
        self.cpu.install(|| {
            let input = state.inference.value[0].head(pixels.len());
            state.arena.write(input).copy_from_slice(pixels);
            walk::forwards(state, graph, Pass::Infer(count))
        })?;
        let result = state.inference.value[graph.output_node().index()].head(output.len());
        output.copy_from_slice(state.arena.read(result));
        Ok(())
    }

    pub(crate) fn kept(&self, node: NodeId, count: usize) -> Result<Vec<f32>> {
        let s = &self.state;
        let plan = if s.last_was_training { &s.training } else { &s.inference };
        let slot = plan.kept(&self.graph, node, count)?;
        Ok(s.arena.read(slot.range()).to_vec())
    }

    pub(crate) fn read(&self, which: Tensors, parameter: usize) -> Result<Vec<f32>> {
        let s = &self.state;
        let mut values = s.parameters.read(which, parameter);
        if which == Tensors::Gradients && !s.summed {
            let others = s.others.iter().enumerate().filter(|(p, _)| *p != s.pass);
            for (_, other) in others {
                let more = s.parameters.read_from(&other.gradients, parameter);
                values.iter_mut().zip(more).for_each(|(v, m)| *v += m);
            }
        }
        Ok(values)
    }

    pub(crate) fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()> {
        self.state.parameters.write(which, parameter, values)
    }
}

/// Copies what a pass reads to where it reads it.
fn read_input(input: &Input, one: usize, to: &mut [f32]) -> Result<()> {
    match input {
        Input::Rows { rows, first } => {
            to.copy_from_slice(&values(rows)?[first * one..][..to.len()]);
        }
        Input::Views { batch, views } => batch.read(views, to)?,
    }
    Ok(())
}

impl State {
    fn io(&self, layer: &Layer) -> LayerIo<Range<usize>> {
        let (plan, count) = match layer.pass {
            Pass::Forward | Pass::Backward => (&self.training, self.training.batch),
            Pass::Infer(count) => (&self.inference, count),
        };
        let value = |i: usize| plan.value[i].head(count * layer.graph.nodes()[i].shape.len());
        layer.io(&self.training, count, value, |i| self.training.gradient[i].range())
    }
}

impl Layers for State {
    fn has_gradient(&self, i: usize) -> bool {
        self.training.gradient[i].len > 0
    }

    fn visit(&mut self, layer: &Layer) -> Result<()> {
        layer.node.op.layer(|op| op.cpu(self, layer))
    }
}

fn conv_of(graph: &Graph, node: &Node) -> Option<Conv> {
    let (input, window) = node.convolution(graph)?;
    Some(Conv::new(input, node.shape, window))
}

/// LayerScratch values for the partial sums of the most demanding batch norm.
fn norm_partials(graph: &Graph, convs: &[Option<Conv>], batch: usize) -> usize {
    let need = |(node, conv): (&Node, &Option<Conv>)| {
        node.op.norm()?;
        let (len, channels) = (batch * node.shape.len(), node.shape.channels);
        let task = batch_norm::task_len(channels);
        let task = conv.as_ref().map_or(task, |c| task.min(c.task_len()));
        Some(len.div_ceil(task) * 2 * channels)
    };
    graph.nodes().iter().zip(convs).filter_map(need).max().unwrap_or(0)
}
