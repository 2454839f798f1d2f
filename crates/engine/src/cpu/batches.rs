//! Batches on the CPU: what a data loader has prepared, or rows of a matrix.

use std::sync::Arc;

use rayon::prelude::*;

use super::stream::{CpuStream, indices, values};
use crate::batch::{BatchMaker, HostBatch, HostLoader, items_of_steps};
use crate::{Buffer, Epoch, Error, Result};

pub(crate) enum CpuBatches {
    /// From a data loader, which goes on from epoch to epoch by itself.
    Loaded(Loaded),
    /// Rows of a matrix.
    Rows(Rows),
}

pub(crate) struct Loaded {
    loader: HostLoader,
    indices: Buffer<u32>,
    pixels: Vec<f32>,
}

pub(crate) struct Rows {
    rows: Arc<Buffer>,
    dim: usize,
    batch: usize,
    order: Vec<u32>,
    indices: Buffer<u32>,
}

impl CpuBatches {
    pub(crate) fn loaded(maker: Arc<dyn BatchMaker>) -> Self {
        let batch = maker.batch();
        CpuBatches::Loaded(Loaded {
            indices: item_numbers(batch, maker.items()),
            pixels: vec![],
            loader: HostLoader::new(maker),
        })
    }

    pub(crate) fn rows(rows: Arc<Buffer>, dim: usize, batch: usize) -> Self {
        let items = rows.len() / dim.max(1);
        CpuBatches::Rows(Rows {
            rows,
            dim,
            batch,
            order: vec![],
            indices: item_numbers(batch, items),
        })
    }
}

/// Room for the numbers of a batch's items.
fn item_numbers(batch: usize, items: usize) -> Buffer<u32> {
    let numbers = Buffer::new(batch, vec![0_u32; batch]);
    // SAFETY: what is brought are items of an order or a loader, which are checked; before that
    // nothing reads them.
    unsafe { numbers.assume_below(items) }
}

impl Loaded {
    /// The views of the current batch, one after the other.
    pub(super) fn pixels(&self) -> &[f32] {
        &self.pixels
    }

    fn bring(&mut self) -> Result<()> {
        let batch = self.loader.next()?;
        let own = self.indices.memory_mut::<Vec<u32>>()?;
        let before = HostBatch {
            indices: std::mem::replace(own, batch.indices),
            pixels: std::mem::replace(&mut self.pixels, batch.pixels),
        };
        if !before.pixels.is_empty() {
            self.loader.recycle(before);
        }
        Ok(())
    }
}

impl Rows {
    /// The rows of the current batch.
    pub(super) fn gather(&self, to: &mut [f32]) -> Result<()> {
        let (rows, dim) = (values(&self.rows)?, self.dim);
        Error::check_length("values of a batch of rows", self.batch * dim, to.len())?;
        let to = to.par_chunks_exact_mut(dim).zip(indices(&self.indices)?);
        to.for_each(|(to, i)| to.copy_from_slice(&rows[*i as usize * dim..][..dim]));
        Ok(())
    }
}

impl CpuBatches {
    pub(crate) fn batch(&self) -> usize {
        match self {
            CpuBatches::Loaded(l) => l.loader.maker().batch(),
            CpuBatches::Rows(r) => r.batch,
        }
    }

    pub(crate) fn views(&self) -> usize {
        match self {
            CpuBatches::Loaded(l) => l.loader.maker().views(),
            CpuBatches::Rows(_) => 1,
        }
    }

    pub(crate) fn indices(&self) -> &Buffer<u32> {
        match self {
            CpuBatches::Loaded(l) => &l.indices,
            CpuBatches::Rows(r) => &r.indices,
        }
    }

    pub(crate) fn on_device(&self) -> bool {
        matches!(self, CpuBatches::Rows(_))
    }

    pub(crate) fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        match self {
            CpuBatches::Loaded(l) => l.loader.begin_epoch(epoch)?,
            CpuBatches::Rows(r) => {
                let items = r.rows.len() / r.dim;
                let shape = [items / r.batch.max(1), r.batch];
                let order = items_of_steps(epoch, items, shape)?;
                r.order.clear();
                r.order.extend_from_slice(order);
            }
        }
        Ok(())
    }

    pub(crate) fn bring(&mut self, stream: &mut CpuStream) -> Result<()> {
        match self {
            CpuBatches::Loaded(l) => l.bring(),
            CpuBatches::Rows(r) => {
                let first = stream.step() * r.batch;
                let over = || Error::Plan("a step beyond the end of its epoch".into());
                let batch = r.order.get(first..first + r.batch).ok_or_else(over)?;
                r.indices.memory_mut::<Vec<u32>>()?.copy_from_slice(batch);
                Ok(())
            }
        }
    }
}
