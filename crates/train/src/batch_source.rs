//! Where a step's batches come from: pictures, augmented by the device's own kernel or by a data
//! loader of the host.

use std::ops::Range;
use std::sync::Arc;

use anchorhood_data::augment::kernel::{self, AugmentKernel};
use anchorhood_data::{Feed, Loader, Pictures};
use anchorhood_engine::{
    BatchForm, BatchKernel, BatchMaker, Error, HostBatch, HostBatches, Result,
};

/// Where batches are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the device if it can.
    #[default]
    Any,
    /// On the host, whatever the device can.
    Host,
    /// On the device if it can, with no more than so many bytes of pictures on it at once; the rest
    /// travels as it is needed.
    Within(usize),
}

/// Augmented pictures, for whoever makes batches of them.
pub(crate) struct PictureBatches {
    pub(crate) feed: Feed,
    /// Which pictures of each batch are this process's.
    pub(crate) part: Range<usize>,
    /// Of the data loader.
    pub(crate) threads: usize,
    pub(crate) placement: Placement,
}

/// Augmented batches of images for [`Device::batches`](anchorhood_engine::Device::batches), made by
/// the device where it can, or by a data loader of so many threads: for a training loop of one's
/// own.
pub fn image_batches(feed: Feed, threads: usize) -> Arc<dyn BatchMaker> {
    let part = 0..feed.batch;
    Arc::new(PictureBatches { feed, part, threads, placement: Placement::Any })
}

impl BatchMaker for PictureBatches {
    fn batch(&self) -> usize {
        self.part.len()
    }

    fn steps(&self) -> usize {
        self.items() / self.feed.batch.max(1)
    }

    fn views(&self) -> usize {
        self.feed.views.count()
    }

    fn items(&self) -> usize {
        self.feed.pictures.len()
    }

    fn item_bytes(&self) -> usize {
        self.feed.pictures.item_len()
    }

    fn view_values(&self) -> usize {
        self.feed.pictures.picture_len()
    }

    fn fetch(&self, items: &[u32], bytes: &mut [u8]) {
        fetch(&self.feed.pictures, items, bytes);
    }

    fn kernel(&self) -> BatchKernel {
        augmentation_kernel()
    }

    fn words(&self, form: BatchForm) -> Vec<u32> {
        let feed = &self.feed;
        let kernel = AugmentKernel {
            how: feed.views.settings()[form.view],
            height: feed.pictures.height() as u32,
            width: feed.pictures.width() as u32,
            channels: form.channels as u32,
            bf16: form.bf16,
            ring: form.ring as u32,
            slot: if feed.pictures.items_are_slots() { feed.pictures.item_len() as u32 } else { 0 },
            seed: feed.seed,
            mean: feed.mean,
            std: feed.std,
        };
        kernel.words().to_vec()
    }

    fn load(&self, epoch: u64, first: usize) -> Result<Box<dyn HostBatches>> {
        let (feed, part) = (self.feed.clone(), self.part.clone());
        let loader = Loader::start_part(epoch, first, feed, part, self.threads, 4);
        let loader = loader.map_err(|e| Error::Plan(e.to_string()))?;
        Ok(Box::new(Loaded(loader)))
    }

    fn most_bytes(&self) -> usize {
        match self.placement {
            Placement::Within(bytes) => bytes,
            Placement::Any | Placement::Host => usize::MAX,
        }
    }

    fn on_host(&self) -> bool {
        self.placement == Placement::Host
    }
}

/// A data loader's batches, as the engine takes them.
struct Loaded(Loader);

impl HostBatches for Loaded {
    fn next(&mut self) -> Option<HostBatch> {
        let batch = self.0.next()?;
        Some(HostBatch { indices: batch.indices, pixels: batch.pixels })
    }

    fn recycle(&mut self, batch: HostBatch) {
        self.0.recycle(anchorhood_data::Batch {
            indices: batch.indices,
            pixels: batch.pixels,
            ..Default::default()
        });
    }
}

/// The kernel by which a GPU makes batches.
pub(crate) fn augmentation_kernel() -> BatchKernel {
    BatchKernel { source: kernel::SOURCE, name: kernel::NAME, threads: kernel::THREADS }
}

/// The bytes of some items, one after the other.
fn fetch(pictures: &Pictures, which: &[u32], bytes: &mut [u8]) {
    use rayon::prelude::*;
    let one = pictures.item_len();
    // A few at a time: a small picture is not worth a task.
    let run = (64_usize << 10).div_ceil(one.max(1));
    let runs = bytes.par_chunks_mut(run * one).zip(which.par_chunks(run));
    runs.for_each(|(bytes, which)| {
        let mut scratch = vec![];
        for (to, i) in bytes.chunks_exact_mut(one).zip(which) {
            to.copy_from_slice(pictures.item_in(*i as usize, &mut scratch));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::{Cuda, Library};

    #[test]
    fn the_augmentation_compiles_for_hopper() {
        if let Err(e) = Library::Nvrtc.open() {
            anchorhood_testing::skip(&format!("no NVRTC: {e}"));
            return;
        }
        assert!(Cuda::try_compile(&augmentation_kernel()).unwrap() > 1000);
    }
}
