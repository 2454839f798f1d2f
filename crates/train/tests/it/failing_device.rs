//! A device that fails in the midst of a run, as a GPU does: the run ends with a sentence and is
//! taken up from its last checkpoint.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anchorhood_engine::{
    Backend, BatchBackend, BatchMaker, Buffer, Cpu, Device, DevicePositives, Epoch, Error, Graph,
    NetworkBackend, NetworkOptions, Positives, Result, Scan, ScanResult, StreamBackend,
};
use anchorhood_train::{Outcome, RunDir, TrainError, train};

use crate::common::{data, tiny};

/// A CPU that refuses to go on after so many steps.
struct Failing {
    cpu: Cpu,
    left: Arc<AtomicUsize>,
}

impl Backend for Failing {
    fn describe(&self) -> String {
        "a failing device".into()
    }

    fn upload(&self, values: &[f32]) -> Result<Buffer> {
        self.cpu.upload(values)
    }

    fn upload_indices(&self, values: &[u32]) -> Result<Buffer<u32>> {
        self.cpu.upload_indices(values)
    }

    fn write(&self, values: &[f32], to: &mut Buffer) -> Result<()> {
        self.cpu.write(values, to)
    }

    fn download(&self, buffer: &Buffer) -> Result<Vec<f32>> {
        self.cpu.download(buffer)
    }

    fn download_indices(&self, buffer: &Buffer<u32>) -> Result<Vec<u32>> {
        self.cpu.download_indices(buffer)
    }

    fn positives(&self, positives: &Positives, keys: usize) -> Result<DevicePositives> {
        self.cpu.positives(positives, keys)
    }

    fn network(&self, graph: &Graph, options: &NetworkOptions) -> Result<Box<dyn NetworkBackend>> {
        self.cpu.network(graph, options)
    }

    fn stream(&self) -> Result<Box<dyn StreamBackend>> {
        self.cpu.stream()
    }

    fn batches(&self, maker: Arc<dyn BatchMaker>) -> Result<Box<dyn BatchBackend>> {
        Ok(Box::new(FailingBatches { batches: self.cpu.batches(maker)?, left: self.left.clone() }))
    }

    fn row_batches(
        &self,
        rows: Arc<Buffer>,
        dim: usize,
        batch: usize,
    ) -> Result<Box<dyn BatchBackend>> {
        self.cpu.row_batches(rows, dim, batch)
    }

    fn scan(
        &self,
        queries: &Buffer,
        keys: &Buffer,
        scan: &Scan,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ScanResult> {
        self.cpu.scan(queries, keys, scan, progress)
    }
}

struct FailingBatches {
    batches: Box<dyn BatchBackend>,
    left: Arc<AtomicUsize>,
}

impl BatchBackend for FailingBatches {
    fn as_any(&self) -> &dyn Any {
        self.batches.as_any()
    }

    fn batch(&self) -> usize {
        self.batches.batch()
    }

    fn views(&self) -> usize {
        self.batches.views()
    }

    fn indices(&self) -> &Buffer<u32> {
        self.batches.indices()
    }

    fn on_device(&self) -> bool {
        self.batches.on_device()
    }

    fn begin_epoch(&mut self, stream: &mut dyn StreamBackend, epoch: &Epoch) -> Result<()> {
        self.batches.begin_epoch(stream, epoch)
    }

    fn bring(&mut self, stream: &mut dyn StreamBackend) -> Result<()> {
        self.batches.bring(stream)
    }

    fn begin_step(&mut self, stream: &mut dyn StreamBackend) -> Result<()> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Err(Error::Device("an illegal memory access".into()));
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        self.batches.begin_step(stream)
    }

    fn taken(&mut self, stream: &mut dyn StreamBackend) -> Result<()> {
        self.batches.taken(stream)
    }
}

#[test]
fn a_run_is_taken_up_from_its_last_checkpoint() {
    let mut config = tiny();
    config.data.shapes_train = 32;
    config.training.epochs = 2;
    let data = data(&config);
    let folder = tempfile::tempdir().unwrap();
    let mut dir = RunDir::create(folder.path(), "run", &config).unwrap();
    let device = Device::new(Failing {
        cpu: Cpu::new(1),
        left: Arc::new(AtomicUsize::new(6)), // one epoch is four steps
    });
    let stop = AtomicBool::new(false);
    let error = train(&device, &mut dir, &data, &mut |_| {}, &stop).unwrap_err();
    assert!(matches!(error, TrainError::DeviceFailed { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "an illegal memory access; the run is saved as of round 0, epoch 2"
    );
    drop(dir);

    let mut dir = RunDir::open(&folder.path().join("run")).unwrap();
    let outcome = train(&Device::cpu(1), &mut dir, &data, &mut |_| {}, &stop).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
}
