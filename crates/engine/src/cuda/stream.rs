//! The GPU's stream: the calls of a step run one by one the first time, are captured as a CUDA
//! graph the second time, and from then on are one launch.
//!
//! Every call has a signature: what it is, and the places and numbers it was given. A step that is
//! replayed makes its calls all the same, and they only add up their signatures: where these are
//! not those that were recorded, nothing has been launched yet, and the step is run call by call.
//! So nobody has to say when a recording no longer holds.
//!
//! A host call cuts a step in parts, each a graph of its own.
//!
//! Where several processes take the step, what they do together is part of it, and of its graph.

mod step_ops;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig};

use super::bound_stream::{BoundStream, CudaGraph};
use super::launch::{Arguments, BLOCK, Pointer, blocks, counts, kernels, launch};
use super::nccl::{Kind, Nccl};
use super::optimisers::StepInputs;
use super::profile::{Cost, Part, most_bytes, most_flops};
use super::similarity::{
    Contrastive, GatheredRows, Nearest, ShardShape, ShardSoftmax, SoftmaxKernels, ViewShape,
};
use super::together::{Together, after};
use super::{Cuda, Doing, FIRST, LAST, slice};
use crate::stream::Stepped;
use crate::{Buffer, Communicator, Epoch, Error, PartTime, Profile, Result, Scalar};

/// Steps whose losses can wait to be read.
const CAPACITY: usize = 4096;

/// How often a step that could not be recorded is tried again.
const MOST_REFUSALS: usize = 3;

pub(crate) struct GpuStream {
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
    /// One for each shape that was met: queries, keys, length of a row.
    softmax: Vec<([usize; 3], SoftmaxKernels)>,
    nearest: Vec<([usize; 3], Nearest)>,
    contrastive: Vec<(ViewShape, Contrastive)>,
    shards: Vec<(ShardShape, ShardSoftmax)>,
    /// Rows, items, length of a row.
    gathered: Vec<([usize; 3], GatheredRows)>,
    /// The step in the epoch and the number of the next step, as the device counts them.
    step: usize,
    number: u64,
    /// Steps whose losses nobody has read.
    asked: Vec<u64>,
    profiling: Option<Profiling>,
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

kernels! {
    /// Those of a step beside the networks' (kernels/losses.cu has the maths of the losses).
    StepKernels {
        steps: begin_step, set_step, add_values, uniform;
        similarity: blend_rows;
        quarters: quarters;
        tiles: tiles;
        losses: cross_entropy, accumulate_loss, loss_share, add_loss, cosine, mean_of_others,
            tally, quantise, gather_rows, counting_losses, counting_gradient;
    }
}

/// What a step's loss is added to, all on the device.
#[derive(Clone, Copy)]
struct StepLoss {
    /// f64: the loss of the step so far; f32: the losses of the last steps.
    sums: [Pointer; 2],
    /// How many steps' losses there are.
    capacity: u32,
    /// Three u64: step in the epoch, epoch, number of all steps.
    current: Pointer,
    /// u32: 1 from the first loss on that is not finite.
    flag: Pointer,
}

impl StepLoss {
    fn arguments(self) -> impl Arguments {
        (self.sums, self.capacity, self.current, self.flag)
    }
}

impl StepKernels {
    /// Adds weight · mean(losses) to the step's loss.
    fn accumulate_loss(
        &self,
        stream: &CudaStream,
        losses: Pointer,
        count: usize,
        weight: f32,
        step: StepLoss,
    ) -> Result<()> {
        let arguments = (losses, counts([count])?, weight, step.arguments());
        launch(stream, &self.accumulate_loss, blocks(1, BLOCK)?, "the loss of a step", arguments)
    }
}

/// A step being timed part by part: the whole of it first.
struct Profiling {
    only: Option<(Part, &'static str)>,
    left: std::slice::Iter<'static, (Part, &'static str)>,
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
            kernels: StepKernels::load(cuda)?,
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

    /// The next step of the epoch.
    pub(crate) fn step(&self) -> usize {
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
            stream: if self.inside { together.carrier.clone() } else { self.stream.inner.clone() },
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
        self.profiling.as_ref().and_then(|p| p.only).map(|(part, _)| part)
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
        StepInputs { rate: self.scalar(Scalar::RATE), current: self.current(), flag: self.flag() }
    }

