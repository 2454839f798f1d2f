//! Batches on the GPU: made by a kernel from items that lie there or travel ahead, prepared by a
//! data loader of the host, or rows of a matrix.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaFunction, CudaSlice};

use super::bound_stream::BoundStream;
use super::items::Items;
use super::launch::{Pointer, launch, shape};
use super::memory::Staging;
use super::stream::GpuStream;
use super::{Cuda, slice};
use crate::batch::{BatchMaker, HostLoader, items_of_steps};
use crate::{BatchForm, Buffer, Epoch, Error, Result};

pub(crate) struct CudaBatches {
    cuda: Cuda,
    batch: usize,
    views: usize,
    items: usize,
    steps: usize,
    /// The items of all steps' batches.
    order: CudaSlice<u32>,
    host_order: Vec<u32>,
    indices: Buffer<u32>,
    kind: Kind,
}

enum Kind {
    Made(Made),
    Loaded(Loaded),
    Rows(Arc<Buffer>),
}

/// Made by a kernel.
struct Made {
    maker: Arc<dyn BatchMaker>,
    items: Items,
    kernel: CudaFunction,
    threads: u32,
    /// What the kernel is told, for each form that was asked for.
    words: Mutex<HashMap<BatchForm, CudaSlice<u32>>>,
}

/// Prepared by the host.
struct Loaded {
    loader: HostLoader,
    pixels: Staging,
}

/// Where a network finds a view.
pub(super) enum View {
    /// f32 rows on the device.
    Rows(Pointer),
    /// Rows of a matrix that the batch's indices name.
    Gathered { rows: Pointer, indices: Pointer },
    /// Nowhere yet: it is made where the network wants it.
    Made,
}

impl CudaBatches {
    pub(super) fn new(cuda: &Cuda, maker: Arc<dyn BatchMaker>) -> Result<Self> {
        let (batch, views, items) = (maker.batch(), maker.views(), maker.items());
        let steps = maker.steps();
        let kind = match maker.on_host() {
            true => {
                let len = batch * views * maker.view_values();
                Kind::Loaded(Loaded {
                    pixels: Staging::new(cuda, len)?,
                    loader: HostLoader::new(maker),
                })
            }
            false => Kind::Made(Made {
                items: Items::new(cuda, &*maker)?,
                kernel: cuda.foreign(&maker.kernel())?,
                threads: maker.kernel().threads,
                words: Mutex::default(),
                maker,
            }),
        };
        CudaBatches::of(cuda, [batch, views], [items, steps], kind)
    }

    pub(super) fn rows(cuda: &Cuda, rows: Arc<Buffer>, dim: usize, batch: usize) -> Result<Self> {
        let items = rows.len() / dim;
        let steps = items / batch.max(1);
        CudaBatches::of(cuda, [batch, 1], [items, steps], Kind::Rows(rows))
    }

    fn of(
        cuda: &Cuda,
        [batch, views]: [usize; 2],
        [items, steps]: [usize; 2],
        kind: Kind,
    ) -> Result<Self> {
        let ordered = match kind {
            Kind::Made(_) | Kind::Rows(_) => steps * batch,
            Kind::Loaded(_) => 0,
        };
        Ok(CudaBatches {
            batch,
            views,
            items,
            steps,
            order: cuda.zeros(ordered, "the order of an epoch")?,
            host_order: vec![],
            // SAFETY: what is brought are items of an order or a loader, which are checked; before
            // that nothing reads them.
            indices: unsafe { cuda.indices(&vec![0; batch])?.assume_below(items) },
            kind,
            cuda: cuda.clone(),
        })
    }

    /// Where some views of the current batch are.
    pub(super) fn view(&self, views: &Range<usize>) -> Result<View> {
        Ok(match &self.kind {
            Kind::Made(_) => View::Made,
            Kind::Loaded(loaded) => {
                let one = loaded.pixels.len() / (self.views * self.batch);
                let first = 4 * views.start * self.batch * one;
                View::Rows(loaded.pixels.arrival(&self.cuda) + first as u64)
            }
            Kind::Rows(rows) => View::Gathered {
                rows: slice(&self.cuda, rows)?,
                indices: slice(&self.cuda, &self.indices)?,
            },
        })
    }

