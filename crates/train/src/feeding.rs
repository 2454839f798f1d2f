//! Who leads the steps: the host, with batches that its threads prepare, or the device, which makes batches by itself.

use anchorhood_data::augment::kernel::{self, AugmentKernel};
use anchorhood_data::{Feed, Loader, Pictures};
use anchorhood_engine::{BatchForm, BatchKernel, BatchMaker, Device, Steps};
use anchorhood_random::{Draws, Stream};

use crate::TrainError;

/// Where the steps' batches come from.
pub(crate) enum Feeding<D: Device> {
    /// From threads of the host.
    Host(Loader),
    /// From the device.
    Device(DeviceFeeding<D>),
}

/// Who is to lead the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lead {
    /// The device if it can.
    #[default]
    Any,
    /// The host, whatever the device can.
    Host,
    /// The device if it can, with no more than so many bytes of pictures on it at once; the rest travels as it is needed.
    Within(usize),
}

pub(crate) struct DeviceFeeding<D: Device> {
    pub steps: D::Steps,
    /// The epoch whose order the device has, and the batch it goes on with.
    at: Option<(u64, usize)>,
}

impl<D: Device> Feeding<D> {
    /// Starts with a batch of an epoch.
    pub fn start(
        device: &D,
        network: &D::Network,
        feed: Feed,
        threads: usize,
        lead: Lead,
        (epoch, batch): (u64, usize),
    ) -> Result<Self, TrainError> {
        feed.augmentation.check()?;
        if lead == Lead::Host {
            let loader = Loader::start_at(epoch, batch, feed, threads, 4)?;
            return Ok(Feeding::Host(loader));
        }
        let pictures = &feed.pictures;
        let words = |form: BatchForm| kernel_words(&feed, form);
        let maker = BatchMaker {
            kernel: augmentation_kernel(),
            words: &words,
            items: pictures.len(),
            item_bytes: pictures.picture_len(),
            fetch: &|which, bytes| fetch(pictures, which, bytes),
            most_bytes: match lead {
                Lead::Within(bytes) => bytes,
                _ => usize::MAX,
            },
        };
        Ok(match device.steps(network, &maker)? {
            Some(steps) => Feeding::Device(DeviceFeeding { steps, at: None }),
            None => Feeding::Host(Loader::start_at(epoch, batch, feed, threads, 4)?),
        })
    }
}

impl<D: Device> DeviceFeeding<D> {
    /// Gives the device the order of an epoch, unless it is in the midst of it.
    pub fn seek(&mut self, seed: u64, n: usize, to: (u64, usize)) -> Result<(), TrainError> {
        if self.at != Some(to) {
            let order = Draws::new(seed, Stream::Order, to.0, 0).permutation(n);
            self.steps.begin_epoch(to.0, &order, to.1)?;
            self.at = Some(to);
        }
        Ok(())
    }

    /// So many batches were taken.
    pub fn moved(&mut self, batches: usize) {
        if let Some((_, batch)) = &mut self.at {
            *batch += batches;
        }
    }
}

/// The kernel by which a GPU makes batches.
pub(crate) fn augmentation_kernel() -> BatchKernel {
    BatchKernel {
        source: kernel::SOURCE,
        name: kernel::NAME,
        threads: kernel::THREADS,
    }
}

fn kernel_words(feed: &Feed, form: BatchForm) -> Vec<u32> {
    let kernel = AugmentKernel {
        how: feed.augmentation,
        height: feed.pictures.height() as u32,
        width: feed.pictures.width() as u32,
        channels: form.channels as u32,
        bf16: form.bf16,
        ring: form.ring as u32,
        seed: feed.seed,
        mean: feed.mean,
        std: feed.std,
    };
    kernel.words().to_vec()
}

/// The bytes of some pictures, one after the other.
pub(crate) fn fetch(pictures: &Pictures, which: &[u32], bytes: &mut [u8]) {
    use rayon::prelude::*;
    let one = pictures.picture_len();
    // A few at a time: a small picture is not worth a task.
    let run = (64_usize << 10).div_ceil(one.max(1));
    let runs = bytes.par_chunks_mut(run * one).zip(which.par_chunks(run));
    runs.for_each(|(bytes, which)| {
        let mut scratch = vec![];
        for (to, i) in bytes.chunks_exact_mut(one).zip(which) {
            to.copy_from_slice(pictures.picture_in(*i as usize, &mut scratch));
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
            eprintln!("skipped, the kernel is not compiled: {e}");
            return;
        }
        assert!(Cuda::try_compile(&augmentation_kernel()).unwrap() > 1000);
    }
}
