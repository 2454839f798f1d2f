//! A planned graph on the GPU, and its layers, which [`crate::walk`] goes through. Nothing in a
//! pass waits or allocates.

mod conv;
mod gradient_sums;
mod norm;
mod output;
mod passes;
mod prepare;
mod profile;
mod simple;
mod sync_norm;
mod walk;

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice};

use super::batches::View;
use super::bound_stream::{BoundStream, Pending};
use super::convolution::Convolution;
use super::launch::{Kernels, Meeting, NormTensors, OnChip, Pointer, Reduction, Sums};
use super::memory::{Staging, Workspace, batch_that_fits};
use super::parameters::{Parameters, from_bf16};
use super::profile::{Cost, Part};
use super::stream::{Carrier, GpuStream};
use super::{Cuda, Doing, slice};
use crate::{
    Buffer, Error, Graph, Input, NetworkOptions, Node, NodeId, Op, Parameter, ParameterGroup, Plan,
    Precision, Result, Scalar, Slot, Tensors,
};
use gradient_sums::Bucket;
use passes::Inferences;
use sync_norm::SyncMemory;
pub(crate) use walk::Walk as CudaWalk;

/// Layers by which weight gradients may be late: so much longer is kept what they read.
const LAG: usize = 3;

/// A graph with its memory and parameters on a GPU.
pub(crate) struct CudaNetwork {
    graph: Arc<Graph>,
    state: State,
}

/// Everything but the graph, so that both can be borrowed while this changes.
pub(crate) struct State {
    cuda: Cuda,
    /// Where work goes, and where work goes on beside it.
    stream: Arc<BoundStream>,
    side: Arc<BoundStream>,
    /// Weight gradients of the last backward pass that are not waited for yet.
    pending: Pending,
    /// When all of them but the first matrix's are summed over processes, where there are several.
    summed: Option<CudaEvent>,
    pending_recorded: bool,
    /// [`GpuStream::since`] then.
    pending_since: (usize, u64),
    inferences: Inferences,
    /// Where set, passes do this part alone.
    only: Option<Part>,
    training: Plan,
    inference: Plan,
    /// The prepared convolution of each layer that is one (linear layers are 1×1 convolutions).
    convolutions: Vec<Option<Convolution>>,
    parameters: Parameters,
    /// Channels of a picture, without and with those added.
    channels: usize,
    input_channels: usize,
    /// Where the rows of each layer's norm begin.
    norm_starts: Vec<usize>,
    /// How the chip holds each norm's tensor, if it can, and counters for its blocks to meet.
    on_chip: Vec<Option<OnChip>>,
    arrivals: CudaSlice<u64>,
    /// Where the bits of each layer's ReLU begin.
    relu_mask_starts: Vec<Option<usize>>,
    /// Convolutions' working memory, for the stream and for the one beside it.
    workspaces: [Workspace; 2],
    /// Sums over rows, for the stream and for the one beside it.
    sums: [SumMemory; 2],
    /// Pixels to infer, on their way; and where rows are gathered.
    staging: Staging,
    output: Buffer,
    output_gradient: Buffer,
    input_gradient: Option<Buffer>,
    /// What dropout draws by, beside pass, layer and step; u64: the step, where the stream keeps
    /// it.
    seed: u64,
    step: Pointer,
    last_was_training: bool,
    /// The pass whose memory is at hand, that memory, and the memory of the others.
    pass: usize,
    memory: PassMemory,
    others: Vec<PassMemory>,
    /// The ways to other processes that take the step, if there are any; how gradients are cut on
    /// the way; and room for norms over the rows of all, if norms are to be that.
    carrier: Option<Carrier>,
    buckets: Vec<Bucket>,
    first_has_bias: bool,
    wants_sync_norm: bool,
    sync_memory: Option<SyncMemory>,
}

/// What each pass has for itself.
struct PassMemory {
    /// Activations and their gradients, in the device's precision.
    arena: CudaSlice<u8>,
    /// The pictures, where they have channels added to them.
    padded: Option<CudaSlice<u8>>,
    /// Four rows of channels for each batch norm.
    norms: CudaSlice<f32>,
    /// Which values a ReLU let pass after a residual was added, a bit each.
    relu_mask: CudaSlice<u8>,
}

