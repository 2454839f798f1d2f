//! One type for every machine that runs networks: the CPU or a GPU.
//!
//! Code above the engine takes a [`Device`] and is compiled once. Buffers, networks, streams and
//! batches are a device's own, and are passed on without leaving it.
//! Work is done in the order it is asked for; a device that works asynchronously waits where values
//! are read.

use std::sync::Arc;

use crate::backend::{Parts, either};
use crate::batch::{DeviceLoader, LoadBatches};
use crate::communicator::Communicator;
use crate::graph::Graph;
use crate::network::{Network, NetworkOptions};
use crate::shards::scan_shards;
use crate::similarity::{DevicePositives, Positives, Scan, ScanResult};
use crate::stream::Stream;
use crate::{Buffer, Cpu, Cuda, Error, Precision, Result, Shard};

/// A machine that runs networks.
#[derive(Clone)]
pub struct Device {
    pub(crate) backend: Parts<Cpu, Cuda>,
    communicator: Communicator,
}

impl Device {
    fn of(backend: Parts<Cpu, Cuda>) -> Self {
        Device { backend, communicator: Communicator::single() }
    }

    /// The same, working with other processes, each of which has a device of its own.
    pub fn among(self, communicator: Communicator) -> Self {
        Device { communicator, ..self }
    }

    /// The same without the others.
    pub fn alone(&self) -> Self {
        self.clone().among(Communicator::single())
    }

    /// The processes that it works with.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// All processes are done with what they did together, and its streams are gone: the device
    /// lets go of the others' and waits until they have. One that is dropped without it lets go at
    /// once, as one does that has failed.
    pub fn leave(&self) {
        if let Parts::Cuda(gpu) = &self.backend {
            gpu.leave();
        }
    }

    /// The CPU with so many threads (0: one for each core).
    pub fn cpu(threads: usize) -> Self {
        Cpu::new(threads).into()
    }

    /// The first GPU, where one works, in bf16; else the CPU with a thread for each core.
    pub fn auto() -> Self {
        let gpu = Cuda::available().then(|| Device::cuda(0, Precision::Bf16).ok());
        gpu.flatten().unwrap_or_else(|| Device::cpu(0))
    }

    /// The GPU of this number.
    pub fn cuda(ordinal: usize, precision: Precision) -> Result<Self> {
        Ok(Cuda::new(ordinal, precision)?.into())
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        either!(&self.backend, device => device.describe())
    }

    /// Whether its memory is the host's.
    pub fn is_host(&self) -> bool {
        matches!(self.backend, Parts::Cpu(_))
    }

