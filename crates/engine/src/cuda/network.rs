//! A planned graph on the GPU: the loop over its layers, forwards and backwards. Nothing in a pass waits or allocates.

mod backward;
mod forward;
mod infer;
mod passes;
mod prepare;

use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::convolution::Convolution;
use super::lane::Lane;
use super::launch::{Kernels, NormTensors, Pointer, Reduction};
use super::memory::{Scratch, Staging};
use super::parameters::{Parameters, from_bf16};
use super::{Cuda, CudaBuffer, Precision, failed};
use crate::{
    Error, Graph, Network, NetworkOptions, Node, NodeId, Norm, Op, Plan, Result, Sgd, Slot, Tensors,
};
use passes::{Pass, Passes};

/// A graph with its memory and parameters on a GPU.
pub struct CudaNetwork {
    graph: Arc<Graph>,
    state: State,
}

/// Everything but the graph, so that both can be borrowed while this changes.
struct State {
    cuda: Cuda,
    lane: Arc<Lane>,
    passes: Passes,
    training: Plan,
    inference: Plan,
    /// The prepared convolution of each layer that is one (linear layers are 1×1 convolutions).
    convolutions: Vec<Option<Convolution>>,
    parameters: Parameters,
    /// Activations and their gradients, in the device's precision.
    arena: CudaSlice<u8>,
    /// Seven rows of channels for each batch norm, and where each layer's begin.
    norms: CudaSlice<f32>,
    norm_starts: Vec<usize>,
    /// cuDNN's working memory.
    workspace: Scratch,
    /// Partial sums.
    partials: Scratch,
    staging: Staging,
    output: CudaBuffer,
    output_gradient: CudaBuffer,
    step: CudaSlice<u64>,
    last_was_training: bool,
}

impl CudaNetwork {
    pub(super) fn new(cuda: &Cuda, graph: &Graph, options: &NetworkOptions) -> Result<Self> {
        let lane = cuda.lane()?;
        let training = Plan::training(graph, options)?;
        let inference = Plan::inference(graph, options)?;
        let bytes = cuda.precision().bytes() * training.arena.max(inference.arena);
        let (norm_starts, norms) = norm_starts(graph);
        let output = options.batch * graph.shape(graph.output_node()).len();
        let pixels = options.batch * graph.nodes()[0].shape.len();
        let mut state = State {
            arena: cuda.zeros(bytes, &format!("activations of {} pictures", options.batch))?,
            convolutions: vec![],
            parameters: Parameters::new(cuda, graph)?,
            norms: cuda.zeros(norms, "batch statistics")?,
            norm_starts,
            workspace: Scratch::new(cuda, 0, "cuDNN's working memory")?,
            partials: Scratch::new(cuda, partial_bytes(graph, options.batch), "partial sums")?,
            staging: Staging::new(cuda, pixels)?,
            output: cuda.buffer(output, "the output")?,
            output_gradient: cuda.buffer(output, "the output's gradient")?,
            step: cuda.zeros(1, "the step")?,
            last_was_training: false,
            cuda: cuda.clone(),
            lane,
            passes: Passes::default(),
            training,
            inference,
        };
        state.choose_algorithms(graph)?;
        Ok(CudaNetwork {
            graph: Arc::new(graph.clone()),
            state,
        })
    }

    /// How many convolutions of a training step cuDNN computes, and how many there are: forwards, weight gradients, and
    /// input gradients where somebody wants them.
    #[doc(hidden)]
    pub fn convolutions_by_cudnn(&self) -> (usize, usize) {
        let all = self.state.convolutions.iter().flatten();
        let (by_cudnn, wanted): (Vec<_>, Vec<_>) = all.map(Convolution::by_cudnn).unzip();
        (by_cudnn.iter().sum(), wanted.iter().sum())
    }
}

impl State {
    fn bind(&self) -> Result<()> {
        let context = self.cuda.stream().context();
        context
            .bind_to_thread()
            .map_err(|e| failed("an earlier error of the GPU", e))
    }

    fn kernels(&self) -> &Kernels {
        &self.lane.kernels
    }

    fn at(&self, slot: &Slot) -> Pointer {
        let offset = slot.start * self.cuda.precision().bytes();
        self.cuda.pointer(&self.arena) + offset as u64
    }

    /// A layer's output in a training pass.
    fn value(&self, node: usize) -> Pointer {
        self.at(&self.training.value[node])
    }

    /// The gradient of a layer's output, 0 if there is none.
    fn gradient(&self, node: usize) -> Pointer {
        match self.training.gradient[node].len {
            0 => 0,
            _ => self.at(&self.training.gradient[node]),
        }
    }

    fn batch(&self) -> usize {
        self.training.batch
    }

    fn norm_tensors(&self, i: usize, node: &Node) -> NormTensors {
        let first = norm_parameters(node);
        let value = |k| self.parameters.value(first + k);
        NormTensors {
            gamma: value(0),
            beta: value(1),
            running_mean: value(2),
            running_variance: value(3),
            saved: self.cuda.pointer(&self.norms) + 4 * self.norm_starts[i] as u64,
        }
    }

    fn reduction(&self, node: &Node) -> Reduction {
        Reduction::new(self.batch() * node.shape.pixels(), node.shape.channels)
    }

    fn workspace(&self) -> Pointer {
        self.workspace.pointer(&self.cuda)
    }

    fn partials(&self) -> Pointer {
        self.partials.pointer(&self.cuda)
    }