impl CudaNetwork {
    pub(super) fn new(cuda: &Cuda, graph: &Arc<Graph>, options: &NetworkOptions) -> Result<Self> {
        let stream = cuda.bound_stream()?;
        let training = Plan::training_with_lag(graph, options, LAG)?;
        let inference = Plan::inference(graph, options)?;
        let bytes = cuda.precision().bytes() * training.arena.max(inference.arena);
        let (norm_starts, norms) = norm_starts(graph);
        let rows = options.passes * options.batch;
        let output = rows * graph.shape(graph.output_node()).len();
        let pixels = options.batch * graph.nodes()[0].shape.len();
        let what = format!("activations of {} pictures", options.batch);
        let each = bytes / options.batch + 4 * graph.nodes()[0].shape.len();
        let too_large = |e| batch_that_fits(e, options.batch, each, cuda.precision());
        let input_channels = padded_channels(graph, options, cuda.precision());
        let on_chip = on_chip(cuda, graph, options.batch)?;
        let (relu_mask_starts, relu_mask) = relu_mask_starts(graph, options.batch, &on_chip);
        let memory = |there: usize| -> Result<PassMemory> {
            let places = options.batch * graph.nodes()[0].shape.pixels();
            let padding = cuda.precision().bytes() * places * input_channels;
            let padded = || cuda.zeros(there * padding, "a batch of pictures");
            let wanted = input_channels != graph.nodes()[0].shape.channels;
            Ok(PassMemory {
                arena: cuda.zeros(there * bytes, &what).map_err(too_large)?,
                padded: wanted.then(padded).transpose().map_err(too_large)?,
                norms: cuda.zeros(there * norms, "batch statistics")?,
                relu_mask: cuda.zeros(there * relu_mask, "signs of activations")?,
            })
        };
        let inputs = rows * graph.nodes()[0].shape.len();
        let first = memory(1)?;
        // The first pass's memory is the one at hand.
        let others = (0..options.passes).map(|pass| memory(usize::from(pass > 0)));
        check_places(graph, options.batch)?;
        let mut state = State {
            channels: graph.nodes()[0].shape.channels,
            input_channels,
            convolutions: vec![],
            parameters: Parameters::new(cuda, graph, options, input_channels)?,
            norm_starts,
            on_chip,
            relu_mask_starts,
            pass: 0,
            memory: first,
            others: others.collect::<Result<_>>()?,
            arrivals: cuda.zeros(norms / 16, "counters")?,
            workspaces: [
                Workspace::new(cuda, 0, "a convolution's working memory")?,
                Workspace::new(cuda, 0, "a convolution's working memory")?,
            ],
            sums: [
                SumMemory::new(cuda, graph, options.batch)?,
                SumMemory::new(cuda, graph, options.batch)?,
            ],
            staging: Staging::new(cuda, pixels)?,
            output: cuda.buffer(output, "the output")?,
            output_gradient: cuda.buffer(output, "the output's gradient")?,
            input_gradient: match options.input_gradient {
                true => Some(cuda.buffer(inputs, "the input's gradient")?),
                false => None,
            },
            seed: 0,
            step: 0,
            last_was_training: false,
            cuda: cuda.clone(),
            side: stream.clone(),
            stream,
            pending: Pending::new(),
            summed: None,
            pending_recorded: false,
            pending_since: (0, 0),
            inferences: Inferences::default(),
            only: None,
            training,
            inference,
            carrier: None,
            buckets: vec![],
            first_has_bias: false,
            wants_sync_norm: options.sync_norm,
            sync_memory: None,
        };
        state.choose_algorithms(graph)?;
        state.cut_buckets(graph);
        Ok(CudaNetwork { graph: graph.clone(), state })
    }

    /// A number that no other living network has.
    fn identity(&self) -> Pointer {
        self.state.parameters.identity()
    }

    /// Running statistics that each process has moved by its own rows become their mean over all
    /// processes; the same bits everywhere, also where all have moved them by the same rows.
    fn agree_on_statistics(&self, stream: &mut GpuStream) -> Result<()> {
        if stream.together().is_none() {
            return Ok(());
        }
        let (at, len) = self.state.parameters.statistics();
        let cost = Cost { flops: 0.0, bytes: 4.0 * len as f64 };
        stream.part(Part::Communication, cost, ("statistics", at), |stream| {
            let [main, _] = stream.streams();
            match stream.together() {
                Some(together) => together.mean(&main.inner, at, len),
                None => Ok(()),
            }
        })
    }

