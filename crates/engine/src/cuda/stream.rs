//! The GPU's stream: the calls of a step run one by one the first time, are captured as a CUDA graph the second time, and
//! from then on are one launch.
//!
//! Every call has a signature: what it is, and the places and numbers it was given. A step that is replayed makes its calls
//! all the same, and they only add up their signatures: where these are not those that were recorded, nothing has been
//! launched yet, and the step is run call by call. So nobody has to say when a recording no longer holds.
//!
//! A host call cuts a step in parts, each a graph of its own.
//!
//! Where several processes take the step, what they do together is part of it, and of its graph.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};

use super::bound_stream::{BoundStream, CudaGraph};
use super::launch::Pointer;
use super::losses::{Losses, StepLoss};
use super::nccl::{Kind, Nccl};
use super::optimisers::StepInputs;
use super::profile::{Cost, Part, most_bytes, most_flops};
use super::similarity::{
    self, Blend, Contrastive, CudaPositives, GatheredRows, Nearest, PositivePointers, ShardShape,
    ShardSoftmax, SoftmaxKernels, ViewShape,
};
use super::tiles::enqueue_tiles;
use super::together::{Together, after};
use super::{Cuda, FIRST, LAST, failed, slice};
use crate::buffer::of_another_device;
use crate::stream::{Counting, Loss, SoftmaxLoss, Stepped, StreamBackend, Tiles, made_for_shape};
use crate::{Buffer, Communicator, Epoch, Error, PartTime, Profile, Result, RowSample, Scalar};

/// Steps whose losses can wait to be read.
const CAPACITY: usize = 4096;

/// How often a step that could not be recorded is tried again.
const MOST_REFUSALS: usize = 3;

/// Threads of the first kernel of a step.
const THREADS: u32 = 256;

pub(super) struct GpuStream {
    cuda: Cuda,
    /// Where calls go: the device's own stream, or the one that records.
    stream: Arc<BoundStream>,
    direct: Arc<BoundStream>,
    recorder: Option<Arc<BoundStream>>,
    /// For work beside a pass; and whether there is any that was not waited for.
    side: Arc<BoundStream>,
    beside: bool,
    /// How often the stream has waited for the side.
    joins: u64,
    /// Whether a step was begun and has not ended.
    inside: bool,
    mode: Mode,
    signature: u64,
    known: Known,
    refusals: usize,
    /// The graphs launched so far in this step, where a host call cuts it.
    launched: usize,
    recording: Vec<(u64, CudaGraph)>,
    counters: Counters,
    kernels: StepKernels,
    softmax: Vec<SoftmaxKernels>,
    contrastive: Vec<Contrastive>,
    nearest: Vec<Nearest>,
    /// The step in the epoch and the number of the next step, as the device counts them.
    step: usize,
    number: u64,
    /// Steps whose losses nobody has read.
    asked: Vec<u64>,
    profiling: Option<Profiling>,
    /// One for each shape that was met.
    shards: Vec<ShardSoftmax>,
    gathered: Vec<GatheredRows>,
    /// Whether the carrier has sums that were not waited for.
    carrying: bool,
    /// The last to go: graphs must have gone before.
    together: Option<Together>,
}

/// What the calls of a step do at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They run.
    Direct,
    /// They are recorded.
    Recording,
    /// They are known, and only compared.
    Replaying,
    /// They are known and were not the same: nothing more is done.
    Differing,
}

/// What is known of a step's calls.
enum Known {
    Nothing,
    /// They ran once.
    Seen,
    /// They are these graphs, each with the signature up to its end.
    Recorded(Vec<(u64, CudaGraph)>),
    /// They cannot be recorded.
    Refused,
}

/// What lies in device memory because it changes from step to step.
struct Counters {
    next: CudaSlice<u64>,
    current: CudaSlice<u64>,
    schedules: Option<CudaSlice<f32>>,
    steps: usize,
    count: usize,
    scalars: CudaSlice<f32>,
    loss: CudaSlice<f64>,
    ring: CudaSlice<f32>,
    flag: CudaSlice<u32>,
}

struct StepKernels {
    begin: CudaFunction,
    set: CudaFunction,
    add: CudaFunction,
    blend: CudaFunction,
    losses: Losses,
    quarters: CudaFunction,
    tiles: CudaFunction,
    uniform: CudaFunction,
}

/// A step being timed part by part: the whole of it first.
struct Profiling {
    only: Option<Part>,
    left: std::slice::Iter<'static, Part>,
    whole: f64,
    costs: Vec<(Part, Cost)>,
    parts: Vec<PartTime>,
}