    /// A call of a step: its signature is kept in mind, and its work is done, recorded, or known
    /// already.
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
            let ring = cuda.pointer(&c.ring);
            let [batch, steps, count] = counts([batch, c.steps, c.count])?;
            let of_batch = ([next, current, order], batch, [to, schedules], [steps, count]);
            let arguments = (of_batch, [scalars, loss, ring], CAPACITY as u32);
            s.enqueue(|k| &k.begin_step, blocks(1, BLOCK)?, "beginning a step", arguments)
        })
    }

    /// The stream waits for all that was given to the side and to the carrier.
    pub(super) fn join_beside(&mut self) -> Result<()> {
        self.wait_for_carrier()?;
        self.joins += 1;
        if !std::mem::take(&mut self.beside) {
            return Ok(());
        }
        let done = self.side.inner.record_event(None).doing("work on two streams")?;
        self.stream.inner.wait(&done).doing("work on two streams")
    }

    /// Work that nobody waits for before the step ends, beside what comes next; outside of a step,
    /// in its turn.
    fn run_beside(
        &mut self,
        work: impl FnOnce(&GpuStream, &BoundStream) -> Result<()>,
    ) -> Result<()> {
        if !self.inside {
            return work(self, &self.stream);
        }
        let ready = self.stream.inner.record_event(None).doing("work on two streams")?;
        self.side.inner.wait(&ready).doing("work on two streams")?;
        self.beside = true;
        work(self, &self.side)
    }

    /// Work for the host in the midst of a step: what the step asked for before is done when it
    /// runs, and what it asks for afterwards begins when it has ended.
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
                if !self.launch_known()? {
                    self.mode = Mode::Differing;
                    return Ok(());
                }
                self.launched += 1;
                self.cuda.synchronise()?;
                work()
            }
            Mode::Differing => Ok(()),
        }
    }

    /// Adds rows of losses to the step's.
    fn lose(&mut self, rows: &Buffer, weight: f32) -> Result<()> {
        let (at, count) = (slice(&self.cuda, rows)?, rows.len());
        let signature = ("lose", at, count, weight.to_bits());
        self.part(Part::Loss, Cost::default(), signature, |s| {
            let (cuda, c) = (&s.cuda, &s.counters);
            let step = StepLoss {
                sums: [cuda.pointer(&c.loss), cuda.pointer(&c.ring)],
                capacity: CAPACITY as u32,
                current: s.current(),
                flag: s.flag(),
            };
            let Some(together) = &s.together else {
                return s.kernels.accumulate_loss(&s.stream.inner, at, count, weight, step);
            };
            // All processes' shares, one f64, are added to the step's loss.
            let (share, doing) = (together.share(cuda), "the loss of a step");
            let of_rows = (at, counts([count])?, weight, share);
            s.enqueue(|k| &k.loss_share, blocks(1, BLOCK)?, doing, of_rows)?;
            together.nccl.all_reduce(&s.stream.inner, share, 1, Kind::F64)?;
            s.enqueue(|k| &k.add_loss, blocks(1, BLOCK)?, doing, (share, step.arguments()))
        })
    }

    /// Gives the stream a kernel.
    fn enqueue(
        &self,
        kernel: impl FnOnce(&StepKernels) -> &CudaFunction,
        shape: LaunchConfig,
        doing: &str,
        arguments: impl Arguments,
    ) -> Result<()> {
        launch(&self.stream.inner, kernel(&self.kernels), shape, doing, arguments)
    }

    /// Begins to record on a stream of its own, which keeps what other threads do meanwhile out of
    /// it.
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

    /// Launches the next graph of a step that is known, where the calls up to its end were the
    /// same; whether they were.
    fn launch_known(&mut self) -> Result<bool> {
        let Known::Recorded(parts) = &mut self.known else {
            unreachable!("only what is recorded is replayed");
        };
        match parts.get_mut(self.launched) {
            Some((signature, part)) if *signature == self.signature => {
                part.launch(&self.cuda)?;
                Ok(true)
            }
            _ if self.launched == 0 => Ok(false),
            _ => Err(Error::Plan(
                "a step with host calls made other calls than before after the first of them"
                    .into(),
            )),
        }
    }

    fn asked_for(&mut self) -> Stepped {
        self.asked.push(self.number);
        self.step += 1;
        self.number += 1;
        Stepped::Done
    }

    pub(crate) fn join(&mut self, communicator: &Communicator) -> Result<()> {
        self.together = Some(Together::new(&self.cuda, communicator)?);
        Ok(())
    }

    pub(crate) fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        let (stream, c) = (self.cuda.stream().clone(), &mut self.counters);
        let next = [epoch.first as u64, epoch.epoch, epoch.number];
        stream.memcpy_htod(&next, &mut c.next).doing("sending an epoch's schedule")?;
        let values = epoch.scalars.concat();
        (c.count, c.steps) = (epoch.scalars.len(), epoch.scalars.first().map_or(0, Vec::len));
        if !values.is_empty() {
            let place = match &mut c.schedules {
                Some(place) if place.len() >= values.len() => place,
                place => place.insert(self.cuda.zeros(values.len(), "schedules")?),
            };
            stream.memcpy_htod(&values, place).doing("sending an epoch's schedule")?;
        }
        (self.step, self.number) = (epoch.first, epoch.number);
        Ok(())
    }

    pub(crate) fn begin_step(&mut self) -> Result<()> {
        Error::refuse(self.asked.len() >= CAPACITY, || {
            format!("{CAPACITY} steps were asked for, and the losses of none were read")
        })?;
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

    pub(crate) fn end_step(&mut self, worked: Result<()>) -> Result<Stepped> {
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
                // Call by call it is; should that fail too, it says why. Memory that a call needs
                // for the first time cannot be had while recording, so it is tried again.
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
                if self.launch_known()? {
                    return Ok(self.asked_for());
                }
                self.known = Known::Nothing;
                Ok(Stepped::Again)
            }
            Mode::Differing => {
                self.known = Known::Nothing;
                Ok(Stepped::Again)
            }
        }
    }

    pub(crate) fn losses(&mut self, into: &mut Vec<f64>) -> Result<()> {
        let stream = self.cuda.stream();
        let flag = &mut self.counters.flag;
        if self.asked.is_empty() {
            return stream.memset_zeros(flag).doing("reading losses");
        }
        let mut ring = vec![0.0; CAPACITY];
        stream.memcpy_dtoh(&self.counters.ring, &mut ring).doing("reading losses")?;
        stream.memset_zeros(flag).doing("reading losses")?;
        let loss = |number: u64| f64::from(ring[(number % CAPACITY as u64) as usize]);
        into.extend(self.asked.drain(..).map(loss));
        Ok(())
    }

    pub(crate) fn capacity(&self) -> usize {
        CAPACITY - self.asked.len()
    }

    pub(crate) fn set_step(&mut self, number: u64, rate: f32) -> Result<()> {
        let (cuda, c) = (&self.cuda, &self.counters);
        let (current, scalars) = (cuda.pointer(&c.current), cuda.pointer(&c.scalars));
        let loss = cuda.pointer(&c.loss);
        let arguments = (number, rate, current, scalars, loss);
        let kernel = &self.kernels.set_step;
        launch(&self.direct.inner, kernel, blocks(1, 1)?, "setting the step", arguments)
    }

    pub(crate) fn begin_part(&mut self) -> Result<bool> {
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

    pub(crate) fn end_part(&mut self, worked: Result<()>) -> Result<()> {
        self.mode = Mode::Direct;
        self.inside = false;
        let recorded = self.end_recording(worked);
        let Some(profiling) = &mut self.profiling else {
            return Ok(());
        };
        let Some((part, name)) = profiling.only else {
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
            name,
            milliseconds: f64::from(recording.time(&self.cuda)?),
            flops: sum(|c| c.flops),
            bytes: sum(|c| c.bytes),
        });
        Ok(())
    }

    pub(crate) fn profile(&mut self) -> Result<Option<Profile>> {
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

#[cfg(test)]
mod tests;
