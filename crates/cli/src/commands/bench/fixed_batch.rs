//! One random batch, prepared once and handed out again and again.

use anchorhood::Device;
use anchorhood::research::{
    DeviceLoader, Draws, DrawsFor as Purpose, Epoch, LoadBatches, Result, Stream, TakeBatch,
};

/// The batch, as a step finds it among so many items.
pub struct FixedBatch {
    items: usize,
    batch: (Vec<u32>, Vec<f32>),
    /// The copy that is handed out; the device gives back what it had before.
    copy: (Vec<u32>, Vec<f32>),
}

impl FixedBatch {
    /// Random images of `size` pixels a side, of mean 0 and deviation 1.
    pub fn new(items: usize, batch: usize, size: usize) -> Self {
        let mut pixels = vec![0.0; batch * size * size * 3];
        Draws::new(0, Purpose::Test, 0, 0).fill_symmetric(&mut pixels, 3_f32.sqrt());
        let indices = (0..batch).map(|i| (i % items) as u32).collect();
        FixedBatch { items, batch: (indices, pixels), copy: Default::default() }
    }

    /// The batch on a device, for steps of a stream at one learning rate.
    pub fn on(self, device: &Device, stream: &mut Stream, rate: f32) -> Result<DeviceLoader> {
        let scalars = [vec![rate; self.steps()]];
        let mut loader = device.batches(Box::new(self))?;
        let epoch = Epoch { epoch: 0, order: &[], first: 0, number: 0, scalars: &scalars };
        stream.begin_epoch(&mut loader, &epoch)?;
        Ok(loader)
    }
}

impl LoadBatches for FixedBatch {
    fn batch(&self) -> usize {
        self.batch.0.len()
    }

    fn views(&self) -> usize {
        1
    }

    fn items(&self) -> usize {
        self.items
    }

    fn view_values(&self) -> usize {
        self.batch.1.len() / self.batch()
    }

    fn seek(&mut self, _: u64, _: usize) -> Result<()> {
        Ok(())
    }

    fn next(&mut self, take: TakeBatch) -> Result<()> {
        let (indices, pixels) = &mut self.copy;
        // A device has nothing to give back for its first batch.
        if pixels.is_empty() {
            (*indices, *pixels) = self.batch.clone();
        }
        take(indices, pixels)
    }
}
