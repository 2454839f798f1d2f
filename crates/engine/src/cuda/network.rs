//! A planned graph on the GPU: the loop over its layers, forwards and backwards. Nothing in a pass waits or allocates.

mod backward;
mod forward;
mod infer;
mod passes;
mod prepare;
mod profile;

use std::sync::Arc;

use cudarc::driver::CudaSlice;

use super::convolution::Convolution;
use super::lane::Lane;
use super::launch::{Kernels, Meeting, NormTensors, OnChip, Pointer, Reduction, Sums};
use super::memory::{Scratch, Staging, batch_advice};
use super::parameters::{Parameters, from_bf16};
use super::similarity::send;
use super::{Cuda, CudaBuffer, Precision, failed};
use crate::{
    Error, Graph, Network, NetworkOptions, Node, NodeId, Norm, Op, Plan, Result, Sgd, Slot, Tensors,
};
use passes::{Pass, Passes};

/// Layers by which weight gradients may be late: so much longer is kept what they read.
const LAG: usize = 3;

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
    /// Where set, passes do this part alone.
    only: Option<profile::Part>,
    training: Plan,
    inference: Plan,
    /// The prepared convolution of each layer that is one (linear layers are 1×1 convolutions).
    convolutions: Vec<Option<Convolution>>,
    parameters: Parameters,
    /// Activations and their gradients, in the device's precision.
    arena: CudaSlice<u8>,
    /// The pictures, where they have channels added to them.
    padded: Option<CudaSlice<u8>>,
    /// Channels of a picture, without and with those added.
    channels: usize,
    input_channels: usize,
    /// Four rows of channels for each batch norm, and where each layer's begin.
    norms: CudaSlice<f32>,
    norm_starts: Vec<usize>,
    /// How the chip holds each norm's tensor, if it can, and counters for its blocks to meet.
    on_chip: Vec<Option<OnChip>>,
    arrivals: CudaSlice<u64>,
    /// Which values a ReLU let pass after a residual was added, a bit each, and where each layer's begin.
    above: CudaSlice<u8>,
    above_starts: Vec<Option<usize>>,
    /// Convolutions' working memory, for the lane and for the one beside it.
    workspaces: [Scratch; 2],
    /// Sums over rows, for the lane and for the one beside it.
    sums: [SumMemory; 2],
    staging: Staging,
    /// The rows of the last batch that was taken from a matrix on the device.
    row_indices: Option<CudaSlice<u32>>,
    output: CudaBuffer,
    output_gradient: CudaBuffer,
    step: CudaSlice<u64>,
    last_was_training: bool,
}

impl CudaNetwork {
    pub(super) fn new(cuda: &Cuda, graph: &Graph, options: &NetworkOptions) -> Result<Self> {
        let lane = cuda.lane()?;
        let training = Plan::training_with_lag(graph, options, LAG)?;
        let inference = Plan::inference(graph, options)?;
        let bytes = cuda.precision().bytes() * training.arena.max(inference.arena);
        let (norm_starts, norms) = norm_starts(graph);
        let output = options.batch * graph.shape(graph.output_node()).len();
        let pixels = options.batch * graph.nodes()[0].shape.len();
        let what = format!("activations of {} pictures", options.batch);
        let arena = cuda.zeros(bytes, &what);
        let each = bytes / options.batch + 4 * graph.nodes()[0].shape.len();
        let too_large = |e| batch_advice(e, options.batch, each, cuda.precision());
        let arena = arena.map_err(too_large)?;
        let input_channels = padded_channels(graph, options, cuda.precision());
        let padded = match input_channels == graph.nodes()[0].shape.channels {
            true => None,
            false => {
                let places = options.batch * graph.nodes()[0].shape.pixels();
                let bytes = cuda.precision().bytes() * places * input_channels;
                let padded = cuda.zeros(bytes, "a batch of pictures");
                Some(padded.map_err(too_large)?)
            }
        };
        let on_chip = on_chip(cuda, graph, options.batch)?;
        let (above_starts, above) = above_starts(graph, options.batch, &on_chip);
        let mut state = State {
            padded,
            channels: graph.nodes()[0].shape.channels,
            input_channels,
            arena,
            convolutions: vec![],
            parameters: Parameters::new(cuda, graph, input_channels)?,
            norms: cuda.zeros(norms, "batch statistics")?,
            norm_starts,
            on_chip,
            above: cuda.zeros(above, "signs of activations")?,
            above_starts,
            arrivals: cuda.zeros(norms / 16, "counters")?,
            workspaces: [
                Scratch::new(cuda, 0, "a convolution's working memory")?,
                Scratch::new(cuda, 0, "a convolution's working memory")?,
            ],
            sums: [
                SumMemory::new(cuda, graph, options.batch)?,
                SumMemory::new(cuda, graph, options.batch)?,
            ],
            staging: Staging::new(cuda, pixels)?,
            row_indices: None,
            output: cuda.buffer(output, "the output")?,
            output_gradient: cuda.buffer(output, "the output's gradient")?,
            step: cuda.zeros(1, "the step")?,
            last_was_training: false,
            cuda: cuda.clone(),
            lane,
            passes: Passes::default(),
            only: None,
            training,
            inference,
        };
        state.choose_algorithms(graph)?;
        Ok(CudaNetwork {
            graph: Arc::new(graph.clone()),
            state,
        })
    }

