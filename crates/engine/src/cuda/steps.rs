//! The whole step as one launch: batch, passes, loss, optimiser and memory recorded together. The host advances nothing but
//! a count; what changes from step to step (order, counters, rate, losses) lies in device memory.
//!
//! Items that do not fit beside the network travel through page-locked buffers, a few batches ahead of their step.

use std::ffi::c_void;

use cudarc::driver::{CudaFunction, CudaSlice, result};

use super::lane::{Lane, Recording};
use super::launch::Pointer;
use super::similarity::{self, Blend, DevicePositives, SoftmaxLoss};
use super::{Cuda, CudaBuffer, CudaNetwork, Precision, failed};
use crate::steps::{Fetch, check_order};
use crate::{BatchForm, BatchMaker, Error, Network, Positives, Profile, Result, StepRule, Steps};

mod items;
mod profile;

use items::Items;

/// Steps whose losses can wait to be read.
const CAPACITY: usize = 4096;

/// Threads of a block of `advance`.
const ADVANCE_THREADS: u32 = 256;

/// Steps of one network over one set of items.
pub struct CudaSteps {
    cuda: Cuda,
    batch: usize,
    item_count: usize,
    make: CudaFunction,
    make_threads: u32,
    words: CudaSlice<u32>,
    items: Items,
    order: CudaSlice<u32>,
    host_order: Vec<u32>,
    /// Step in the epoch, epoch, steps in all.
    counter: CudaSlice<u64>,
    positives: [Option<CudaSlice<u32>>; 2],
    loss: SoftmaxLoss,
    dim: usize,
    blend: CudaFunction,
    advance: CudaFunction,
    losses: CudaSlice<f32>,
    means: CudaSlice<f32>,
    /// The next step of the epoch, all steps asked for, and those whose losses were read.
    next: usize,
    asked: usize,
    heard: usize,
    progress: Progress,
}

/// The first step goes call by call, which loads every kernel; later ones are launched as a whole, as long as nothing that
/// was recorded has moved.
enum Progress {
    New,
    Seen(Key),
    Recorded(Key, Recording),
}

/// Places and numbers that a recording has in it.
type Key = [u64; 7];

impl CudaSteps {
    pub(super) fn new(cuda: &Cuda, network: &CudaNetwork, maker: &BatchMaker) -> Result<Self> {
        let batch = network.batch();
        let dim = network.graph().shape(network.graph().output_node()).len();
        let (channels, floats) = (network.input_channels(), |len, what| cuda.zeros(len, what));
        let items = Items::new(cuda, maker, batch)?;
        let form = BatchForm {
            channels,
            bf16: cuda.precision() == Precision::Bf16,
            ring: items.ring(),
        };
        let words = (maker.words)(form);
        let mut on_device = cuda.zeros(words.len(), "settings of the batches")?;
        let sent = cuda.stream().memcpy_htod(&words, &mut on_device);
        sent.map_err(|e| failed("sending settings", e))?;
        Ok(CudaSteps {
            batch,
            item_count: maker.items,
            make: cuda.foreign(&maker.kernel)?,
            make_threads: maker.kernel.threads,
            words: on_device,
            items,
            order: cuda.zeros(maker.items, "the order of an epoch")?,
            host_order: vec![],
            counter: cuda.zeros(3, "counters")?,
            positives: [None, None],
            loss: SoftmaxLoss::new(cuda, batch, maker.items, dim)?,
            dim,
            blend: similarity::blend_kernel(cuda)?,
            advance: cuda.function("steps", "advance")?,
            losses: floats(batch, "losses of a batch")?,
            means: floats(CAPACITY, "losses of steps")?,
            next: 0,
            asked: 0,
            heard: 0,
            progress: Progress::New,
            cuda: cuda.clone(),
        })
    }

    /// Whether all items lie on the device.
    #[doc(hidden)]
    pub fn holds_all_items(&self) -> bool {
        self.items.ring() == 0
    }

