//! Where the items of batches lie: all of them on the device, or a few batches at a time, brought
//! as they are needed.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

use super::launch::Pointer;
use super::memory::PageLocked;
use super::{Cuda, Doing};
use crate::{LoadBatches, Result};

/// Batches that are on their way or in use at once, where not all items fit.
const RING: usize = 4;

/// Device memory left to others, where all items are brought: what evaluation and discovery ask
/// for.
const LEFT_FREE: usize = 2 << 30;

/// Bytes that are fetched at a time, where all items are brought.
const PIECE: usize = 64 << 20;

pub(super) enum Items {
    All(CudaSlice<u8>),
    Ring(Ring),
}

pub(super) struct Ring {
    places: CudaSlice<u8>,
    /// A buffer for each place; both are free again when the step that uses them has ended.
    buffers: Vec<PageLocked<u8>>,
    /// Copies have a stream of their own, so that they pass the steps by.
    copies: Arc<CudaStream>,
}

impl Items {
    pub(super) fn new(cuda: &Cuda, loader: &dyn LoadBatches) -> Result<Self> {
        let bytes = loader.items() * loader.item_bytes();
        let (free, _) = cuda.stream().context().mem_get_info().doing("asking for free memory")?;
        if bytes <= loader.most_bytes().min(free.saturating_sub(LEFT_FREE)) {
            return Items::all(cuda, loader);
        }
        let each = loader.batch() * loader.item_bytes();
        let context = cuda.stream().context();
        let buffer = |_| PageLocked::new(cuda, each);
        let copies = context.new_stream().doing("making a stream")?;
        let places = cuda.zeros(RING * each, "batches of items")?;
        // The zeros are not written yet: nothing may pass them by.
        copies.join(cuda.stream()).doing("sending a batch")?;
        Ok(Items::Ring(Ring {
            places,
            buffers: (0..RING).map(buffer).collect::<Result<_>>()?,
            copies,
        }))
    }

    fn all(cuda: &Cuda, loader: &dyn LoadBatches) -> Result<Self> {
        let (count, one) = (loader.items(), loader.item_bytes());
        let mut items = cuda.zeros(count * one, "the data set")?;
        let piece = (PIECE / one.max(1)).max(1);
        let mut bytes = vec![];
        for first in (0..count).step_by(piece) {
            let some: Vec<u32> = (first..count.min(first + piece)).map(|i| i as u32).collect();
            bytes.resize(some.len() * one, 0);
            loader.fetch(&some, &mut bytes);
            let start = first * one;
            let mut to = items.slice_mut(start..start + bytes.len());
            cuda.stream().memcpy_htod(&bytes, &mut to).doing("sending the data set")?;
        }
        Ok(Items::All(items))
    }

    /// How many batches take turns; 0 where all items are there.
    pub(super) fn ring(&self) -> usize {
        match self {
            Items::All(_) => 0,
            Items::Ring(_) => RING,
        }
    }

    pub(super) fn place(&self, cuda: &Cuda) -> Pointer {
        match self {
            Items::All(items) => cuda.pointer(items),
            Items::Ring(ring) => cuda.pointer(&ring.places),
        }
    }

    /// Sees to it that the items of a step are there when its turn comes.
    pub(super) fn bring(
        &mut self,
        cuda: &Cuda,
        step: usize,
        indices: &[u32],
        loader: &dyn LoadBatches,
    ) -> Result<()> {
        let Items::Ring(ring) = self else {
            return Ok(());
        };
        let turn = step % RING;
        let buffer = &mut ring.buffers[turn];
        let bytes = buffer.fill()?;
        loader.fetch(indices, bytes);
        let each = bytes.len();
        let mut place = ring.places.slice_mut(turn * each..(turn + 1) * each);
        let arrived = buffer.send(&ring.copies, &mut place)?;
        cuda.stream().wait(arrived).doing("sending a batch")
    }

    /// The step that used a batch was asked for: its place is free after it.
    pub(super) fn taken(&mut self, cuda: &Cuda, step: usize) -> Result<()> {
        let Items::Ring(ring) = self else {
            return Ok(());
        };
        ring.buffers[step % RING].keep_for(cuda.stream())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::testing;
    use crate::{Error, TakeBatch};

    /// Items that are told by their bytes, and none of which is on the device.
    struct Numbered;

    impl LoadBatches for Numbered {
        fn batch(&self) -> usize {
            4
        }

        fn views(&self) -> usize {
            1
        }

        fn items(&self) -> usize {
            64
        }

        fn item_bytes(&self) -> usize {
            1000
        }

        fn fetch(&self, items: &[u32], bytes: &mut [u8]) {
            for (bytes, item) in bytes.chunks_exact_mut(1000).zip(items) {
                bytes.fill(*item as u8);
            }
        }

        fn view_values(&self) -> usize {
            1000
        }

        fn seek(&mut self, _: u64, _: usize) -> Result<()> {
            Ok(())
        }

        fn next(&mut self, _: TakeBatch) -> Result<()> {
            Err(Error::Plan("nothing is prepared here".into()))
        }

        fn most_bytes(&self) -> usize {
            0
        }
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn the_first_batches_arrive_on_a_device_that_has_work_to_do() {
        let cuda = testing::open();
        let mut work = cuda.zeros::<u8>(1 << 30, "work").unwrap();
        for _ in 0..400 {
            cuda.stream().memset_zeros(&mut work).unwrap();
        }
        let mut items = Items::new(&cuda, &Numbered).unwrap();
        for step in 0..RING {
            let which: Vec<u32> = (1..5).map(|i| (4 * step + i) as u32).collect();
            items.bring(&cuda, step, &which, &Numbered).unwrap();
        }
        cuda.synchronise().unwrap();
        let Items::Ring(ring) = &items else {
            panic!("all items are on the device");
        };
        let there: Vec<u8> = cuda.stream().clone_dtoh(&ring.places).unwrap();
        let numbers: Vec<u8> = there.chunks(1000).map(|item| item[999]).collect();
        assert_eq!(numbers, (1..=16).collect::<Vec<u8>>());
    }
}
