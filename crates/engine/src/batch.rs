//! Where batches come from: item numbers, and one or more views of each item, as the device's own
//! values.
//!
//! A device that can make batches by itself holds the items (or has them brought a few batches
//! ahead of their step) and runs a kernel that somebody else brings; any other takes what a data
//! loader of the host has prepared. A step sees the same [`Batch`] either way.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::{Parts, both, either};
use crate::buffer::of_another_device;
use crate::cpu::CpuBatches;
use crate::cuda::CudaBatches;
use crate::network::Input;
use crate::stream::Stream;
use crate::{Buffer, Error, Result};

/// A kernel that makes views of items, in the language of the device (CUDA C++ is the only one so
/// far).
///
/// It is started with a block for each item of the batch and seven arguments: the words, the items'
/// bytes, the batch's item numbers (u32), two u64 (the step in the epoch, the epoch), the number of
/// the view (u32), where the view goes, and null. Block b makes item `indices[b]`.
#[derive(Clone, Copy, Debug)]
pub struct BatchKernel {
    /// The text; it includes nothing.
    pub source: &'static str,
    /// The kernel's name in it, and the file's.
    pub name: &'static str,
    /// Threads of a block.
    pub threads: u32,
}

/// In which form a device wants a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchForm {
    /// Which view.
    pub view: usize,
    /// Channels of a place; those beyond the items' own are zero.
    pub channels: usize,
    /// bf16, or else f32.
    pub bf16: bool,
    /// 0 where all items are on the device. Else batches take turns in so many places: that of step
    /// s is place s modulo this, with the items in the step's order.
    pub ring: usize,
}

/// Item numbers of a batch and its views, prepared by the host: view 0 of every item, then view 1,
/// and so on.
#[derive(Clone, Debug, Default)]
pub struct HostBatch {
    /// Which items.
    pub indices: Vec<u32>,
    /// Their views.
    pub pixels: Vec<f32>,
}

/// A data loader of the host.
pub trait HostBatches: Send {
    /// The next batch, in the order of its epoch; nothing when preparing has ended.
    fn next(&mut self) -> Option<HostBatch>;

    /// Takes a batch back, for its memory.
    fn recycle(&mut self, batch: HostBatch);
}

/// How batches come about, on a device that makes them or on the host.
pub trait BatchMaker: Send + Sync {
    /// Items of a batch.
    fn batch(&self) -> usize;

    /// Views of each item.
    fn views(&self) -> usize;

    /// How many items there are.
    fn items(&self) -> usize;

    /// Steps of an epoch; fewer than batches fit into it where several processes each have a batch
    /// of a step.
    fn steps(&self) -> usize {
        self.items() / self.batch().max(1)
    }

    /// Bytes of an item.
    fn item_bytes(&self) -> usize;

    /// Values of one view of an item: as many as it has bytes, unless views are cut from more.
    fn view_values(&self) -> usize {
        self.item_bytes()
    }

    /// Copies the bytes of some items, one after the other.
    fn fetch(&self, items: &[u32], bytes: &mut [u8]);

    /// The kernel by which a device makes views.
    fn kernel(&self) -> BatchKernel;

    /// What the kernel is told, for a form.
    fn words(&self, form: BatchForm) -> Vec<u32>;

    /// Prepares batches on the host, from a step of an epoch on.
    fn load(&self, epoch: u64, first: usize) -> Result<Box<dyn HostBatches>>;

    /// Bytes of items that may lie on the device at once; `usize::MAX` for as many as fit.
    fn most_bytes(&self) -> usize {
        usize::MAX
    }

    /// Whether the host is to prepare batches, whatever the device can.
    fn on_host(&self) -> bool {
        false
    }
}

/// An epoch, or the rest of one.
#[derive(Clone, Copy, Debug)]
pub struct Epoch<'a> {
    /// Its number, for the draws.
    pub epoch: u64,
    /// The items of each step's batch in turn, as many as all steps need or more; of several
    /// processes, this one's. A source whose batches a data loader prepares has its own order, and
    /// reads nothing here.
    pub order: &'a [u32],
    /// The step in the epoch to go on with.
    pub first: usize,
    /// That step's number among all of the run.
    pub number: u64,
    /// For each [`Scalar`], its value in every step of the epoch.
    pub scalars: &'a [Vec<f32>],
}

/// A number that changes from step to step by a schedule, and that the device looks up by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar(pub usize);

impl Scalar {
    /// The learning rate.
    pub const RATE: Scalar = Scalar(0);
    /// How many there can be.
    pub const MOST: usize = 4;
}

/// Where batches come from, on a device.
pub struct BatchSource {
    pub(crate) backend: Parts<CpuBatches, Box<CudaBatches>>,
}

impl BatchSource {
    /// Whether the device makes the batches, or holds them.
    pub fn on_device(&self) -> bool {
        either!(&self.backend, batches => batches.on_device())
    }

    /// Items of a batch.
    pub(crate) fn batch(&self) -> usize {
        either!(&self.backend, batches => batches.batch())
    }

    /// Views of each item.
    pub(crate) fn views(&self) -> usize {
        either!(&self.backend, batches => batches.views())
    }

    /// The item numbers of this step's batch.
    pub(crate) fn indices(&self) -> &Buffer<u32> {
        either!(&self.backend, batches => batches.indices())
    }

    /// Sees to it that the next step's items are there when its turn comes. Nothing of this is
    /// recorded.
    pub(crate) fn bring(&mut self, stream: &mut Stream) -> Result<()> {
        both!(&mut self.backend, &mut stream.backend, batches, stream => batches.bring(stream))
    }