    /// A training pass over a batch in f32 that has arrived on the device.
    fn train_forward_from(&mut self, pixels: Pointer, step: u64) -> Result<()> {
        let (state, graph) = (&mut self.state, &self.graph);
        state.last_was_training = true;
        let step_place = state.cuda.pointer(&state.step);
        state.kernels().set_step(step % (1 << 20), step_place)?;
        let len = state.training.value[0].len;
        state.take_pixels(pixels, len, &state.training)?;
        state.run(Pass::Forward, 0, graph, State::forward_pass)
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
        self.output_in(&self.training, node)
    }

    /// A layer's output in a pass of this plan.
    fn output_in(&self, plan: &Plan, node: usize) -> Pointer {
        match &self.padded {
            Some(pictures) if node == 0 => self.cuda.pointer(pictures),
            _ => self.at(&plan.value[node]),
        }
    }

    /// Pictures in f32 that have arrived on the device, as the first layer reads them.
    fn take_pixels(&self, from: Pointer, len: usize, plan: &Plan) -> Result<()> {
        let (k, to) = (self.kernels(), self.output_in(plan, 0));
        match self.padded {
            None => k.narrow(from, len, to),
            Some(_) => {
                let channels = self.channels;
                k.narrow_padded(from, len / channels, [channels, self.input_channels], to)
            }
        }
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
        self.workspaces[0].pointer(&self.cuda)
    }

    fn sums(&self) -> Sums {
        self.sums[0].places(&self.cuda)
    }

    fn sums_beside(&self) -> Sums {
        self.sums[1].places(&self.cuda)
    }

    /// Where the blocks of a layer's norm meet, in one of its directions.
    fn meeting(&self, i: usize, node: &Node, backward: bool) -> Meeting {
        let first = self.norm_starts[i] / 16;
        let first = first + usize::from(backward) * node.shape.channels / 8;
        Meeting {
            partials: self.sums().chunks,
            arrivals: self.cuda.pointer(&self.arrivals) + 8 * first as u64,
        }
    }

    /// Where it is kept which of a layer's values are above zero, 0 where nobody asks.
    fn above(&self, i: usize) -> Pointer {
        self.above_starts[i].map_or(0, |start| self.cuda.pointer(&self.above) + start as u64)
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
        let sums: usize = s.sums.iter().map(SumMemory::bytes).sum();
        let working: usize = s.workspaces.iter().map(Scratch::bytes).sum();
        let scratch = working + sums + s.staging.bytes();
        let f32s = s.norms.len() + s.output.len() + s.output_gradient.len();
        let padded = s.padded.as_ref().map_or(0, |p| p.len());
        s.parameters.bytes() + s.arena.len() + s.above.len() + padded + scratch + 4 * f32s
    }

    fn train_forward(&mut self, pixels: &[f32], step: u64) -> Result<()> {
        let expected = self.state.training.value[0].len;
        Error::check_length("pixels of a training batch", expected, pixels.len())?;
        let state = &mut self.state;
        state.bind()?;
        let sent = state.staging.send(&state.cuda, pixels)?;
        self.train_forward_from(sent, step)
    }

    fn train_forward_rows(&mut self, rows: &CudaBuffer, indices: &[u32], step: u64) -> Result<()> {
        self.check_rows(rows.len(), indices)?;
        let state = &mut self.state;
        state.bind()?;
        let cuda = &state.cuda;
        let which = send(cuda, &mut state.row_indices, indices)?;
        let (from, to) = (cuda.pointer(&rows.values), state.staging.arrival(cuda));
        let one = self.graph.nodes()[0].shape.len();
        let kernels = &state.lane.kernels;
        kernels.gather_rows(from, which, [indices.len(), one], to)?;
        self.train_forward_from(to, step)
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
        state.parameters.set(&state.lane.kernels, sgd)?;
        let all = 0..state.parameters.len();
        state.parameters.update(&state.lane.kernels, all)
    }