impl GpuStream {
    pub(super) fn new(cuda: &Cuda) -> Result<Self> {
        let direct = cuda.bound_stream()?;
        Ok(GpuStream {
            stream: direct.clone(),
            direct,
            recorder: None,
            side: Arc::new(cuda.new_bound_stream(LAST)?),
            beside: false,
            joins: 0,
            inside: false,
            mode: Mode::Direct,
            signature: 0,
            known: Known::Nothing,
            refusals: 0,
            launched: 0,
            recording: vec![],
            counters: Counters {
                next: cuda.zeros(3, "counters")?,
                current: cuda.zeros(4, "counters")?,
                schedules: None,
                steps: 0,
                count: 0,
                scalars: cuda.zeros(Scalar::MOST, "schedules")?,
                loss: cuda.zeros(1, "the loss of a step")?,
                ring: cuda.zeros(CAPACITY, "losses of steps")?,
                flag: cuda.zeros(1, "a flag")?,
            },
            kernels: StepKernels {
                begin: cuda.function("steps", "begin_step")?,
                set: cuda.function("steps", "set_step")?,
                add: cuda.function("steps", "add_values")?,
                blend: similarity::blend_kernel(cuda)?,
                losses: Losses::load(cuda)?,
                quarters: cuda.function("quarters", "quarters")?,
                tiles: cuda.function("tiles", "tiles")?,
                uniform: cuda.function("steps", "uniform")?,
            },
            softmax: vec![],
            contrastive: vec![],
            nearest: vec![],
            step: 0,
            number: 0,
            asked: vec![],
            profiling: None,
            shards: vec![],
            gathered: vec![],
            carrying: false,
            together: None,
            cuda: cuda.clone(),
        })
    }

    /// The stream of a GPU, whoever stands before it.
    pub(super) fn of(stream: &mut dyn StreamBackend) -> Result<&mut GpuStream> {
        stream.as_any().downcast_mut().ok_or_else(of_another_device)
    }

    /// The next step of the epoch.
    pub(super) fn step(&self) -> usize {
        self.step
    }

    /// Where calls go, and where work goes on beside them.
    pub(super) fn streams(&self) -> [Arc<BoundStream>; 2] {
        [self.stream.clone(), self.side.clone()]
    }

    /// Whether calls are recorded and not done.
    pub(super) fn is_recording(&self) -> bool {
        self.mode == Mode::Recording
    }

    /// Changes when all that was given to the side has been waited for.
    pub(super) fn since(&self) -> (usize, u64) {
        (Arc::as_ptr(&self.side) as usize, self.joins)
    }

    /// Says that something was given to the side and not waited for.
    pub(super) fn left_beside(&mut self) {
        self.beside = true;
    }

    /// The other processes that take its steps, if there are any.
    pub(super) fn together(&self) -> Option<&Together> {
        self.together.as_ref()
    }

    /// NCCL, and the stream for sums beside a pass: outside of a step they go on in their turn.
    pub(super) fn carrier(&self) -> Option<Carrier> {
        let together = self.together.as_ref()?;
        Some(Carrier {
            nccl: together.nccl.clone(),
            stream: match self.inside {
                true => together.carrier.clone(),
                false => self.stream.inner.clone(),
            },
        })
    }

    /// Says that the carrier was given sums that were not waited for.
    pub(super) fn left_to_carrier(&mut self) {
        self.carrying = self.inside;
    }

    /// The stream waits for all that was given to the carrier.
    pub(super) fn wait_for_carrier(&mut self) -> Result<()> {
        match (std::mem::take(&mut self.carrying), &self.together) {
            (true, Some(together)) => after(&self.stream.inner, &together.carrier),
            (true, None) | (false, _) => Ok(()),
        }
    }

    /// The part of a step that alone is to run, if one is.
    pub(super) fn only(&self) -> Option<Part> {
        self.profiling.as_ref().and_then(|p| p.only)
    }

    /// Where dropout reads the step's number.
    pub(super) fn dropout_step(&self) -> Pointer {
        self.cuda.pointer(&self.counters.current) + 24
    }

    /// Three u64: the step in the epoch, the epoch, the step's number among all.
    pub(super) fn current(&self) -> Pointer {
        self.cuda.pointer(&self.counters.current)
    }

    /// f32: a schedule's value in this step.
    pub(super) fn scalar(&self, which: Scalar) -> Pointer {
        self.cuda.pointer(&self.counters.scalars) + 4 * which.0 as u64
    }

    /// u32: not 0 where a loss was not finite.
    pub(super) fn flag(&self) -> Pointer {
        self.cuda.pointer(&self.counters.flag)
    }

    /// What an optimiser reads.
    pub(super) fn step_inputs(&self) -> StepInputs {
        StepInputs {
            rate: self.scalar(Scalar::RATE),
            current: self.current(),
            flag: self.flag(),
        }
    }