    /// Makes a view, or copies rows, to where the first layer reads.
    fn take_input(&self, stream: &GpuStream, input: &Input) -> Result<()> {
        let state = &self.state;
        let (cuda, one) = (&state.cuda, self.graph.nodes()[0].shape.len());
        let len = state.training.value[0].len;
        match input {
            Input::Rows { rows, first } => {
                let from = slice(cuda, rows)? + 4 * (first * one) as u64;
                state.take_pixels(from, len, &state.training)
            }
            Input::Views { batch, views } => match batch.view(views)? {
                View::Rows(from) => state.take_pixels(from, len, &state.training),
                View::Gathered { rows, indices } => {
                    let to = state.staging.arrival(cuda);
                    let shape = [state.batch(), one];
                    state.kernels().gather_rows(rows, indices, shape, to)?;
                    state.take_pixels(to, len, &state.training)
                }
                View::Made(made) => {
                    let form = (state.input_channels, cuda.precision() == Precision::Bf16);
                    let places = batch.batch * self.graph.nodes()[0].shape.pixels();
                    let each = places * state.input_channels * cuda.precision().bytes();
                    let streams = (stream, &*state.stream);
                    for (place, view) in views.clone().enumerate() {
                        let to = state.value(0) + (place * each) as u64;
                        made.make(streams, &batch.indices, view, form, to)?;
                    }
                    Ok(())
                }
            },
        }
    }
}

impl State {
    /// Makes a pass's memory the one at hand.
    fn select(&mut self, pass: usize) {
        for turn in [self.pass, pass] {
            std::mem::swap(&mut self.memory, &mut self.others[turn]);
        }
        self.parameters.select(pass);
        self.pass = pass;
    }

    /// Work goes to a stream from now on.
    fn follow_stream(&mut self, stream: &GpuStream) {
        [self.stream, self.side] = stream.streams();
        self.step = stream.dropout_step();
        self.only = stream.only();
        self.carrier = stream.carrier();
    }

    /// Room for norms over the rows of all processes, before the first of them.
    fn make_room_to_sync(&mut self, graph: &Graph, stream: &GpuStream) -> Result<()> {
        if let (Some(together), true, None) =
            (stream.together(), self.wants_sync_norm, &self.sync_memory)
        {
            let ranks = together.nccl.ranks();
            self.sync_memory = Some(SyncMemory::new(&self.cuda, graph, ranks)?);
        }
        Ok(())
    }

    /// Where the values of the pass at hand begin among those of all passes.
    fn part_of(&self, buffer: &Buffer) -> Pointer {
        let each = buffer.len() / self.others.len();
        let place = slice(&self.cuda, buffer).expect("the network's own buffer");
        place + 4 * (self.pass * each) as u64
    }

    /// Values of the output of one pass.
    fn output_len(&self) -> usize {
        self.output.len() / self.others.len()
    }

    fn bind(&self) -> Result<()> {
        let context = self.cuda.stream().context();
        context.bind_to_thread().doing("an earlier error of the GPU")
    }

    fn kernels(&self) -> &Kernels {
        &self.stream.kernels
    }

    fn at(&self, slot: &Slot) -> Pointer {
        let offset = slot.start * self.cuda.precision().bytes();
        self.cuda.pointer(&self.memory.arena) + offset as u64
    }

    /// A layer's output in a training pass.
    fn value(&self, node: usize) -> Pointer {
        self.output_in(&self.training, node)
    }

    /// A layer's output in a pass of this plan.
    fn output_in(&self, plan: &Plan, node: usize) -> Pointer {
        match &self.memory.padded {
            Some(pictures) if node == 0 => self.cuda.pointer(pictures),
            _ => self.at(&plan.value[node]),
        }
    }