    /// Runs work where the device is reached with the least ado: on the CPU, inside its pool of
    /// threads. A training loop belongs in here; single calls find their way by themselves.
    pub fn within<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.backend {
            Parts::Cpu(cpu) => cpu.install(work),
            Parts::Cuda(_) => work(),
        }
    }

    /// Copies values to the device.
    pub fn upload(&self, values: &[f32]) -> Result<Buffer> {
        either!(&self.backend, device => device.upload(values))
    }

    /// Moves values to the device: the same, and where the device's memory is the host's nothing is
    /// copied.
    pub fn hand_over(&self, values: Vec<f32>) -> Result<Buffer> {
        match &self.backend {
            Parts::Cpu(cpu) => cpu.hand_over(values),
            Parts::Cuda(gpu) => gpu.upload(&values),
        }
    }

    /// Moves this process's [part](Communicator::part) of the rows of a matrix to the device; of a
    /// process alone, all of them.
    pub fn hand_over_part(&self, own: Vec<f32>, rows: usize) -> Result<Buffer> {
        let buffer = self.hand_over(own)?;
        Ok(match self.communicator.is_single() {
            true => buffer,
            false => buffer.sharded(Shard { first: self.communicator.part(rows).start, rows }),
        })
    }

    /// Zeros on the device.
    pub fn zeros(&self, len: usize) -> Result<Buffer> {
        self.hand_over(vec![0.0; len])
    }

    /// Copies whole numbers to the device: items, classes.
    pub fn upload_indices(&self, values: &[u32]) -> Result<Buffer<u32>> {
        let limit = values.iter().max().map_or(0, |most| *most as usize + 1);
        let buffer = either!(&self.backend, device => device.upload_indices(values))?;
        // SAFETY: the limit is above the greatest of the values that were sent.
        Ok(unsafe { buffer.assume_below(limit) })
    }

    /// Overwrites a buffer.
    pub fn write(&self, values: &[f32], to: &mut Buffer) -> Result<()> {
        Error::check_length("values written", to.len(), values.len())?;
        either!(&self.backend, device => device.write(values, to))
    }

    /// Copies a buffer back.
    pub fn download(&self, buffer: &Buffer) -> Result<Vec<f32>> {
        either!(&self.backend, device => device.download(buffer))
    }

    /// Copies whole numbers back.
    pub fn download_indices(&self, buffer: &Buffer<u32>) -> Result<Vec<u32>> {
        either!(&self.backend, device => device.download_indices(buffer))
    }

    /// Tells the device which of so many keys are the same thing as which.
    pub fn positives(&self, positives: &Positives, keys: usize) -> Result<DevicePositives> {
        positives.check(positives.len(), keys)?;
        either!(&self.backend, device => device.positives(positives, keys))
    }

    /// The same where each process has the positives of its own [part](Communicator::part) of so
    /// many items; all are asked together.
    pub fn positives_part(
        &self,
        own: &Positives,
        items: usize,
        keys: usize,
    ) -> Result<DevicePositives> {
        let part = self.communicator.part(items);
        Error::check_length("positives of this process's items", part.len(), own.len())?;
        let here = self.positives(own, keys)?;
        let mut most = [own.most() as f64];
        self.communicator.max_f64(&mut most)?;
        let shard = Shard { first: part.start, rows: items };
        Ok(here.sharded(shard, most[0] as usize))
    }

    /// Plans a graph and allocates all it will need.
    pub fn network(&self, graph: &Graph, options: &NetworkOptions) -> Result<Network> {
        Error::refuse(options.passes == 0, || "a network needs at least one pass".into())?;
        let graph = Arc::new(graph.clone());
        let backend = match &self.backend {
            Parts::Cpu(cpu) => Parts::Cpu(Box::new(cpu.network(&graph, options)?)),
            Parts::Cuda(gpu) => Parts::Cuda(Box::new(gpu.network(&graph, options)?)),
        };
        Ok(Network::new(backend, graph, options))
    }

    /// A stream for a training, by all processes together where there are several.
    pub fn stream(&self) -> Result<Stream> {
        let backend = match &self.backend {
            Parts::Cpu(cpu) => Parts::Cpu(cpu.make_stream()),
            Parts::Cuda(gpu) => Parts::Cuda(gpu.make_stream()?),
        };
        Stream::among(backend, &self.communicator)
    }

    /// Batches of a data loader.
    pub fn batches(&self, loader: Box<dyn LoadBatches>) -> Result<DeviceLoader> {
        DeviceLoader::new(self, loader)
    }

    /// Batches of rows of a matrix that is on the device: a row is an item, and its only view.
    pub fn row_batches(&self, rows: Arc<Buffer>, dim: usize, batch: usize) -> Result<DeviceLoader> {
        let count = rows.len() / dim.max(1);
        Error::check_length("values of all rows", count * dim, rows.len())?;
        DeviceLoader::rows(self, rows, dim, batch)
    }

    /// Compares every query with every key: the entropy of its softmax over all keys, its top-k
    /// keys, or both. `progress` is told how many queries are done. Keys that are
    /// [sharded](crate::Shard) are those of all processes: each process asks with queries of its
    /// own, or, where the keys are the queries, with its part of them.
    pub fn scan(
        &self,
        queries: &Buffer,
        keys: &Buffer,
        scan: &Scan,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ScanResult> {
        match keys.shard() {
            None => {
                scan.check(queries.len(), keys.len())?;
                self.scan_whole([queries, keys], scan, progress)
            }
            Some(shard) => scan_shards(self, [queries, keys], shard, scan, progress),
        }
    }

    /// The same over the keys that are here.
    pub(crate) fn scan_whole(
        &self,
        [queries, keys]: [&Buffer; 2],
        scan: &Scan,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ScanResult> {
        either!(&self.backend, device => device.scan(queries, keys, scan, progress))
    }
}

impl From<Cpu> for Device {
    fn from(cpu: Cpu) -> Self {
        Device::of(Parts::Cpu(cpu))
    }
}

impl From<Cuda> for Device {
    fn from(gpu: Cuda) -> Self {
        Device::of(Parts::Cuda(gpu))
    }
}