    /// A call of a step: its signature is kept in mind, and its work is done, recorded, or known already.
    pub(super) fn call(
        &mut self,
        signature: impl Hash,
        work: impl FnOnce(&mut GpuStream) -> Result<()>,
    ) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        (self.signature, signature).hash(&mut hasher);
        self.signature = hasher.finish();
        match self.mode {
            Mode::Direct | Mode::Recording => work(self),
            Mode::Replaying | Mode::Differing => Ok(()),
        }
    }

    /// The same for work that is of one part.
    pub(super) fn part(
        &mut self,
        part: Part,
        cost: Cost,
        signature: impl Hash,
        work: impl FnOnce(&mut GpuStream) -> Result<()>,
    ) -> Result<()> {
        self.add_cost(part, cost);
        match self.only() {
            Some(only) if only != part => Ok(()),
            _ => self.call((part as u32, signature), work),
        }
    }

    /// Keeps in mind what a part must do at least, when a step is timed.
    pub(super) fn add_cost(&mut self, part: Part, cost: Cost) {
        if let Some(profiling) = self.profiling.as_mut().filter(|p| p.only.is_none()) {
            profiling.costs.push((part, cost));
        }
    }

    /// First kernel of a step; an order of 0 leaves the batch's indices as they are.
    pub(super) fn begin_kernel(&mut self, order: Pointer, batch: usize, to: Pointer) -> Result<()> {
        let c = &self.counters;
        let schedules = (c.schedules.as_ref()).map_or(0, |v| self.cuda.pointer(v));
        let places = [order, to, schedules];
        let signature = ("begin", places, batch, c.steps, c.count);
        self.part(Part::Batch, Cost::default(), signature, |s| {
            let (cuda, c) = (&s.cuda, &s.counters);
            let [next, current] = [&c.next, &c.current].map(|v| cuda.pointer(v));
            let (scalars, loss) = (cuda.pointer(&c.scalars), cuda.pointer(&c.loss));
            let (ring, capacity) = (cuda.pointer(&c.ring), CAPACITY as u32);
            let (batch, steps, count) = (batch as u32, c.steps as u32, c.count as u32);
            let mut launch = s.stream.inner.launch_builder(&s.kernels.begin);
            launch.arg(&next).arg(&current).arg(&order).arg(&batch);
            launch.arg(&to).arg(&schedules).arg(&steps).arg(&count);
            launch.arg(&scalars).arg(&loss).arg(&ring).arg(&capacity);
            // SAFETY: the arguments are those of the kernel; the memory is the stream's and the batches' own.
            let launched = unsafe { launch.launch(one_block()) };
            launched
                .map(drop)
                .map_err(|e| failed("beginning a step", e))
        })
    }

    /// The stream waits for all that was given to the side and to the carrier.
    pub(super) fn join_beside(&mut self) -> Result<()> {
        self.wait_for_carrier()?;
        self.joins += 1;
        if !std::mem::take(&mut self.beside) {
            return Ok(());
        }
        let failed = |e| failed("work on two streams", e);
        let done = self.side.inner.record_event(None).map_err(failed)?;
        self.stream.inner.wait(&done).map_err(failed)
    }

    /// Work that nobody waits for before the step ends, beside what comes next; outside of a step, in its turn.
    fn run_beside(
        &mut self,
        work: impl FnOnce(&GpuStream, &BoundStream) -> Result<()>,
    ) -> Result<()> {
        if !self.inside {
            return work(self, &self.stream);
        }
        let failed = |e| failed("work on two streams", e);
        let ready = self.stream.inner.record_event(None).map_err(failed)?;
        self.side.inner.wait(&ready).map_err(failed)?;
        self.beside = true;
        work(self, &self.side)
    }

    /// Adds rows of losses to the step's.
    fn lose(&mut self, rows: &Buffer, weight: f32) -> Result<()> {
        let (at, count) = (slice(&self.cuda, rows)?, rows.len());
        let signature = ("lose", at, count, weight.to_bits());
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (cuda, c) = (&s.cuda, &s.counters);
            let step = StepLoss {
                sum: cuda.pointer(&c.loss),
                ring: cuda.pointer(&c.ring),
                capacity: CAPACITY,
                current: s.current(),
                flag: s.flag(),
            };
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            let Some(together) = &s.together else {
                return losses.accumulate_loss(stream, at, count, weight, &step);
            };
            let share = together.share(cuda);
            losses.loss_share(stream, at, count, weight, share)?;
            together.nccl.all_reduce(stream, share, 1, Kind::F64)?;
            losses.add_loss(stream, share, &step)
        })
    }

    /// The softmax over keys that are all here.
    fn softmax_whole(&mut self, call: &SoftmaxCall) -> Result<()> {
        let (cuda, dim) = (self.cuda.clone(), call.dim);
        let fits = |kept: &SoftmaxKernels| kept.fits(call.batch, call.n, dim);
        let make = || SoftmaxKernels::new(&cuda, call.batch, call.n, dim);
        let place = made_for_shape(&mut self.softmax, fits, make)?;
        self.part(Part::Loss, call.cost(1), call.signature(), |s| {
            let (stream, c) = (&s.stream.inner, call);
            s.softmax[place].enqueue(stream, c.places, c.numbers, c.positives, c.outputs)
        })
    }

    /// The softmax of all processes' queries over all processes' keys, of which some are here, or over a sample of them.
    fn softmax_shards(
        &mut self,
        call: &SoftmaxCall,
        of: &SoftmaxLoss,
        sample: Option<RowSample>,
    ) -> Result<()> {
        if call.positives.items == 0 {
            let why = "queries over keys in parts need items to be told apart";
            return Err(Error::Plan(why.into()));
        }
        let nccl = self.together.as_ref().map(|t| t.nccl.clone());
        let nccl = nccl.filter(|_| of.keys.shard().is_some());
        let (cuda, here) = (self.cuda.clone(), of.positives.here());
        let shape = ShardShape {
            ranks: nccl.as_ref().map_or(1, |nccl| nccl.ranks()),
            count: call.batch,
            items: call.positives.count,
            dim: call.dim,
            n: call.n,
            first: of.keys.shard().map_or(0, |shard| shard.first),
            keys: of.positives.keys(),
            known: [here.start, here.len(), of.positives.most()],
            sample,
        };
        let place = made_for_shape(
            &mut self.shards,
            |kept| kept.fits(&shape),
            || ShardSoftmax::new(&cuda, shape),
        )?;
        let step = self.current() + 16; // the third: its number among all
        let signature = ("shards", call.signature(), shape, step);
        self.part(Part::Loss, call.cost(shape.ranks), signature, |s| {
            let (stream, [queries, keys]) = (&s.stream.inner, call.places);
            let (places, nccl) = ([queries, keys, step], nccl.as_deref());
            let (numbers, outputs) = (call.numbers, call.outputs);
            s.shards[place].enqueue(stream, nccl, places, numbers, call.positives, outputs)
        })
    }

    /// The softmax of a step, over a sample of the keys where one is asked for.
    fn softmax(&mut self, of: &SoftmaxLoss, sample: Option<RowSample>, loss: Loss) -> Result<()> {
        let cuda = self.cuda.clone();
        let batch = similarity::rows("queries", of.queries.len(), of.dim)?;
        let n = similarity::rows("keys", of.keys.len(), of.dim)?;
        let positives: &CudaPositives = of.positives.memory()?;
        let items = of
            .items
            .map(|items| Ok((slice(&cuda, items)?, items.len())));
        let items: Option<(Pointer, usize)> = items.transpose()?;
        let count = items.map_or(of.positives.len(), |(_, len)| len);
        let positives = PositivePointers {
            each: positives.each,
            starts: cuda.pointer(&positives.starts),
            members: cuda.pointer(&positives.members),
            items: items.map_or(0, |(at, _)| at),
            count,
        };
        let [queries, keys] = [slice(&cuda, of.queries)?, slice(&cuda, of.keys)?];
        let outputs = [slice(&cuda, loss.rows)?, slice(&cuda, loss.gradient)?];
        let call = SoftmaxCall {
            batch,
            n,
            dim: of.dim,
            places: [queries, keys],
            numbers: [of.temperature, loss.weight],
            positives,
            outputs,
        };
        match of.keys.shard().is_some() || sample.is_some() {
            false => self.softmax_whole(&call)?,
            true => self.softmax_shards(&call, of, sample)?,
        }
        self.lose(loss.rows, loss.weight)
    }

    /// Begins to record on a stream of its own, which keeps what other threads do meanwhile out of it.
    fn begin_recording(&mut self) -> Result<()> {
        let recorder = match &self.recorder {
            Some(recorder) => recorder.clone(),
            None => {
                let made = Arc::new(self.cuda.new_bound_stream(FIRST)?);
                self.recorder.insert(made).clone()
            }
        };
        recorder.begin_capture()?;
        self.stream = recorder;
        Ok(())
    }

    /// Ends it in any case; what was recorded, unless the work has failed.
    fn end_recording(&mut self, worked: Result<()>) -> Result<CudaGraph> {
        let joined = self.join_beside();
        let recorder = std::mem::replace(&mut self.stream, self.direct.clone());
        let recording = recorder.end_capture();
        worked.and(joined)?;
        recording
    }

    fn asked_for(&mut self) -> Stepped {
        self.asked.push(self.number);
        self.step += 1;
        self.number += 1;
        Stepped::Done
    }
}