    /// Has a stream make one view of the current batch.
    pub(super) fn make(
        &self,
        stream: &GpuStream,
        on: &BoundStream,
        view: usize,
        (channels, bf16): (usize, bool),
        to: Pointer,
    ) -> Result<()> {
        let Kind::Made(made) = &self.kind else {
            return Err(Error::Plan("a view that is not made by the device".into()));
        };
        let cuda = &self.cuda;
        let words =
            made.words(cuda, BatchForm { view, channels, bf16, ring: made.items.ring() })?;
        let (indices, current) = (slice(cuda, &self.indices)?, stream.current());
        let (items, none) = (made.items.place(cuda), 0 as Pointer);
        let shape = shape([self.batch as u32, 1, 1], [made.threads, 1], 0);
        let arguments = ([words, items, indices, current], view as u32, [to, none]);
        launch(&on.inner, &made.kernel, shape, "making a batch", arguments)
    }
}

impl Made {
    /// The words for a form, sent when it is met for the first time.
    fn words(&self, cuda: &Cuda, form: BatchForm) -> Result<Pointer> {
        let mut kept = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(words) = kept.get(&form) {
            return Ok(cuda.pointer(words));
        }
        let words = self.maker.words(form);
        let mut on_device = cuda.zeros(words.len(), "settings of the batches")?;
        cuda.send(&words, &mut on_device)?;
        let place = cuda.pointer(&on_device);
        kept.insert(form, on_device);
        Ok(place)
    }
}

impl Loaded {
    fn bring(&mut self, cuda: &Cuda, indices: &mut Buffer<u32>) -> Result<()> {
        let batch = self.loader.next()?;
        Error::check_length("pixels of a batch", self.pixels.len(), batch.pixels.len())?;
        self.pixels.send(cuda, &batch.pixels)?;
        cuda.send(&batch.indices, indices.memory_mut()?)?;
        self.loader.recycle(batch);
        Ok(())
    }
}

impl CudaBatches {
    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    pub(crate) fn views(&self) -> usize {
        self.views
    }

    pub(crate) fn indices(&self) -> &Buffer<u32> {
        &self.indices
    }

    pub(crate) fn on_device(&self) -> bool {
        !matches!(self.kind, Kind::Loaded(_))
    }

    pub(crate) fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        if let Kind::Loaded(loaded) = &mut self.kind {
            return loaded.loader.begin_epoch(epoch);
        }
        let order = items_of_steps(epoch, self.items, [self.steps, self.batch])?;
        self.cuda.send(order, &mut self.order)?;
        self.host_order.clear();
        self.host_order.extend_from_slice(order);
        Ok(())
    }

    pub(crate) fn bring(&mut self, stream: &mut GpuStream) -> Result<()> {
        let step = stream.step();
        if let Kind::Loaded(loaded) = &mut self.kind {
            return loaded.bring(&self.cuda, &mut self.indices);
        }
        let first = step * self.batch;
        let over = || Error::Plan("a step beyond the end of its epoch".into());
        let batch = self.host_order.get(first..first + self.batch);
        let batch = batch.ok_or_else(over)?;
        match &mut self.kind {
            Kind::Made(made) => {
                let maker = &*made.maker;
                made.items.bring(&self.cuda, step, batch, maker)
            }
            Kind::Loaded(_) | Kind::Rows(_) => Ok(()),
        }
    }

    pub(crate) fn begin_step(&mut self, stream: &mut GpuStream) -> Result<()> {
        let order = match &self.kind {
            Kind::Made(_) | Kind::Rows(_) => self.cuda.pointer(&self.order),
            Kind::Loaded(_) => 0,
        };
        let to = slice(&self.cuda, &self.indices)?;
        stream.begin_kernel(order, self.batch, to)
    }

    pub(crate) fn taken(&mut self, stream: &mut GpuStream) -> Result<()> {
        // The stream has counted the step already.
        let step = stream.step().wrapping_sub(1);
        match &mut self.kind {
            Kind::Made(made) => made.items.taken(&self.cuda, step),
            Kind::Loaded(_) | Kind::Rows(_) => Ok(()),
        }
    }
}