    fn key(&self, network: &CudaNetwork, keys: &CudaBuffer, rule: &StepRule) -> Key {
        let place =
            |words: &Option<CudaSlice<u32>>| words.as_ref().map_or(0, |w| self.cuda.pointer(w));
        [
            network.identity(),
            self.cuda.pointer(&keys.values),
            network.output_gradient_place(),
            place(&self.positives[0]),
            place(&self.positives[1]),
            u64::from(rule.temperature.to_bits()),
            u64::from(rule.blend.to_bits()),
        ]
    }

    /// Gives one step's work to the network's lane.
    fn enqueue(&self, network: &CudaNetwork, keys: Pointer, rule: &StepRule) -> Result<()> {
        self.make_only(network)?;
        network.forward_calls()?;
        self.loss_only(network, keys, rule)?;
        let blend = Blend {
            keys,
            queries: network.output_place(),
            dim: self.dim,
            count: self.batch,
            rate: rule.blend,
            indices: self.cuda.pointer(&self.order),
            counter: self.cuda.pointer(&self.counter),
            repeated: false,
        };
        network.backward_and_update(
            |beside| similarity::enqueue_blend(&beside.stream, &self.blend, &blend),
            |lane| self.advance(lane, network.step_place()),
        )
    }

    fn loss_only(&self, network: &CudaNetwork, keys: Pointer, rule: &StepRule) -> Result<()> {
        let (cuda, lane) = (&self.cuda, network.lane());
        let [Some(starts), Some(members)] = &self.positives else {
            return Err(Error::Plan("steps need positives first".into()));
        };
        let positives = DevicePositives {
            starts: cuda.pointer(starts),
            members: cuda.pointer(members),
            order: cuda.pointer(&self.order),
            counter: cuda.pointer(&self.counter),
        };
        let (queries, gradient) = (network.output_place(), network.output_gradient_place());
        let losses = cuda.pointer(&self.losses);
        self.loss.enqueue(
            &lane.stream,
            [queries, keys],
            rule.temperature,
            positives,
            [losses, gradient],
        )
    }

    fn make_only(&self, network: &CudaNetwork) -> Result<()> {
        let (cuda, lane) = (&self.cuda, network.lane());
        let (order, counter) = (cuda.pointer(&self.order), cuda.pointer(&self.counter));
        let (words, none) = (cuda.pointer(&self.words), 0 as Pointer);
        let (items, to) = (self.items.place(cuda), network.input_place());
        let arguments = [&words, &items, &order, &counter, &to, &none];
        let grid = self.batch as u32;
        launch(
            lane,
            &self.make,
            [grid, self.make_threads],
            &arguments.map(pointer),
        )
    }

    fn advance(&self, lane: &Lane, step: Pointer) -> Result<()> {
        let cuda = &self.cuda;
        let (losses, means) = (cuda.pointer(&self.losses), cuda.pointer(&self.means));
        let counter = cuda.pointer(&self.counter);
        let (batch, capacity) = (self.batch as u32, CAPACITY as u32);
        let arguments = [
            pointer(&losses),
            pointer(&batch),
            pointer(&means),
            pointer(&capacity),
            pointer(&counter),
            pointer(&step),
        ];
        launch(lane, &self.advance, [1, ADVANCE_THREADS], &arguments)
    }

    /// One step, recorded if it was seen before.
    fn step(&mut self, network: &mut CudaNetwork, key: Key, rule: &StepRule) -> Result<()> {
        if let Progress::Recorded(of, recording) = &mut self.progress
            && *of == key
        {
            return recording.launch(&self.cuda);
        }
        let keys = key[1];
        if matches!(self.progress, Progress::Seen(of) if of == key) {
            let mut recording = network.record(|network| self.enqueue(network, keys, rule))?;
            recording.launch(&self.cuda)?;
            self.progress = Progress::Recorded(key, recording);
            return Ok(());
        }
        self.progress = Progress::Seen(key);
        self.enqueue(network, keys, rule)
    }
}

