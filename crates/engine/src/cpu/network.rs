//! A planned graph on the CPU: the loop over its layers, forwards and backwards.

mod backward;
mod forward;
mod infer;

use std::sync::Arc;

use pulp::Arch;
use rayon::prelude::*;

use super::arena::Arena;
use super::batch_norm;
use super::conv::Conv;
use super::parameters::Parameters;
use super::pool::MaxPool;
use super::{Cpu, gemm};
use crate::{
    Device, Error, Graph, Network, NetworkOptions, Node, NodeId, Norm, Op, Plan, Result, Sgd,
    Shape, Tensors, Window,
};

/// A graph with its memory and parameters on the CPU.
pub struct CpuNetwork {
    cpu: Cpu,
    graph: Arc<Graph>,
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
            state,
        })
    }
}

impl CpuNetwork {
    /// A training pass over the pictures that `fill` writes.
    fn train_forward_on(&mut self, step: u64, fill: impl FnOnce(&mut [f32]) + Send) {
        let (state, graph) = (&mut self.state, &self.graph);
        state.step = step;
        state.last_was_training = true;
        self.cpu.within(|| {
            fill(state.arena.write(state.training.value[0].range()));
            for (i, node) in graph.nodes().iter().enumerate().skip(1) {
                state.forward(i, node, graph);
            }
        });
        let output = &state.training.value[graph.output_node().index()];
        state
            .output
            .copy_from_slice(state.arena.read(output.range()));
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
        self.train_forward_on(step, |batch| batch.copy_from_slice(pixels));
        Ok(())
    }

    fn train_forward_rows(&mut self, rows: &Vec<f32>, indices: &[u32], step: u64) -> Result<()> {
        self.check_rows(rows.len(), indices)?;
        let one = self.graph.nodes()[0].shape.len();
        self.train_forward_on(step, |batch| {
            let batch = batch.par_chunks_exact_mut(one).zip(indices);
            batch.for_each(|(to, i)| to.copy_from_slice(&rows[*i as usize * one..][..one]));
        });
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
        let plan = if s.last_was_training {
            &s.training
        } else {
            &s.inference
        };
        let slot = plan.kept(&self.graph, node, count)?;
        Ok(s.arena.read(slot.range()).to_vec())
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

fn max_pool(input: Shape, output: Shape, window: Window) -> MaxPool {
    MaxPool {
        input,
        output,
        window,
    }
}
