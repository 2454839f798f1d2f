//! Where batches come from: item numbers, and one or more views of each item, as the device's own
//! values.
//!
//! A device that can make batches by itself holds the items (or has them brought a few batches
//! ahead of their step) and runs a kernel that somebody else brings; any other takes what a data
//! loader of the host has prepared. A step sees the same [`Batch`] either way.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::backend::Parts;
use crate::buffer::of_another_device;
use crate::cpu::{indices, values};
use crate::cuda::{LoaderOnGpu, Made};
use crate::network::Input;
use crate::stream::Stream;
use crate::{Buffer, Device, Error, Result};

/// A kernel of somebody else's, in the language of the device (CUDA C++ is the only one so far).
#[derive(Clone, Copy, Debug)]
pub struct KernelSource {
    /// The text; it includes nothing.
    pub source: &'static str,
    /// The kernel's name in it, and the file's.
    pub name: &'static str,
    /// Threads of a block.
    pub threads: u32,
}

/// Takes a batch: which items, and their views: view 0 of every item, then view 1, and so on. What
/// it leaves in either vector may be filled again.
pub type TakeBatch<'a> = &'a mut dyn FnMut(&mut Vec<u32>, &mut Vec<f32>) -> Result<()>;

/// What a [`DeviceLoader`] asks of a data loader: batches that the host prepares and, where it has
/// a [kernel](LoadBatches::kernel), what a GPU needs to make them by itself.
pub trait LoadBatches: Send + Sync {
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

    /// Values of one view of an item.
    fn view_values(&self) -> usize;

    /// Has the next batch be that of a step of an epoch; further ones follow, from epoch to epoch.
    fn seek(&mut self, epoch: u64, step: usize) -> Result<()>;

    /// Hands the next batch over.
    fn next(&mut self, take: TakeBatch) -> Result<()>;

    /// The kernel by which a GPU makes views, where it is to. It is started with a block for each
    /// item of the batch and seven arguments: the words, the items' bytes, the batch's item numbers
    /// (u32), two u64 (the step in the epoch, the epoch), the number of the view (u32), where the
    /// view goes, and null. Block b makes item `indices[b]`.
    fn kernel(&self) -> Option<KernelSource> {
        None
    }

    /// What the kernel is told of a view: how it is made, and in which form. It has so many
    /// channels, of which those beyond the items' own are zero, and is bf16 or else f32. The ring
    /// is 0 where all items are on the device; else batches take turns in so many places: that of
    /// step s is place s modulo this, with the items in the step's order.
    fn words(&self, _view: usize, _channels: usize, _bf16: bool, _ring: usize) -> Vec<u32> {
        vec![]
    }

    /// Bytes of an item.
    fn item_bytes(&self) -> usize {
        0
    }

    /// Copies the bytes of some items, one after the other.
    fn fetch(&self, _items: &[u32], _bytes: &mut [u8]) {}

