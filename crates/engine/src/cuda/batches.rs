//! Batches on the GPU: made by a kernel from items that lie there or travel ahead, prepared by a
//! data loader of the host, or rows of a matrix.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::{CudaFunction, CudaSlice};

use super::bound_stream::BoundStream;
use super::items::Items;
use super::launch::{Pointer, launch, shape};
use super::memory::Staging;
use super::stream::GpuStream;
use super::{Cuda, slice};
use crate::backend::Parts;
use crate::batch::{DeviceLoader, LoadBatches, Source};
use crate::buffer::of_another_device;
use crate::{Buffer, Error, KernelSource, Result};

/// What a GPU has of its batches, however they come about.
pub(crate) struct LoaderOnGpu {
    cuda: Cuda,
    /// The views that the host prepares arrive here.
    pixels: Option<Staging>,
    /// The items of all steps' batches.
    order: CudaSlice<u32>,
}

/// Views made by a kernel.
pub(crate) struct Made {
    cuda: Cuda,
    loader: Box<dyn LoadBatches>,
    items: Items,
    kernel: CudaFunction,
    threads: u32,
    /// What the kernel is told of a view, by its number, channels and whether it is bf16, for each
    /// that was asked for.
    words: Mutex<HashMap<(usize, usize, bool), CudaSlice<u32>>>,
}

/// Where a network finds a view.
pub(super) enum View<'a> {
    /// f32 rows on the device.
    Rows(Pointer),
    /// Rows of a matrix that the batch's indices name.
    Gathered { rows: Pointer, indices: Pointer },
    /// Nowhere yet: it is made where the network wants it.
    Made(&'a Made),
}

impl DeviceLoader {
    /// Where some views of the current batch are.
    pub(super) fn view(&self, views: &Range<usize>) -> Result<View<'_>> {
        let Parts::Cuda(gpu) = &self.place else {
            return Err(of_another_device());
        };
        Ok(match &self.source {
            Source::Made(made) => View::Made(made),
            Source::Prepared(_) => {
                let pixels = gpu.pixels.as_ref().ok_or_else(nothing_prepared)?;
                let one = pixels.len() / (self.views * self.batch);
                let first = 4 * views.start * self.batch * one;
                View::Rows(pixels.arrival(&gpu.cuda) + first as u64)
            }
            Source::Rows { rows, .. } => View::Gathered {
                rows: slice(&gpu.cuda, rows)?,
                indices: slice(&gpu.cuda, &self.indices)?,
            },
        })
    }
}

impl LoaderOnGpu {
    /// For batches of so many values that the host prepares, if it does; for an order of so many
    /// items.
    pub(crate) fn new(cuda: &Cuda, prepared: Option<usize>, ordered: usize) -> Result<Self> {
        Ok(LoaderOnGpu {
            pixels: prepared.map(|len| Staging::new(cuda, len)).transpose()?,
            order: cuda.zeros(ordered, "the order of an epoch")?,
            cuda: cuda.clone(),
        })
    }

    /// Sends what the host has prepared.
    pub(crate) fn send(
        &mut self,
        numbers: &[u32],
        pixels: &[f32],
        indices: &mut Buffer<u32>,
    ) -> Result<()> {
        let staging = self.pixels.as_mut().ok_or_else(nothing_prepared)?;
        Error::check_length("pixels of a batch", staging.len(), pixels.len())?;
        staging.send(&self.cuda, pixels)?;
        self.cuda.send(numbers, indices.memory_mut()?)
    }

    /// Sends the items of all steps of an epoch.
    pub(crate) fn send_order(&mut self, order: &[u32]) -> Result<()> {
        self.cuda.send(order, &mut self.order)
    }

    /// First call of a step, which takes its batch's items from the order where there is one.
    pub(crate) fn begin_step(
        &self,
        stream: &mut GpuStream,
        ordered: bool,
        indices: &Buffer<u32>,
    ) -> Result<()> {
        let order = if ordered { self.cuda.pointer(&self.order) } else { 0 };
        let to = slice(&self.cuda, indices)?;
        stream.begin_kernel(order, indices.len(), to)
    }
}

fn nothing_prepared() -> Error {
    Error::Plan("a batch that the host does not prepare".into())
}

impl Made {
    pub(crate) fn new(
        cuda: &Cuda,
        loader: Box<dyn LoadBatches>,
        kernel: &KernelSource,
    ) -> Result<Self> {
        Ok(Made {
            items: Items::new(cuda, &*loader)?,
            kernel: cuda.foreign(kernel)?,
            threads: kernel.threads,
            words: Mutex::default(),
            cuda: cuda.clone(),
            loader,
        })
    }

    /// Has a stream make one view of the current batch.
    pub(super) fn make(
        &self,
        (stream, on): (&GpuStream, &BoundStream),
        indices: &Buffer<u32>,
        view: usize,
        (channels, bf16): (usize, bool),
        to: Pointer,
    ) -> Result<()> {
        let cuda = &self.cuda;
        let words = self.words(view, channels, bf16)?;
        let (batch, current) = (indices.len() as u32, stream.current());
        let indices = slice(cuda, indices)?;
        let (items, none) = (self.items.place(cuda), 0 as Pointer);
        let shape = shape([batch, 1, 1], [self.threads, 1], 0);
        let arguments = ([words, items, indices, current], view as u32, [to, none]);
        launch(&on.inner, &self.kernel, shape, "making a batch", arguments)
    }

    /// The words for a view, sent when it is met for the first time.
    fn words(&self, view: usize, channels: usize, bf16: bool) -> Result<Pointer> {
        let (cuda, form) = (&self.cuda, (view, channels, bf16));
        let mut kept = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(words) = kept.get(&form) {
            return Ok(cuda.pointer(words));
        }
        let words = self.loader.words(view, channels, bf16, self.items.ring());
        let mut on_device = cuda.zeros(words.len(), "settings of the batches")?;
        cuda.send(&words, &mut on_device)?;
        let place = cuda.pointer(&on_device);
        kept.insert(form, on_device);
        Ok(place)
    }

    /// Sees to it that a step's items are there when its turn comes.
    pub(crate) fn bring(&mut self, step: usize, batch: &[u32]) -> Result<()> {
        self.items.bring(&self.cuda, step, batch, &*self.loader)
    }

    /// A step was asked for: what its items lie in is free after it.
    pub(crate) fn taken(&mut self, step: usize) -> Result<()> {
        self.items.taken(&self.cuda, step)
    }
}