    fn infer(&mut self, pixels: &[f32], output: &mut [f32]) -> Result<()> {
        let count = self.count_pictures(pixels)?;
        let (state, graph) = (&mut self.state, &self.graph);
        let len = count * graph.shape(graph.output_node()).len();
        Error::check_length("features to infer", len, output.len())?;
        state.bind()?;
        state.last_was_training = false;
        let sent = state.staging.send(&state.cuda, pixels)?;
        state.take_pixels(sent, pixels.len(), &state.inference)?;
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

/// Channels that pictures have on the device: a tensor core's row full, where only convolutions read them. The weights of
/// channels added are zero, and so are their gradients.
fn padded_channels(graph: &Graph, options: &NetworkOptions, precision: Precision) -> usize {
    let channels = graph.nodes()[0].shape.channels;
    let row = match precision {
        Precision::Bf16 => 8,
        Precision::Tf32 => 4,
        Precision::F32 => 1,
    };
    let reads = |n: &&Node| n.inputs.iter().any(|x| x.index() == 0);
    let mut readers = graph.nodes().iter().filter(reads);
    let plain = readers.all(|n| matches!(n.op, Op::Conv { .. }) && n.inputs[1..].is_empty());
    let kept = options.keep.iter().any(|k| k.index() == 0) || options.input_gradient;
    match plain && !kept && graph.output_node().index() != 0 {
        true => channels.next_multiple_of(row),
        false => channels,
    }
}

fn has_norm(op: &Op) -> Option<Norm> {
    match op {
        Op::Conv { norm, .. } => *norm,
        Op::BatchNorm(norm) => Some(*norm),
        _ => None,
    }
}

/// Where the four rows of each layer's norm begin, and how many values all of them take.
fn norm_starts(graph: &Graph) -> (Vec<usize>, usize) {
    let mut end = 0;
    let start = |node: &Node| {
        let start = end;
        if has_norm(&node.op).is_some() {
            end += (4 * node.shape.channels).next_multiple_of(16);
        }
        start
    };
    (graph.nodes().iter().map(start).collect(), end)
}

/// Which layers' norms are done on the chip, and how.
fn on_chip(cuda: &Cuda, graph: &Graph, batch: usize) -> Result<Vec<Option<OnChip>>> {
    let (multiprocessors, most_shared) = (cuda.multiprocessors()?, cuda.most_shared()?);
    let cut = |node: &Node| {
        has_norm(&node.op)?;
        let (rows, channels) = (batch * node.shape.pixels(), node.shape.channels);
        OnChip::new(
            rows,
            channels,
            multiprocessors,
            cuda.precision(),
            most_shared,
        )
    };
    Ok(graph.nodes().iter().map(cut).collect())
}

/// Where the signs of each layer begin that adds a residual before its ReLU and is done on the chip, and how many bytes they
/// take.
fn above_starts(
    graph: &Graph,
    batch: usize,
    on_chip: &[Option<OnChip>],
) -> (Vec<Option<usize>>, usize) {
    let mut end = 0;
    let start = |(node, cut): (&Node, &Option<OnChip>)| {
        let added = matches!(node.op, Op::Conv { relu: true, .. }) && node.inputs.len() > 1;
        (added && cut.is_some()).then(|| {
            let start = end;
            end += batch * node.shape.len() / 8;
            start
        })
    };
    (graph.nodes().iter().zip(on_chip).map(start).collect(), end)
}

/// Memory for the sums of the most demanding norm or bias.
struct SumMemory {
    chunks: CudaSlice<f32>,
    groups: CudaSlice<f64>,
    tickets: CudaSlice<u32>,
}

impl SumMemory {
    fn new(cuda: &Cuda, graph: &Graph, batch: usize) -> Result<Self> {
        let mut most = [0; 3];
        for node in graph.nodes() {
            let channels = node.shape.channels;
            let sizes = Reduction::new(batch * node.shape.pixels(), channels).sizes();
            most = std::array::from_fn(|i| sizes[i].max(most[i]));
        }
        for cut in on_chip(cuda, graph, batch)?.into_iter().flatten() {
            most[0] = most[0].max(cut.partials());
        }
        Ok(SumMemory {
            chunks: cuda.zeros(most[0], "sums over rows")?,
            groups: cuda.zeros(most[1], "sums over rows")?,
            tickets: cuda.zeros(most[2], "sums over rows")?,
        })
    }

    fn places(&self, cuda: &Cuda) -> Sums {
        Sums {
            chunks: cuda.pointer(&self.chunks),
            groups: cuda.pointer(&self.groups),
            tickets: cuda.pointer(&self.tickets),
        }
    }

    fn bytes(&self) -> usize {
        4 * (self.chunks.len() + 2 * self.groups.len() + self.tickets.len())
    }
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
