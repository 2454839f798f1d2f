//! A device that fails in the midst of a run, as a GPU does: the run ends with a sentence and is taken up from its last
//! checkpoint.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anchorhood_engine::{
    BatchMaker, Cpu, CpuNetwork, Device, Error, Graph, NetworkOptions, NoSteps, Positives, Result,
    Scan, ScanResult,
};
use anchorhood_train::{Outcome, RunDir, TrainError, train};

use common::{data, tiny};

/// A CPU that refuses everything after so many losses.
#[derive(Clone)]
struct Failing {
    cpu: Cpu,
    left: Arc<AtomicUsize>,
}

impl Device for Failing {
    type Buffer = Vec<f32>;
    type Network = CpuNetwork;
    type Steps = NoSteps<CpuNetwork>;
    const LEADS_STEPS: bool = false;

    fn describe(&self) -> String {
        "a failing device".into()
    }

    fn upload(&self, values: &[f32]) -> Result<Vec<f32>> {
        self.cpu.upload(values)
    }

    fn download(&self, buffer: &Vec<f32>) -> Result<Vec<f32>> {
        self.cpu.download(buffer)
    }

    fn network(&self, graph: &Graph, options: &NetworkOptions) -> Result<CpuNetwork> {
        self.cpu.network(graph, options)
    }

    fn steps(&self, _: &CpuNetwork, _: &BatchMaker) -> Result<Option<Self::Steps>> {
        Ok(None)
    }

    fn softmax_loss(
        &self,
        queries: &Vec<f32>,
        keys: &Vec<f32>,
        dim: usize,
        temperature: f32,
        positives: &Positives,
        losses: &mut [f32],
        gradient: &mut Vec<f32>,
    ) -> Result<()> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Err(Error::Device("an illegal memory access".into()));
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        let cpu = &self.cpu;
        cpu.softmax_loss(queries, keys, dim, temperature, positives, losses, gradient)
    }

    fn blend_rows(
        &self,
        keys: &mut Vec<f32>,
        dim: usize,
        indices: &[u32],
        queries: &Vec<f32>,
        rate: f32,
    ) -> Result<()> {
        self.cpu.blend_rows(keys, dim, indices, queries, rate)
    }

    fn scan(
        &self,
        queries: &Vec<f32>,
        keys: &Vec<f32>,
        scan: &Scan,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ScanResult> {
        self.cpu.scan(queries, keys, scan, progress)
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
    let device = Failing {
        cpu: Cpu::new(1),
        left: Arc::new(AtomicUsize::new(6)), // one epoch is four steps
    };
    let stop = AtomicBool::new(false);
    let error = train(&device, &mut dir, &data, &mut |_| {}, &stop).unwrap_err();
    assert!(matches!(error, TrainError::DeviceFailed { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "an illegal memory access; the run is saved as of round 0, epoch 2: go on with --resume once the device works"
    );
    drop(dir);

    let mut dir = RunDir::open(&folder.path().join("run")).unwrap();
    let outcome = train(&Cpu::new(1), &mut dir, &data, &mut |_| {}, &stop).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
}
