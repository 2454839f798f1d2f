//! One random batch, prepared once and handed out again and again.

use std::sync::Arc;

use anchorhood::Device;
use anchorhood::research::{
    BatchForm, BatchKernel, BatchMaker, BatchSource, Epoch, HostBatch, HostBatches, Result, Stream,
};
use anchorhood::research::{Draws, DrawsFor as Purpose};

/// The batch, as a step finds it among so many items.
pub struct FixedBatch {
    items: usize,
    batch: HostBatch,
}

impl FixedBatch {
    /// Random pictures of `size` pixels a side, of mean 0 and deviation 1.
    pub fn new(items: usize, batch: usize, size: usize) -> Self {
        let mut pixels = vec![0.0; batch * size * size * 3];
        Draws::new(0, Purpose::Test, 0, 0).fill_symmetric(&mut pixels, 3_f32.sqrt());
        let indices = (0..batch).map(|i| (i % items) as u32).collect();
        FixedBatch { items, batch: HostBatch { indices, pixels } }
    }

    /// The batch on a device, for steps of a stream at one learning rate.
    pub fn source(self, device: &Device, stream: &mut Stream, rate: f32) -> Result<BatchSource> {
        let order: Vec<u32> = (0..self.items as u32).collect();
        let steps = self.items / self.batch.indices.len();
        let mut source = device.batches(Arc::new(self))?;
        let epoch =
            Epoch { epoch: 0, order: &order, first: 0, number: 0, scalars: &[vec![rate; steps]] };
        stream.begin_epoch(&mut source, &epoch)?;
        Ok(source)
    }
}

impl BatchMaker for FixedBatch {
    fn batch(&self) -> usize {
        self.batch.indices.len()
    }

    fn views(&self) -> usize {
        1
    }

    fn items(&self) -> usize {
        self.items
    }

    fn item_bytes(&self) -> usize {
        self.batch.pixels.len() / self.batch() * size_of::<f32>()
    }

    fn on_host(&self) -> bool {
        true
    }

    fn load(&self, _: u64, _: usize) -> Result<Box<dyn HostBatches>> {
        Ok(Box::new(Hands(vec![self.batch.clone(), self.batch.clone()])))
    }

    // No device asks for these of a batch that the host prepares.

    fn fetch(&self, _: &[u32], bytes: &mut [u8]) {
        bytes.fill(0);
    }

    fn kernel(&self) -> BatchKernel {
        BatchKernel { source: "", name: "none", threads: 1 }
    }

    fn words(&self, _: BatchForm) -> Vec<u32> {
        vec![]
    }
}

/// Copies that go to and fro: one is on the device, one at hand.
struct Hands(Vec<HostBatch>);

impl HostBatches for Hands {
    fn next(&mut self) -> Option<HostBatch> {
        self.0.pop()
    }

    fn recycle(&mut self, batch: HostBatch) {
        self.0.push(batch);
    }
}