impl StreamBackend for GpuStream {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn join(&mut self, communicator: &Communicator) -> Result<()> {
        self.together = Some(Together::new(&self.cuda, communicator)?);
        Ok(())
    }

    fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        let (stream, c) = (self.cuda.stream().clone(), &mut self.counters);
        let failed = |e| failed("sending an epoch's schedule", e);
        let next = [epoch.first as u64, epoch.epoch, epoch.number];
        stream.memcpy_htod(&next, &mut c.next).map_err(failed)?;
        let values = epoch.scalars.concat();
        (c.count, c.steps) = (
            epoch.scalars.len(),
            epoch.scalars.first().map_or(0, Vec::len),
        );
        if !values.is_empty() {
            let place = match &mut c.schedules {
                Some(place) if place.len() >= values.len() => place,
                place => place.insert(self.cuda.zeros(values.len(), "schedules")?),
            };
            stream.memcpy_htod(&values, place).map_err(failed)?;
        }
        (self.step, self.number) = (epoch.first, epoch.number);
        Ok(())
    }

    fn begin_step(&mut self) -> Result<()> {
        if self.asked.len() >= CAPACITY {
            return Err(Error::Plan(format!(
                "{CAPACITY} steps were asked for, and the losses of none were read"
            )));
        }
        self.signature = 0;
        self.launched = 0;
        self.inside = true;
        self.recording.clear();
        self.mode = match &self.known {
            Known::Nothing | Known::Refused => Mode::Direct,
            Known::Seen => Mode::Recording,
            Known::Recorded(_) => Mode::Replaying,
        };
        match self.mode {
            Mode::Recording => self.begin_recording(),
            Mode::Direct | Mode::Replaying | Mode::Differing => Ok(()),
        }
    }

    fn end_step(&mut self, worked: Result<()>) -> Result<Stepped> {
        self.inside = false;
        match std::mem::replace(&mut self.mode, Mode::Direct) {
            Mode::Direct => {
                worked.and(self.join_beside())?;
                if !matches!(self.known, Known::Refused) {
                    self.known = Known::Seen;
                }
                Ok(self.asked_for())
            }
            Mode::Recording => match self.end_recording(worked) {
                Ok(mut recording) => {
                    recording.launch(&self.cuda)?;
                    self.recording.push((self.signature, recording));
                    self.known = Known::Recorded(std::mem::take(&mut self.recording));
                    Ok(self.asked_for())
                }
                // Call by call it is; should that fail too, it says why. Memory that a call needs for the first time cannot
                // be had while recording, so it is tried again.
                Err(_) if self.recording.is_empty() => {
                    self.refusals += 1;
                    self.known = match self.refusals < MOST_REFUSALS {
                        true => Known::Nothing,
                        false => Known::Refused,
                    };
                    Ok(Stepped::Again)
                }
                Err(error) => Err(error),
            },
            Mode::Replaying => {
                worked?;
                let launched = self.launched;
                let Known::Recorded(parts) = &mut self.known else {
                    unreachable!("only what is recorded is replayed");
                };
                match parts.get_mut(launched) {
                    Some((signature, last)) if *signature == self.signature => {
                        last.launch(&self.cuda)?;
                        Ok(self.asked_for())
                    }
                    _ if launched == 0 => {
                        self.known = Known::Nothing;
                        Ok(Stepped::Again)
                    }
                    _ => Err(other_calls()),
                }
            }
            Mode::Differing => {
                self.known = Known::Nothing;
                Ok(Stepped::Again)
            }
        }
    }

    fn host_call(&mut self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        match self.mode {
            Mode::Direct => {
                self.join_beside()?;
                self.cuda.synchronise()?;
                work()
            }
            Mode::Recording => {
                let mut recording = self.end_recording(Ok(()))?;
                recording.launch(&self.cuda)?;
                self.recording.push((self.signature, recording));
                self.cuda.synchronise()?;
                work()?;
                self.begin_recording()
            }
            Mode::Replaying => {
                let launched = self.launched;
                let Known::Recorded(parts) = &mut self.known else {
                    unreachable!("only what is recorded is replayed");
                };
                match parts.get_mut(launched) {
                    Some((signature, part)) if *signature == self.signature => {
                        part.launch(&self.cuda)?;
                    }
                    _ if launched == 0 => {
                        self.mode = Mode::Differing;
                        return Ok(());
                    }
                    _ => return Err(other_calls()),
                }
                self.launched += 1;
                self.cuda.synchronise()?;
                work()
            }
            Mode::Differing => Ok(()),
        }
    }

    fn losses(&mut self, into: &mut Vec<f64>) -> Result<()> {
        let stream = self.cuda.stream();
        let failed = |e| failed("reading losses", e);
        let flag = &mut self.counters.flag;
        if self.asked.is_empty() {
            return stream.memset_zeros(flag).map_err(failed);
        }
        let mut ring = vec![0.0; CAPACITY];
        stream
            .memcpy_dtoh(&self.counters.ring, &mut ring)
            .map_err(failed)?;
        stream.memset_zeros(flag).map_err(failed)?;
        let loss = |number: u64| f64::from(ring[(number % CAPACITY as u64) as usize]);
        into.extend(self.asked.drain(..).map(loss));
        Ok(())
    }

    fn capacity(&self) -> usize {
        CAPACITY - self.asked.len()
    }

    fn set_step(&mut self, number: u64, rate: f32) -> Result<()> {
        let (cuda, c) = (&self.cuda, &self.counters);
        let (current, scalars) = (cuda.pointer(&c.current), cuda.pointer(&c.scalars));
        let loss = cuda.pointer(&c.loss);
        let mut launch = self.direct.inner.launch_builder(&self.kernels.set);
        launch.arg(&number).arg(&rate).arg(&current);
        launch.arg(&scalars).arg(&loss);
        let one = LaunchConfig {
            block_dim: (1, 1, 1),
            ..one_block()
        };
        // SAFETY: the arguments are those of the kernel; the memory is the stream's own.
        let launched = unsafe { launch.launch(one) };
        launched
            .map(drop)
            .map_err(|e| failed("setting the step", e))
    }

    fn softmax_loss(&mut self, of: &SoftmaxLoss, loss: Loss) -> Result<()> {
        self.softmax(of, None, loss)
    }

    fn sampled_softmax_loss(
        &mut self,
        of: &SoftmaxLoss,
        sample: RowSample,
        loss: Loss,
    ) -> Result<()> {
        self.softmax(of, Some(sample), loss)
    }

    fn cross_entropy(
        &mut self,
        logits: &Buffer,
        [labels, items]: [&Buffer<u32>; 2],
        classes: usize,
        weights: Option<&Buffer>,
        loss: Loss,
    ) -> Result<()> {
        let cuda = self.cuda.clone();
        let batch = items.len();
        let from = slice(&cuda, logits)?;
        let weights = weights.map(|w| slice(&cuda, w)).transpose()?;
        let words = [
            slice(&cuda, labels)?,
            slice(&cuda, items)?,
            weights.unwrap_or(0),
        ];
        let outputs = [slice(&cuda, loss.rows)?, slice(&cuda, loss.gradient)?];
        let weight = loss.weight;
        let signature = ("cross-entropy", from, words, outputs, weight.to_bits());
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.cross_entropy(stream, from, [batch, classes], words, weight, outputs)
        })?;
        self.lose(loss.rows, weight)
    }

    fn gather_rows(
        &mut self,
        from: &Buffer,
        dim: usize,
        items: &Buffer<u32>,
        to: &mut Buffer,
    ) -> Result<()> {
        let (cuda, rows) = (&self.cuda, items.len());
        let places = [slice(cuda, from)?, slice(cuda, items)?, slice(cuda, to)?];
        let cost = Cost {
            flops: 0.0,
            bytes: (8 * rows * dim) as f64,
        };
        self.part(Part::Memory, cost, ("gather", places, rows, dim), |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.gather_rows(stream, places, [rows, dim])
        })
    }

    fn quarters(
        &mut self,
        pixels: &Buffer,
        size: usize,
        channels: usize,
        to: &mut Buffer,
    ) -> Result<()> {
        let values = to.len();
        let pictures = pixels.len() / (size * size * channels);
        let [from, to] = [slice(&self.cuda, pixels)?, slice(&self.cuda, to)?];
        let cost = Cost {
            flops: 0.0,
            bytes: 8.0 * values as f64,
        };
        let shape = [pictures, size, channels].map(|n| n as u32);
        self.part(Part::Rest, cost, ("quarters", from, to, shape), |s| {
            let mut launch = s.stream.inner.launch_builder(&s.kernels.quarters);
            launch.arg(&from);
            shape.iter().for_each(|n| _ = launch.arg(n));
            launch.arg(&to);
            let grid = LaunchConfig {
                grid_dim: ((values.div_ceil(THREADS as usize)).max(1) as u32, 1, 1),
                ..one_block()
            };
            // SAFETY: the arguments are those of the kernel; both buffers cover the pictures, as the caller has checked.
            let launched = unsafe { launch.launch(grid) };
            launched
                .map(drop)
                .map_err(|e| failed("quarters of pictures", e))
        })
    }

    fn counting(&mut self, of: &Counting, distances: &mut Buffer, loss: Loss) -> Result<()> {
        let cuda = self.cuda.clone();
        let shape = [of.views, of.rows.len() / (of.views * of.dim), of.dim];
        let from = slice(&cuda, of.rows)?;
        let outputs = [
            slice(&cuda, distances)?,
            slice(&cuda, loss.rows)?,
            slice(&cuda, loss.gradient)?,
        ];
        let numbers = [of.margin, loss.weight];
        let signature = ("counting", from, outputs, shape, numbers.map(f32::to_bits));
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.counting(stream, from, shape, numbers, outputs)
        })?;
        self.lose(loss.rows, loss.weight)
    }

    fn contrastive(
        &mut self,
        rows: &Buffer,
        views: usize,
        dim: usize,
        temperature: f32,
        loss: Loss,
    ) -> Result<()> {
        let cuda = self.cuda.clone();
        let n = similarity::rows("rows", rows.len(), dim)?;
        let nccl = self.together.as_ref().map(|t| t.nccl.clone());
        let (rank, ranks) = nccl.as_ref().map_or((0, 1), |n| (n.rank(), n.ranks()));
        let own = n / views;
        let shape = ViewShape {
            views,
            batch: ranks * own,
            dim,
            first: rank * own,
            own,
        };
        let place = made_for_shape(
            &mut self.contrastive,
            |c| c.fits(shape),
            || Contrastive::new(&cuda, shape, nccl.is_some()),
        )?;
        let from = slice(&cuda, rows)?;
        let outputs = [slice(&cuda, loss.rows)?, slice(&cuda, loss.gradient)?];
        let weight = loss.weight;
        let numbers = [temperature.to_bits(), weight.to_bits()];
        let signature = ("contrastive", from, outputs, numbers, views, dim);
        let cost = Cost {
            flops: 6.0 * (ranks * n * n * dim) as f64,
            bytes: (4 * ranks * n * dim) as f64,
        };
        self.part(Part::Loss, cost, signature, |s| {
            let (loss, stream) = (&s.contrastive[place], &s.stream.inner);
            loss.enqueue(
                stream,
                nccl.as_deref(),
                from,
                [temperature, weight],
                outputs,
            )
        })?;
        self.lose(loss.rows, weight)
    }

    fn cosine(
        &mut self,
        [predictions, targets]: [&Buffer; 2],
        dim: usize,
        loss: Loss,
    ) -> Result<()> {
        let cuda = self.cuda.clone();
        let rows = similarity::rows("predictions", predictions.len(), dim)?;
        let from = [slice(&cuda, predictions)?, slice(&cuda, targets)?];
        let outputs = [slice(&cuda, loss.rows)?, slice(&cuda, loss.gradient)?];
        let weight = loss.weight;
        let signature = ("cosine", from, outputs, rows, dim, weight.to_bits());
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.cosine(stream, from, [rows, dim], weight, outputs)
        })?;
        self.lose(loss.rows, weight)
    }

    fn mean_squared(&mut self, [a, b]: [&Buffer; 2], dim: usize, loss: Loss) -> Result<()> {
        let cuda = self.cuda.clone();
        let rows = similarity::rows("rows", a.len(), dim)?;
        let from = [slice(&cuda, a)?, slice(&cuda, b)?];
        let outputs = [slice(&cuda, loss.rows)?, slice(&cuda, loss.gradient)?];
        let weight = loss.weight;
        let signature = ("squared", from, outputs, rows, dim, weight.to_bits());
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.mean_squared(stream, from, [rows, dim], weight, outputs)
        })?;
        self.lose(loss.rows, weight)
    }

    fn mean_of_others(
        &mut self,
        rows: &Buffer,
        views: usize,
        dim: usize,
        normalise: bool,
        to: &mut Buffer,
    ) -> Result<()> {
        let n = similarity::rows("rows", rows.len(), dim)?;
        let batch = n / views;
        let [from, to] = [slice(&self.cuda, rows)?, slice(&self.cuda, to)?];
        let signature = ("others", from, to, views, dim, normalise);
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.mean_of_others(stream, from, [views, batch, dim], normalise, to)
        })
    }

    fn nearest_rows(
        &mut self,
        [queries, keys]: [&Buffer; 2],
        dim: usize,
        to: &mut Buffer,
    ) -> Result<()> {
        let cuda = self.cuda.clone();
        let count = similarity::rows("queries", queries.len(), dim)?;
        let n = similarity::rows("keys", keys.len(), dim)?;
        let place = made_for_shape(
            &mut self.nearest,
            |kept| kept.fits(count, n, dim),
            || Nearest::new(&cuda, count, n, dim),
        )?;
        let places = [
            slice(&cuda, queries)?,
            slice(&cuda, keys)?,
            slice(&cuda, to)?,
        ];
        let cost = Cost {
            flops: 2.0 * (count * n * dim) as f64,
            bytes: (4 * (n + 2 * count) * dim) as f64,
        };
        self.part(Part::Loss, cost, ("nearest", places, count, n, dim), |s| {
            s.nearest[place].enqueue(&s.stream.inner, places)
        })
    }

    fn blend_rows(
        &mut self,
        keys: &mut Buffer,
        dim: usize,
        indices: &Buffer<u32>,
        queries: &Buffer,
        rate: f32,
    ) -> Result<()> {
        let cuda = self.cuda.clone();
        let (places, count) = (
            [slice(&cuda, queries)?, slice(&cuda, indices)?],
            indices.len(),
        );
        let here = similarity::rows("keys", keys.len(), dim)?;
        let mut blend = Blend {
            keys: slice(&cuda, keys)?,
            queries: places[0],
            dim,
            count,
            rate,
            indices: places[1],
            flag: self.flag(),
            here: 0..here,
        };
        let mut among = None;
        if let (Some(shard), Some(together)) = (keys.shard(), &self.together) {
            let (nccl, shape) = (together.nccl.clone(), [count, count, dim]);
            let place = made_for_shape(
                &mut self.gathered,
                |kept| kept.fits(shape),
                || GatheredRows::new(&cuda, nccl.ranks(), shape),
            )?;
            [blend.queries, blend.indices] = self.gathered[place].places(&cuda);
            blend.count = nccl.ranks() * count;
            blend.here = shard.first..shard.first + here;
            among = Some((nccl, place));
        }
        let cost = Cost {
            flops: 0.0,
            bytes: (12 * count * dim) as f64,
        };
        let signature = (
            "blend",
            blend.keys,
            places,
            [dim, blend.count],
            rate.to_bits(),
        );
        self.part(Part::Memory, cost, signature, |s| {
            s.run_beside(|s, side| {
                if let Some((nccl, place)) = &among {
                    s.gathered[*place].enqueue(&s.cuda, &side.inner, nccl, places)?;
                }
                similarity::enqueue_blend(&side.inner, &s.kernels.blend, &blend)
            })
        })
    }

    fn add(&mut self, from: &Buffer, to: &mut Buffer, accumulate: bool) -> Result<()> {
        let (len, add) = (to.len() as u64, i32::from(accumulate));
        let [from, to] = [slice(&self.cuda, from)?, slice(&self.cuda, to)?];
        let cost = Cost {
            flops: 0.0,
            bytes: 8.0 * len as f64,
        };
        self.part(Part::Rest, cost, ("add", from, to, len, add), |s| {
            let mut launch = s.stream.inner.launch_builder(&s.kernels.add);
            launch.arg(&from).arg(&len).arg(&add).arg(&to);
            let grid = LaunchConfig {
                grid_dim: ((len as u32).div_ceil(THREADS).max(1), 1, 1),
                ..one_block()
            };
            // SAFETY: the arguments are those of the kernel, and both buffers have as many values.
            let launched = unsafe { launch.launch(grid) };
            launched.map(drop).map_err(|e| failed("adding values", e))
        })
    }

    fn tiles(
        &mut self,
        of: &Tiles,
        first: usize,
        labels: &mut Buffer<u32>,
        to: &mut Buffer,
    ) -> Result<()> {
        let (cuda, pictures) = (&self.cuda, labels.len());
        let pointers = [
            slice(cuda, of.pixels)?,
            slice(cuda, of.places)?,
            self.dropout_step(),
            slice(cuda, labels)?,
            slice(cuda, to)?,
        ];
        let cut = [of.size, of.channels, of.tiles, of.side, of.jitter];
        let which = [first, pictures];
        let signature = ("tiles", pointers, cut, of.normalise, of.seed, which);
        self.part(Part::Batch, Cost::default(), signature, |s| {
            let (stream, kernel) = (&s.stream.inner, &s.kernels.tiles);
            enqueue_tiles(stream, kernel, of, which, pointers)
        })
    }

    fn uniform(&mut self, seed: u64, to: &mut Buffer) -> Result<()> {
        let (len, words) = (to.len() as u64, [seed as u32, (seed >> 32) as u32]);
        let [step, to] = [self.dropout_step(), slice(&self.cuda, to)?];
        let signature = ("uniform", to, len, seed);
        self.part(Part::Batch, Cost::default(), signature, |s| {
            let mut launch = s.stream.inner.launch_builder(&s.kernels.uniform);
            launch.arg(&words[0]).arg(&words[1]).arg(&step);
            launch.arg(&len).arg(&to);
            let grid = LaunchConfig {
                grid_dim: ((len.div_ceil(4) as u32).div_ceil(THREADS).max(1), 1, 1),
                ..one_block()
            };
            // SAFETY: the arguments are those of the kernel, and the buffer has so many values.
            let launched = unsafe { launch.launch(grid) };
            launched.map(drop).map_err(|e| failed("drawing numbers", e))
        })
    }

    fn quantise(
        &mut self,
        [rows, codebook]: [&Buffer; 2],
        dim: usize,
        to: &mut Buffer<u32>,
    ) -> Result<()> {
        let shape = [to.len(), codebook.len() / dim, dim];
        let cuda = &self.cuda;
        let places = [slice(cuda, rows)?, slice(cuda, codebook)?, slice(cuda, to)?];
        let cost = Cost::default();
        self.part(Part::Loss, cost, ("quantise", places, shape), |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.quantise(stream, places, shape)
        })
    }

    fn tally(
        &mut self,
        logits: &Buffer,
        classes: usize,
        [labels, items]: [&Buffer<u32>; 2],
        tally: &mut Buffer<u32>,
    ) -> Result<()> {
        let cuda = &self.cuda;
        let (from, to) = (slice(cuda, logits)?, slice(cuda, tally)?);
        let words = [slice(cuda, labels)?, slice(cuda, items)?];
        let shape = [items.len(), classes];
        let signature = ("tally", from, words, to, shape);
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (losses, stream) = (&s.kernels.losses, &s.stream.inner);
            losses.tally(stream, from, shape, words, to)
        })
    }

    fn begin_part(&mut self) -> Result<bool> {
        match &mut self.profiling {
            None => {
                self.profiling = Some(Profiling {
                    only: None,
                    left: Part::ALL.iter(),
                    whole: 0.0,
                    costs: vec![],
                    parts: vec![],
                });
            }
            Some(profiling) => match profiling.left.next() {
                Some(part) => profiling.only = Some(*part),
                None => return Ok(false),
            },
        }
        self.known = Known::Nothing;
        self.mode = Mode::Recording;
        self.inside = true;
        self.begin_recording()?;
        Ok(true)
    }

    fn end_part(&mut self, worked: Result<()>) -> Result<()> {
        self.mode = Mode::Direct;
        self.inside = false;
        let recorded = self.end_recording(worked);
        let Some(profiling) = &mut self.profiling else {
            return Ok(());
        };
        let Some(part) = profiling.only else {
            profiling.whole = f64::from(recorded?.time(&self.cuda)?);
            return Ok(());
        };
        // A step may have nothing of a part.
        let Ok(mut recording) = recorded else {
            return Ok(());
        };
        let sum = |of: fn(&Cost) -> f64| {
            let own = profiling.costs.iter().filter(|(p, _)| *p == part);
            own.map(|(_, cost)| of(cost)).sum()
        };
        profiling.parts.push(PartTime {
            name: part.name(),
            milliseconds: f64::from(recording.time(&self.cuda)?),
            flops: sum(|c| c.flops),
            bytes: sum(|c| c.bytes),
        });
        Ok(())
    }

    fn profile(&mut self) -> Result<Option<Profile>> {
        let Some(profiling) = self.profiling.take() else {
            return Ok(None);
        };
        Ok(Some(Profile {
            parts: profiling.parts,
            step_milliseconds: profiling.whole,
            most_flops: most_flops(&self.cuda)?,
            most_bytes: most_bytes(&self.cuda)?,
        }))
    }
}