    /// Where a convolution writes: to the saved buffer if a norm follows, else to the layer's output.
    fn before_norm(&self, i: usize, node: &Node) -> Pointer {
        match node.op {
            Op::Conv { norm: Some(_), .. } => self.at(&self.training.saved[i]),
            _ => self.value(i),
        }
    }

    /// Copies activations back.
    fn download(&self, slot: &Slot, len: usize) -> Result<Vec<f32>> {
        self.bind()?;
        let precision = self.cuda.precision();
        let start = slot.start * precision.bytes();
        let view = self.arena.slice(start..start + len * precision.bytes());
        let bytes = self.cuda.stream().clone_dtoh(&view);
        let bytes = bytes.map_err(|e| failed("reading activations", e))?;
        Ok(match precision {
            Precision::Bf16 => bytes
                .chunks_exact(2)
                .map(|b| from_bf16(u16::from_le_bytes([b[0], b[1]])))
                .collect(),
            _ => bytes
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
        })
    }
}

impl Network for CudaNetwork {
    type Buffer = CudaBuffer;

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn batch(&self) -> usize {
        self.state.batch()
    }

    fn memory_bytes(&self) -> usize {
        let s = &self.state;
        let scratch = s.workspace.bytes() + s.partials.bytes() + s.staging.bytes();
        let f32s = s.norms.len() + s.output.len() + s.output_gradient.len();
        s.parameters.bytes() + s.arena.len() + scratch + 4 * f32s
    }

    fn train_forward(&mut self, pixels: &[f32], step: u64) -> Result<()> {
        let expected = self.state.training.value[0].len;
        Error::check_length("pixels of a training batch", expected, pixels.len())?;
        let (state, graph) = (&mut self.state, &self.graph);
        state.bind()?;
        let sent = state.staging.send(&state.cuda, pixels)?;
        state.last_was_training = true;
        let step_place = state.cuda.pointer(&state.step);
        state.kernels().set_step(step % (1 << 20), step_place)?;
        state.kernels().narrow(sent, pixels.len(), state.value(0))?;
        state.run(Pass::Forward, 0, graph, State::forward_pass)
    }

    fn output_and_gradient(&mut self) -> (&CudaBuffer, &mut CudaBuffer) {
        (&self.state.output, &mut self.state.output_gradient)
    }

    fn backward(&mut self) -> Result<()> {
        let (state, graph) = (&mut self.state, &self.graph);
        if !state.last_was_training {
            return Err(Error::Plan(
                "backward needs a training pass before it".into(),
            ));
        }
        state.bind()?;
        let expected = state.output.len();
        let got = state.output_gradient.len();
        Error::check_length("gradient of the output", expected, got)?;
        // The gradient's buffer may be another one every time.
        let key = state.cuda.pointer(&state.output_gradient.values);
        state.run(Pass::Backward, key, graph, State::backward_pass)
    }

    fn update(&mut self, sgd: &Sgd) -> Result<()> {
        self.state.bind()?;
        let state = &mut self.state;
        state.parameters.update(&state.lane.kernels, sgd)
    }

    fn infer(&mut self, pixels: &[f32], output: &mut [f32]) -> Result<()> {
        let count = self.count_pictures(pixels)?;
        let (state, graph) = (&mut self.state, &self.graph);
        let len = count * graph.shape(graph.output_node()).len();
        Error::check_length("features to infer", len, output.len())?;
        state.bind()?;
        state.last_was_training = false;
        let sent = state.staging.send(&state.cuda, pixels)?;
        let first = state.at(&state.inference.value[0]);
        state.kernels().narrow(sent, pixels.len(), first)?;
        state.run(Pass::Infer, 0, graph, State::infer_pass)?;
        state.read_inferred(graph, output)
    }

    fn kept(&self, node: NodeId, count: usize) -> Result<Vec<f32>> {
        let s = &self.state;
        let plan = if s.last_was_training {
            &s.training
        } else {
            &s.inference
        };
        let slot = plan.kept(&self.graph, node, count)?;
        s.download(&slot, slot.len)
    }

    fn input_gradient(&self) -> Result<Vec<f32>> {
        let slot = &self.state.training.gradient[0];
        if slot.len == 0 {
            return Err(Error::Plan(
                "the gradient of the pictures was not asked for when the network was built".into(),
            ));
        }
        self.state.download(slot, slot.len)
    }

    fn read(&self, which: Tensors, parameter: usize) -> Result<Vec<f32>> {
        self.state.bind()?;
        self.state.parameters.read(which, parameter)
    }

    fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()> {
        self.state.bind()?;
        self.state.parameters.write(which, parameter, values)
    }
}

fn has_norm(op: &Op) -> Option<Norm> {
    match op {
        Op::Conv { norm, .. } => *norm,
        Op::BatchNorm(norm) => Some(*norm),
        _ => None,
    }
}

/// Where the seven rows of each layer's norm begin, and how many values all of them take.
fn norm_starts(graph: &Graph) -> (Vec<usize>, usize) {
    let mut end = 0;
    let start = |node: &Node| {
        let start = end;
        if has_norm(&node.op).is_some() {
            end += (7 * node.shape.channels).next_multiple_of(8);
        }
        start
    };
    (graph.nodes().iter().map(start).collect(), end)
}

/// Memory for the partial sums of the most demanding norm or bias.
fn partial_bytes(graph: &Graph, batch: usize) -> usize {
    let need = |n: &Node| 4 * Reduction::new(batch * n.shape.pixels(), n.shape.channels).partials();
    graph.nodes().iter().map(need).max().unwrap_or(0)
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