impl Steps for CudaSteps {
    type Network = CudaNetwork;
    type Buffer = CudaBuffer;

    fn set_positives(&mut self, positives: &Positives) -> Result<()> {
        positives.check(self.item_count, self.item_count)?;
        let (starts, members) = positives.parts();
        let [own_starts, own_members] = &mut self.positives;
        similarity::send(&self.cuda, own_starts, starts)?;
        similarity::send(&self.cuda, own_members, members)?;
        Ok(())
    }

    fn begin_epoch(&mut self, epoch: u64, order: &[u32], first: usize) -> Result<()> {
        check_order(order, self.item_count)?;
        Error::check_length("the order of an epoch", self.item_count, order.len())?;
        let stream = self.cuda.stream();
        let failed = |e| failed("sending the order of an epoch", e);
        stream.memcpy_htod(order, &mut self.order).map_err(failed)?;
        let counter = [first as u64, epoch, self.asked as u64];
        stream
            .memcpy_htod(&counter, &mut self.counter)
            .map_err(failed)?;
        self.host_order.clear();
        self.host_order.extend_from_slice(order);
        self.next = first;
        Ok(())
    }

    fn run(
        &mut self,
        count: usize,
        number: u64,
        rule: &StepRule,
        fetch: Fetch,
        network: &mut CudaNetwork,
        keys: &mut CudaBuffer,
    ) -> Result<()> {
        let (left, room) = (
            self.host_order.len() / self.batch - self.next.min(self.host_order.len() / self.batch),
            CAPACITY - (self.asked - self.heard),
        );
        if count > left || count > room {
            return Err(Error::Plan(format!(
                "{count} steps asked for; the epoch has {left} left, and {room} losses can wait"
            )));
        }
        Error::check_length("keys", self.item_count * self.dim, keys.len())?;
        network.begin_steps(number, &rule.sgd)?;
        let key = self.key(network, keys, rule);
        for _ in 0..count {
            let first = self.next * self.batch;
            let indices = &self.host_order[first..first + self.batch];
            self.items.bring(&self.cuda, self.next, indices, fetch)?;
            self.step(network, key, rule)?;
            self.items.taken(&self.cuda, self.next)?;
            self.next += 1;
            self.asked += 1;
        }
        Ok(())
    }

    fn profile(
        &mut self,
        rule: &StepRule,
        network: &mut CudaNetwork,
        keys: &mut CudaBuffer,
    ) -> Result<Profile> {
        self.losses()?;
        self.parts(rule, network, keys)
    }

    fn losses(&mut self) -> Result<Vec<f32>> {
        let mut means = vec![0.0; CAPACITY];
        let read = self.cuda.stream().memcpy_dtoh(&self.means, &mut means);
        read.map_err(|e| failed("reading losses", e))?;
        let since = self.heard..self.asked;
        self.heard = self.asked;
        Ok(since.map(|step| means[step % CAPACITY]).collect())
    }
}

fn pointer<T>(argument: &T) -> *mut c_void {
    (&raw const *argument).cast_mut().cast()
}

/// Starts a kernel with as many blocks and threads; arguments are places of values of the kernel's types.
fn launch(
    lane: &Lane,
    function: &CudaFunction,
    [blocks, threads]: [u32; 2],
    arguments: &[*mut c_void; 6],
) -> Result<()> {
    // SAFETY: both callers pass what their kernel declares, in order; the memory is theirs.
    let launched = unsafe {
        result::launch_kernel(
            function.cu_function(),
            (blocks, 1, 1),
            (threads, 1, 1),
            0,
            lane.stream.cu_stream(),
            &mut { *arguments },
        )
    };
    launched.map_err(|e| failed("starting a kernel", e))
}