/// NCCL, and the stream that carries sums beside a pass.
pub(super) struct Carrier {
    pub(super) nccl: Arc<Nccl>,
    pub(super) stream: Arc<CudaStream>,
}

/// A softmax of so many queries over the keys that are here.
struct SoftmaxCall {
    batch: usize,
    n: usize,
    dim: usize,
    /// Queries and keys.
    places: [Pointer; 2],
    /// Temperature and weight.
    numbers: [f32; 2],
    positives: PositivePointers,
    /// Losses and gradient.
    outputs: [Pointer; 2],
}

impl SoftmaxCall {
    fn signature(&self) -> impl Hash {
        let numbers = self.numbers.map(f32::to_bits);
        let places = (self.places, self.outputs, self.positives.signature());
        ("softmax", places, numbers, [self.batch, self.n])
    }

    /// Of so many processes' queries.
    fn cost(&self, ranks: usize) -> Cost {
        Cost {
            flops: 4.0 * (ranks * self.batch * self.n * self.dim) as f64,
            bytes: (4 * self.n * self.dim) as f64,
        }
    }
}

fn one_block() -> LaunchConfig {
    LaunchConfig {
        grid_dim: (1, 1, 1),
        block_dim: (THREADS, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn other_calls() -> Error {
    Error::Plan(
        "a step with host calls made other calls than before after the first of them".into(),
    )
}