    /// First call of a step: its batch is the current one.
    pub(crate) fn begin_step(&mut self, stream: &mut Stream) -> Result<()> {
        match (&mut self.backend, &mut stream.backend) {
            (Parts::Cuda(batches), Parts::Cuda(stream)) => batches.begin_step(stream),
            _ => Ok(()),
        }
    }

    /// The step was asked for: what its items lie in is free after it.
    pub(crate) fn taken(&mut self, stream: &mut Stream) -> Result<()> {
        match (&mut self.backend, &mut stream.backend) {
            (Parts::Cuda(batches), Parts::Cuda(stream)) => batches.taken(stream),
            _ => Ok(()),
        }
    }

    /// The CPU's.
    pub(crate) fn on_cpu(&self) -> Result<&CpuBatches> {
        match &self.backend {
            Parts::Cpu(batches) => Ok(batches),
            Parts::Cuda(_) => Err(of_another_device()),
        }
    }

    /// A GPU's.
    pub(crate) fn on_gpu(&self) -> Result<&CudaBatches> {
        match &self.backend {
            Parts::Cuda(batches) => Ok(batches),
            Parts::Cpu(_) => Err(of_another_device()),
        }
    }
}

/// The batch of a step.
#[derive(Clone, Copy)]
pub struct Batch<'a>(&'a BatchSource);

impl<'a> Batch<'a> {
    pub(crate) fn new(source: &'a BatchSource) -> Self {
        Batch(source)
    }

    /// How many items.
    pub fn len(&self) -> usize {
        self.0.batch()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many views of each item.
    pub fn views(&self) -> usize {
        self.0.views()
    }

    /// The items' numbers.
    pub fn indices(&self) -> &'a Buffer<u32> {
        self.0.indices()
    }

    /// One view of every item, for a network.
    pub fn view(&self, view: usize) -> Input<'a> {
        self.range(view..view + 1)
    }

    /// So many views of every item, from one of them on, view after view, for a network whose batch
    /// is as large.
    pub fn views_from(&self, first: usize, count: usize) -> Input<'a> {
        self.range(first..first + count)
    }

    fn range(&self, views: Range<usize>) -> Input<'a> {
        Input::Views { batch: self.0, views }
    }
}

/// A data loader of the host and where it is: it goes on from epoch to epoch by itself.
pub(crate) struct HostLoader {
    maker: Arc<dyn BatchMaker>,
    /// Behind a lock that nobody waits for: a loader is used by one thread.
    loader: Mutex<Option<Box<dyn HostBatches>>>,
    /// The epoch and step of the batch that it gives next.
    next: (u64, usize),
}

impl HostLoader {
    pub(crate) fn new(maker: Arc<dyn BatchMaker>) -> Self {
        HostLoader { maker, loader: Mutex::new(None), next: (0, 0) }
    }

    pub(crate) fn maker(&self) -> &dyn BatchMaker {
        &*self.maker
    }

    /// Goes on with an epoch; begins anew where that is not what comes next.
    pub(crate) fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        check_schedules(epoch, self.maker.steps())?;
        let loader = self.loader.get_mut().unwrap_or_else(PoisonError::into_inner);
        if loader.is_none() || self.next != (epoch.epoch, epoch.first) {
            *loader = None; // its threads first
            *loader = Some(self.maker.load(epoch.epoch, epoch.first)?);
            self.next = (epoch.epoch, epoch.first);
        }
        Ok(())
    }

    /// The next batch, of items that there are.
    pub(crate) fn next(&mut self) -> Result<HostBatch> {
        let ended = || Error::Device("the data loader has ended".into());
        let batch = self.running().ok_or_else(ended)?.next();
        let batch = batch.ok_or_else(ended)?;
        check_items(&batch.indices, self.maker.items())?;
        self.next.1 += 1;
        if self.next.1 == self.maker.steps() {
            self.next = (self.next.0 + 1, 0);
        }
        Ok(batch)
    }

    /// Takes a batch back, for its memory.
    pub(crate) fn recycle(&mut self, batch: HostBatch) {
        if let Some(loader) = self.running() {
            loader.recycle(batch);
        }
    }

    fn running(&mut self) -> Option<&mut Box<dyn HostBatches>> {
        let loader = self.loader.get_mut();
        loader.unwrap_or_else(PoisonError::into_inner).as_mut()
    }
}

/// Numbers of items that there are.
fn check_items(indices: &[u32], items: usize) -> Result<()> {
    match indices.iter().find(|i| **i as usize >= items) {
        Some(i) => Err(Error::Plan(format!("item {i} of {items} items"))),
        None => Ok(()),
    }
}

/// The items of an epoch's steps: an order names items that there are, and fills all batches.
pub(crate) fn items_of_steps<'a>(
    epoch: &Epoch<'a>,
    items: usize,
    [steps, batch]: [usize; 2],
) -> Result<&'a [u32]> {
    let (wanted, there) = (steps * batch, epoch.order.len());
    if there < wanted {
        Error::check_length("the order of an epoch", wanted, there)?;
    }
    check_items(epoch.order, items)?;
    check_schedules(epoch, steps)?;
    Ok(&epoch.order[..wanted])
}

/// As many values of each schedule as the epoch has steps, and not too many schedules.
fn check_schedules(epoch: &Epoch, steps: usize) -> Result<()> {
    for values in epoch.scalars {
        Error::check_length("a schedule's values for the steps of an epoch", steps, values.len())?;
    }
    if epoch.scalars.len() > Scalar::MOST {
        return Err(Error::Plan(format!(
            "{} schedules; {} can be followed",
            epoch.scalars.len(),
            Scalar::MOST
        )));
    }
    Ok(())
}
