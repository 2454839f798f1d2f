//! Whole steps of training, written once: a memory of features, and two views.

use std::sync::Arc;

use anchorhood_engine::{
    Batch, Buffer, Device, DeviceLoader, DevicePositives, Epoch, Graph, Input, LoadBatches, Loss,
    Network, NetworkOptions, Positives, Result, Scalar, SoftmaxLoss, Stream, TakeBatch, Tensors,
};
use anchorhood_storage::random::Draws;

use super::{read_all, uniform};

/// The schedule that a momentum copy follows.
pub const MOMENTUM: Scalar = Scalar(1);

/// A network trained by the softmax over a memory with a row for each item, and its momentum copy.
pub struct WithMemory {
    pub device: Device,
    pub net: Network,
    pub copy: Network,
    pub keys: Buffer,
    pub rows: Buffer,
    pub temperature: f32,
    positives: DevicePositives,
}

impl WithMemory {
    pub fn new(device: &Device, graph: &Graph, options: &NetworkOptions, items: usize) -> Self {
        let [mut net, mut copy] = [(); 2].map(|()| device.network(graph, options).unwrap());
        net.initialise(3).unwrap();
        copy.initialise(4).unwrap();
        let mut positives = Positives::default();
        (0..items).for_each(|i| positives.push([i as u32, ((i + 7) % items) as u32]));
        WithMemory {
            keys: device.upload(&uniform(1, items * net.features())).unwrap(),
            rows: device.zeros(options.batch).unwrap(),
            positives: device.positives(&positives, items).unwrap(),
            temperature: 0.1,
            device: device.clone(),
            net,
            copy,
        }
    }

    /// One step: forwards, loss over all keys, backwards, weights, memory, momentum copy.
    pub fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.net.forward(stream, 0, batch.view(0))?;
        self.learn(stream, batch.indices())?;
        self.copy.follow(stream, &self.net, MOMENTUM)
    }

    /// What follows the pass forwards over these items, but for the momentum copy.
    pub fn learn(&mut self, stream: &mut Stream, items: &Buffer<u32>) -> Result<()> {
        let dim = self.net.features();
        let (queries, gradient) = self.net.output_and_gradient();
        let of = SoftmaxLoss {
            queries,
            keys: &self.keys,
            dim,
            temperature: self.temperature,
            positives: &self.positives,
            items: Some(items),
        };
        let loss = Loss { rows: &mut self.rows, gradient, weight: 1.0 };
        stream.softmax_loss(&of, loss)?;
        self.net.backward(stream, 0)?;
        self.net.update(stream)?;
        stream.blend_rows(&mut self.keys, dim, items, self.net.output(), 0.5)
    }

    /// Weights and statistics, the optimiser's state, the memory and the losses of the last batch.
    pub fn state(&self) -> Vec<Vec<f32>> {
        let mut all = read_all(&self.net, Tensors::Values);
        for slot in 0..self.net.slots() {
            all.extend(read_all(&self.net, Tensors::Slot(slot)));
        }
        all.extend([&self.keys, &self.rows].map(|b| self.device.download(b).unwrap()));
        all
    }
}

/// A network of two passes, trained by the contrastive loss between two views.
pub struct TwoViews {
    pub net: Network,
    pub rows: Buffer,
}

impl TwoViews {
    pub fn new(device: &Device, graph: &Graph, options: NetworkOptions) -> Self {
        let mut net = device.network(graph, &options.with_passes(2)).unwrap();
        net.initialise(5).unwrap();
        TwoViews { rows: device.zeros(2 * net.batch()).unwrap(), net }
    }

    pub fn step(&mut self, stream: &mut Stream, batch: Batch) -> Result<()> {
        self.step_over(stream, [batch.view(0), batch.view(1)])
    }

    /// The step over two views, wherever they come from.
    pub fn step_over(&mut self, stream: &mut Stream, views: [Input; 2]) -> Result<()> {
        for (pass, view) in views.into_iter().enumerate() {
            self.net.forward(stream, pass, view)?;
        }
        let dim = self.net.features();
        let (rows, gradient) = self.net.output_and_gradient();
        let loss = Loss { rows: &mut self.rows, gradient, weight: 1.0 };
        stream.contrastive(rows, 2, dim, 0.5, loss)?;
        for pass in 0..2 {
            self.net.backward(stream, pass)?;
        }
        self.net.update(stream)
    }
}

/// Some rows of a matrix, one after the other.
pub fn gathered(rows: &[f32], dim: usize, items: &[u32]) -> Vec<f32> {
    items.iter().flat_map(|i| &rows[*i as usize * dim..][..dim]).copied().collect()
}

/// Batches of rows of a matrix.
pub fn row_batches(device: &Device, rows: Vec<f32>, dim: usize, batch: usize) -> DeviceLoader {
    let rows = Arc::new(device.hand_over(rows).unwrap());
    device.row_batches(rows, dim, batch).unwrap()
}

/// Asks for so many steps of an epoch that begins with them.
pub fn take_steps(
    stream: &mut Stream,
    source: &mut DeviceLoader,
    epoch: &Epoch,
    count: usize,
    mut work: impl FnMut(&mut Stream, Batch) -> Result<()>,
) {
    stream.begin_epoch(source, epoch).unwrap();
    (0..count).for_each(|_| stream.step(source, &mut work).unwrap());
}

/// The losses of the steps since the last time.
pub fn losses_of(stream: &mut Stream) -> Vec<f64> {
    let mut losses = vec![];
    stream.losses(&mut losses).unwrap();
    losses
}

/// An epoch of items in an order, with a schedule for each number.
pub fn epoch<'a>(order: &'a [u32], number: u64, scalars: &'a [Vec<f32>]) -> Epoch<'a> {
    Epoch { epoch: 0, order, first: 0, number, scalars }
}

/// Views of random numbers, prepared by the host on any device: batch after batch in the items'
/// order.
#[derive(Clone, Default)]
pub struct HostViews {
    pub batch: usize,
    pub views: usize,
    pub items: usize,
    /// Values of a view.
    pub len: usize,
    /// The batch to come, counted over all epochs.
    pub next: usize,
    /// What batches are written to.
    pub spare: (Vec<u32>, Vec<f32>),
}

impl HostViews {
    pub fn on(self, device: &Device) -> DeviceLoader {
        device.batches(Box::new(self)).unwrap()
    }
}

impl LoadBatches for HostViews {
    fn batch(&self) -> usize {
        self.batch
    }

    fn views(&self) -> usize {
        self.views
    }

    fn items(&self) -> usize {
        self.items
    }

    fn view_values(&self) -> usize {
        self.len
    }

    fn seek(&mut self, epoch: u64, step: usize) -> Result<()> {
        self.next = epoch as usize * self.steps() + step;
        Ok(())
    }

    fn next(&mut self, take: TakeBatch) -> Result<()> {
        let first = (self.next % self.steps() * self.batch) as u32;
        let (indices, pixels) = &mut self.spare;
        indices.clear();
        indices.extend(first..first + self.batch as u32);
        pixels.resize(self.views * self.batch * self.len, 0.0);
        let item = self.next as u64;
        Draws::new(9, anchorhood_storage::random::Stream::Test, 0, item)
            .fill_symmetric(pixels, 1.0);
        self.next += 1;
        take(indices, pixels)
    }
}