    /// Bytes of items that may lie on the device at once; `usize::MAX` for as many as fit.
    fn most_bytes(&self) -> usize {
        usize::MAX
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

/// Batches on a device, one of which is the current step's.
pub struct DeviceLoader {
    pub(crate) batch: usize,
    pub(crate) views: usize,
    items: usize,
    steps: usize,
    pub(crate) source: Source,
    /// The items of all steps' batches; none where a data loader prepares them in its own order.
    order: Vec<u32>,
    /// The current batch's items.
    pub(crate) indices: Buffer<u32>,
    /// The current batch's views where the host prepared them, on the CPU; and all that is a GPU's.
    pub(crate) place: Parts<Vec<f32>, Box<LoaderOnGpu>>,
}

/// What batches are made of.
pub(crate) enum Source {
    /// What a data loader of the host prepares.
    Prepared(Box<dyn LoadBatches>),
    /// Rows of a matrix on the device.
    Rows { rows: Arc<Buffer>, dim: usize },
    /// Items, by a GPU's kernel.
    Made(Made),
}

impl DeviceLoader {
    /// Batches of a data loader.
    pub(crate) fn new(device: &Device, loader: Box<dyn LoadBatches>) -> Result<Self> {
        let (batch, views, items) = (loader.batch(), loader.views(), loader.items());
        let (steps, values) = (loader.steps(), batch * views * loader.view_values());
        let source = match (&device.backend, loader.kernel()) {
            (Parts::Cuda(gpu), Some(kernel)) => Source::Made(Made::new(gpu, loader, &kernel)?),
            _ => Source::Prepared(loader),
        };
        DeviceLoader::of(device, source, [batch, views], [items, steps], values)
    }

    /// Batches of rows of a matrix.
    pub(crate) fn rows(
        device: &Device,
        rows: Arc<Buffer>,
        dim: usize,
        batch: usize,
    ) -> Result<Self> {
        let items = rows.len() / dim.max(1);
        let of = [items, items / batch.max(1)];
        DeviceLoader::of(device, Source::Rows { rows, dim }, [batch, 1], of, 0)
    }

    fn of(
        device: &Device,
        source: Source,
        [batch, views]: [usize; 2],
        [items, steps]: [usize; 2],
        values: usize,
    ) -> Result<Self> {
        let place = match &device.backend {
            Parts::Cpu(_) => Parts::Cpu(vec![]),
            Parts::Cuda(gpu) => {
                let on_gpu = match &source {
                    Source::Prepared(_) => LoaderOnGpu::new(gpu, Some(values), 0),
                    Source::Rows { .. } | Source::Made(_) => {
                        LoaderOnGpu::new(gpu, None, steps * batch)
                    }
                };
                Parts::Cuda(Box::new(on_gpu?))
            }
        };
        let indices = device.upload_indices(&vec![0; batch])?;
        // SAFETY: what is brought are items of an order or a loader, which are checked; before that
        // nothing reads them.
        let indices = unsafe { indices.assume_below(items) };
        Ok(DeviceLoader { batch, views, items, steps, source, order: vec![], indices, place })
    }

    /// Whether the device makes the batches, or holds them.
    pub fn on_device(&self) -> bool {
        !matches!(self.source, Source::Prepared(_))
    }

    /// Goes on with an epoch.
    pub(crate) fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        if let Source::Prepared(loader) = &mut self.source {
            check_schedules(epoch, self.steps)?;
            return loader.seek(epoch.epoch, epoch.first);
        }
        let order = items_of_steps(epoch, self.items, [self.steps, self.batch])?;
        if let Parts::Cuda(gpu) = &mut self.place {
            gpu.send_order(order)?;
        }
        self.order.clear();
        self.order.extend_from_slice(order);
        Ok(())
    }

    /// Sees to it that the next step's items are there when its turn comes. Nothing of this is
    /// recorded.
    pub(crate) fn bring(&mut self, stream: &Stream) -> Result<()> {
        let step = match (&self.place, &stream.backend) {
            (Parts::Cpu(_), Parts::Cpu(stream)) => stream.step(),
            (Parts::Cuda(_), Parts::Cuda(stream)) => stream.step(),
            _ => return Err(of_another_device()),
        };
        if let Source::Prepared(loader) = &mut self.source {
            return loader.next(&mut |numbers, pixels| {
                check_items(numbers, self.items)?;
                match &mut self.place {
                    Parts::Cpu(own) => {
                        std::mem::swap(own, pixels);
                        std::mem::swap(self.indices.memory_mut::<Vec<u32>>()?, numbers);
                        Ok(())
                    }
                    Parts::Cuda(gpu) => gpu.send(numbers, pixels, &mut self.indices),
                }
            });
        }
        let first = step * self.batch;
        let over = || Error::Plan("a step beyond the end of its epoch".into());
        let batch = self.order.get(first..first + self.batch).ok_or_else(over)?;
        match (&mut self.source, &self.place) {
            (Source::Made(made), _) => made.bring(step, batch)?,
            (_, Parts::Cpu(_)) => self.indices.memory_mut::<Vec<u32>>()?.copy_from_slice(batch),
            (_, Parts::Cuda(_)) => {}
        }
        Ok(())
    }

    /// First call of a step: its batch is the current one.
    pub(crate) fn begin_step(&self, stream: &mut Stream) -> Result<()> {
        match (&self.place, &mut stream.backend) {
            (Parts::Cuda(gpu), Parts::Cuda(stream)) => {
                gpu.begin_step(stream, self.on_device(), &self.indices)
            }
            _ => Ok(()),
        }
    }

    /// The step was asked for: what its items lie in is free after it.
    pub(crate) fn taken(&mut self, stream: &Stream) -> Result<()> {
        match (&mut self.source, &stream.backend) {
            // The stream has counted the step already.
            (Source::Made(made), Parts::Cuda(stream)) => made.taken(stream.step().wrapping_sub(1)),
            _ => Ok(()),
        }
    }

    /// Copies some views of the current batch to where a network of the CPU's reads them.
    pub(crate) fn read(&self, views: &Range<usize>, to: &mut [f32]) -> Result<()> {
        let Parts::Cpu(pixels) = &self.place else {
            return Err(of_another_device());
        };
        if let Source::Rows { rows, dim } = &self.source {
            let (rows, dim) = (values(rows)?, *dim);
            Error::check_length("values of a batch of rows", self.batch * dim, to.len())?;
            let to = to.par_chunks_exact_mut(dim).zip(indices(&self.indices)?);
            to.for_each(|(to, i)| to.copy_from_slice(&rows[*i as usize * dim..][..dim]));
            return Ok(());
        }
        let each = to.len() / views.len();
        let from = pixels.get(views.start * each..views.end * each);
        let short = || Error::Plan("a batch of other sizes than the network's".into());
        to.copy_from_slice(from.ok_or_else(short)?);
        Ok(())
    }
}

/// The batch of a step.
#[derive(Clone, Copy)]
pub struct Batch<'a>(&'a DeviceLoader);

impl<'a> Batch<'a> {
    pub(crate) fn new(loader: &'a DeviceLoader) -> Self {
        Batch(loader)
    }

    /// How many items.
    pub fn len(&self) -> usize {
        self.0.batch
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many views of each item.
    pub fn views(&self) -> usize {
        self.0.views
    }

    /// The items' numbers.
    pub fn indices(&self) -> &'a Buffer<u32> {
        &self.0.indices
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

/// Numbers of items that there are.
fn check_items(indices: &[u32], items: usize) -> Result<()> {
    match indices.iter().find(|i| **i as usize >= items) {
        Some(i) => Err(Error::Plan(format!("item {i} of {items} items"))),
        None => Ok(()),
    }
}

/// The items of an epoch's steps: an order names items that there are, and fills all batches.
fn items_of_steps<'a>(
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