    /// Pictures in f32 that have arrived on the device, as the first layer reads them.
    fn take_pixels(&self, from: Pointer, len: usize, plan: &Plan) -> Result<()> {
        let (k, to) = (self.kernels(), self.output_in(plan, 0));
        match self.memory.padded {
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
        let first = node.norm_parameters();
        let value = |k| self.parameters.value(first + k);
        NormTensors {
            gamma: value(0),
            beta: value(1),
            running_mean: value(2),
            running_variance: value(3),
            saved: self.cuda.pointer(&self.memory.norms) + 4 * self.norm_starts[i] as u64,
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
    fn relu_mask(&self, i: usize) -> Pointer {
        self.relu_mask_starts[i]
            .map_or(0, |start| self.cuda.pointer(&self.memory.relu_mask) + start as u64)
    }

    /// Where a convolution writes: to the saved buffer if a norm follows, else to the layer's
    /// output.
    fn before_norm(&self, i: usize, node: &Node) -> Pointer {
        match node.op.saved().before_norm {
            true => self.at(&self.training.saved[i]),
            false => self.value(i),
        }
    }

    /// Copies activations back.
    fn download(&self, slot: &Slot, len: usize) -> Result<Vec<f32>> {
        self.bind()?;
        let precision = self.cuda.precision();
        let start = slot.start * precision.bytes();
        let view = self.memory.arena.slice(start..start + len * precision.bytes());
        let bytes = self.cuda.stream().clone_dtoh(&view).doing("reading activations")?;
        Ok(match precision {
            Precision::Bf16 => {
                bytes.chunks_exact(2).map(|b| from_bf16(u16::from_le_bytes([b[0], b[1]]))).collect()
            }
            _ => bytes
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
        })
    }
}

impl CudaNetwork {
    pub(crate) fn memory_bytes(&self) -> usize {
        let s = &self.state;
        let sums: usize = s.sums.iter().map(SumMemory::bytes).sum();
        let working: usize = s.workspaces.iter().map(Workspace::bytes).sum();
        let scratch = working + sums + s.staging.bytes();
        let PassMemory { arena, padded, norms, relu_mask } = &s.memory;
        let padded = padded.as_ref().map_or(0, CudaSlice::len);
        let pass = arena.len() + relu_mask.len() + padded + 4 * norms.len();
        let inputs = s.input_gradient.as_ref().map_or(0, Buffer::len);
        let rows = 4 * (2 * s.output.len() + inputs);
        s.parameters.bytes() + s.others.len() * pass + scratch + rows
    }

    pub(crate) fn seed_dropout(&mut self, seed: u64) {
        self.state.seed = seed;
    }

    pub(crate) fn forward(
        &mut self,
        stream: &mut GpuStream,
        pass: usize,
        input: Input,
    ) -> Result<()> {
        self.state.bind()?;
        self.state.last_was_training = true;
        self.state.select(pass);
        self.state.make_room_to_sync(&self.graph, stream)?;
        let from = match &input {
            Input::Rows { rows, first } => (slice(&self.state.cuda, rows)?, *first, 0),
            Input::Views { batch, views } => {
                (slice(&self.state.cuda, &batch.indices)?, views.start, views.end)
            }
        };
        self.add_costs(stream, &profile::FORWARD);
        let made = Cost {
            flops: 0.0,
            bytes: self.state.training.value[0].len as f64
                * (1 + self.state.cuda.precision().bytes()) as f64,
        };
        let signature = ("forward", self.identity(), pass, from, self.state.seed);
        let network = &mut *self;
        stream.part(Part::Batch, made, signature, |stream| {
            network.state.follow_stream(stream);
            network.state.settle(stream)?;
            network.take_input(stream, &input)
        })?;
        stream.call(signature, |stream| {
            self.state.follow_stream(stream);
            self.state.forward_pass(&self.graph)
        })
    }

    pub(crate) fn output(&self) -> &Buffer {
        &self.state.output
    }

    pub(crate) fn output_and_gradient(&mut self) -> (&Buffer, &mut Buffer) {
        (&self.state.output, &mut self.state.output_gradient)
    }

    pub(crate) fn backward(&mut self, stream: &mut GpuStream, pass: usize) -> Result<()> {
        self.state.bind()?;
        self.state.select(pass);
        self.add_costs(stream, &profile::BACKWARD);
        let signature = ("backward", self.identity(), pass, self.state.seed);
        stream.call(signature, |stream| {
            self.state.follow_stream(stream);
            (self.state.pending, self.state.summed) = self.state.backward_pass(&self.graph)?;
            self.state.pending_recorded = stream.is_recording();
            self.state.pending_since = stream.since();
            let among_others = self.state.carrier.is_some();
            if !self.state.pending.is_empty() || among_others {
                stream.left_beside();
            }
            if among_others {
                stream.left_to_carrier();
            }
            Ok(())
        })
    }

    pub(crate) fn input_gradient(&self) -> Option<&Buffer> {
        self.state.input_gradient.as_ref()
    }

    pub(crate) fn regroup(&mut self, groups: &dyn Fn(&Parameter) -> ParameterGroup) -> Result<()> {
        self.state.bind()?;
        self.state.parameters.regroup(&self.graph, groups)
    }

    pub(crate) fn update(&mut self, stream: &mut GpuStream) -> Result<()> {
        self.state.bind()?;
        let cost = Cost { flops: 0.0, bytes: self.state.parameters.update_bytes() as f64 };
        self.agree_on_statistics(stream)?;
        let identity = ("update", self.identity());
        stream.part(Part::Optimiser, cost, identity, |stream| {
            self.state.follow_stream(stream);
            self.state.update(&self.graph, stream)
        })
    }

    pub(crate) fn follow(
        &mut self,
        stream: &mut GpuStream,
        other: &CudaNetwork,
        m: Scalar,
    ) -> Result<()> {
        self.agree_on_statistics(stream)?;
        let inputs = [stream.scalar(m), stream.flag()];
        let signature = ("follow", self.identity(), other.identity(), inputs);
        let cost = Cost { flops: 0.0, bytes: (12 * self.state.parameters.len()) as f64 };
        stream.part(Part::Optimiser, cost, signature, |stream| {
            let [main, _] = stream.streams();
            let (own, others) = (&self.state.parameters, &other.state.parameters);
            own.follow(&main.inner, inputs, others)
        })
    }

    pub(crate) fn infer(&mut self, _: usize, pixels: &[f32], output: &mut [f32]) -> Result<()> {
        let (state, graph) = (&mut self.state, &self.graph);
        state.bind()?;
        state.wait_beside()?;
        state.last_was_training = false;
        state.select(0);
        state.stream = state.cuda.bound_stream()?;
        let sent = state.staging.send(&state.cuda, pixels)?;
        state.take_pixels(sent, pixels.len(), &state.inference)?;
        state.infer_recorded(graph)?;
        state.read_inferred(graph, output)
    }

    pub(crate) fn kept(&self, node: NodeId, count: usize) -> Result<Vec<f32>> {
        let s = &self.state;
        let plan = if s.last_was_training { &s.training } else { &s.inference };
        let slot = plan.kept(&self.graph, node, count)?;
        s.download(&slot, slot.len)
    }

    pub(crate) fn read(&self, which: Tensors, parameter: usize) -> Result<Vec<f32>> {
        self.state.bind()?;
        self.state.wait_beside()?;
        self.state.parameters.read(which, parameter)
    }

    pub(crate) fn write(&mut self, which: Tensors, parameter: usize, values: &[f32]) -> Result<()> {
        self.state.bind()?;
        self.state.parameters.write(which, parameter, values)
    }
}

/// Channels that pictures have on the device: a tensor core's row full, where only convolutions
/// read them. The weights of channels added are zero, and so are their gradients.
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

/// No layer has more places in a batch than kernels, which count rows in 32 bits, can.
fn check_places(graph: &Graph, batch: usize) -> Result<()> {
    let places = |node: &Node| batch.saturating_mul(node.shape.pixels());
    match graph.nodes().iter().find(|n| places(n) > i32::MAX as usize) {
        None => Ok(()),
        Some(node) => Err(Error::Plan(format!(
            "{}: a batch of {batch} has {} places there, more than a GPU's kernels can count: \
             take a smaller one",
            node.name,
            places(node)
        ))),
    }
}

/// Where the four rows of each layer's norm begin, and how many values all of them take.
fn norm_starts(graph: &Graph) -> (Vec<usize>, usize) {
    let mut end = 0;
    let start = |node: &Node| {
        let start = end;
        if node.op.norm().is_some() {
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
        node.op.norm()?;
        let (rows, channels) = (batch * node.shape.pixels(), node.shape.channels);
        OnChip::new(rows, channels, multiprocessors, cuda.precision(), most_shared)
    };
    Ok(graph.nodes().iter().map(cut).collect())
}

/// Where the signs of each layer begin that adds a residual before its ReLU and is done on the
/// chip, and how many bytes they take.
fn relu_mask_starts(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_places_than_can_be_counted_are_refused() {
        let mut g = Graph::new();
        let x = g.input(1 << 8, 1 << 8, 1);
        g.global_avg_pool("pool", x).unwrap();
        assert!(check_places(&g, (1 << 15) - 1).is_ok());
        for batch in [1 << 15, 1 << 16, usize::MAX] {
            assert!(matches!(check_places(&g, batch), Err(Error::Plan(_))));
        }
    }
}
