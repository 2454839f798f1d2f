//! Augmented images as a device takes them: made by its own kernel, or prepared by a data loader of
//! the host.

use anchorhood_data::augment::kernel::{self, AugmentKernel};
use anchorhood_data::{DataLoader, Pictures, Prefetcher};
use anchorhood_engine::{Error, KernelSource, LoadBatches, Result, TakeBatch};

/// Batches of a data loader for [`Device::batches`](anchorhood_engine::Device::batches), made by
/// the device where it can: for a training loop of one's own.
pub fn image_batches(loader: DataLoader) -> Box<dyn LoadBatches> {
    image_batches_within(loader, Some(usize::MAX))
}

/// The same, with no more than so many bytes of images on the device at once (the rest travels as
/// it is needed); or, without a limit, prepared by the host whatever the device can.
pub(crate) fn image_batches_within(
    loader: DataLoader,
    on_device: Option<usize>,
) -> Box<dyn LoadBatches> {
    Box::new(ImageBatches { loader, prefetcher: None, on_device })
}

struct ImageBatches {
    loader: DataLoader,
    /// Since the host was first asked for batches.
    prefetcher: Option<Prefetcher>,
    on_device: Option<usize>,
}

impl LoadBatches for ImageBatches {
    fn batch(&self) -> usize {
        self.loader.part.len()
    }

    fn views(&self) -> usize {
        self.loader.views.count()
    }

    fn items(&self) -> usize {
        self.loader.images.len()
    }

    fn steps(&self) -> usize {
        self.loader.batches_per_epoch()
    }

    fn view_values(&self) -> usize {
        self.loader.images.picture_len()
    }

    fn seek(&mut self, epoch: u64, step: usize) -> Result<()> {
        if !self.prefetcher.as_ref().is_some_and(|p| p.is_at(epoch, step)) {
            self.prefetcher = None; // its threads first
            let prefetcher = self.loader.prefetch(epoch, step);
            self.prefetcher = Some(prefetcher.map_err(|e| Error::Plan(e.to_string()))?);
        }
        Ok(())
    }

    fn next(&mut self, take: TakeBatch) -> Result<()> {
        let ended = || Error::Device("the data loader has ended".into());
        let prefetcher = self.prefetcher.as_mut().ok_or_else(ended)?;
        let mut batch = prefetcher.next().ok_or_else(ended)?;
        take(&mut batch.indices, &mut batch.pixels)?;
        prefetcher.recycle(batch);
        Ok(())
    }

    fn kernel(&self) -> Option<KernelSource> {
        self.on_device.map(|_| augmentation_kernel())
    }

    fn words(&self, view: usize, channels: usize, bf16: bool, ring: usize) -> Vec<u32> {
        let (loader, images) = (&self.loader, &self.loader.images);
        let kernel = AugmentKernel {
            how: loader.views.settings()[view],
            height: images.height() as u32,
            width: images.width() as u32,
            channels: channels as u32,
            bf16,
            ring: ring as u32,
            slot: if images.items_are_slots() { images.item_len() as u32 } else { 0 },
            seed: loader.seed,
            mean: loader.mean,
            std: loader.std,
        };
        kernel.words().to_vec()
    }

    fn item_bytes(&self) -> usize {
        self.loader.images.item_len()
    }

    fn fetch(&self, items: &[u32], bytes: &mut [u8]) {
        fetch(&self.loader.images, items, bytes);
    }

    fn most_bytes(&self) -> usize {
        self.on_device.unwrap_or(0)
    }
}

/// The kernel by which a GPU makes batches.
fn augmentation_kernel() -> KernelSource {
    KernelSource { source: kernel::SOURCE, name: kernel::NAME, threads: kernel::THREADS }
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
