//! The CPU: threads by rayon, vector instructions chosen at run time.

mod arena;
mod batch_norm;
mod conv;
mod elementwise;
mod exp;
mod gemm;
mod network;
mod normalise;
mod parameters;
mod pool;
mod simd;
mod similarity;
mod winograd;

use std::sync::{Arc, Mutex};

use pulp::Arch;

pub use network::CpuNetwork;
pub use simd::SimdLevel;

use crate::{Device, Graph, NetworkOptions, Positives, Result, Scan, ScanResult};

/// The CPU with a pool of threads.
#[derive(Clone)]
pub struct Cpu {
    pool: Arc<rayon::ThreadPool>,
    level: SimdLevel,
    arch: Arch,
    loss_scratch: Arc<Mutex<similarity::Scratch>>,
}

impl Cpu {
    /// So many threads (0: one for each core) and the best vector instructions there are.
    pub fn new(threads: usize) -> Self {
        Cpu::with_level(threads, SimdLevel::detect()).expect("the detected level is there")
    }

    /// The same at a chosen level; nothing if the machine does not have it.
    pub fn with_level(threads: usize, level: SimdLevel) -> Option<Self> {
        let arch = level.arch()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("anchorhood-{i}"))
            .build()
            .expect("the system gives threads");
        Some(Cpu {
            pool: Arc::new(pool),
            level,
            arch,
            loss_scratch: Arc::default(),
        })
    }

    /// Threads in the pool.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The vector instructions in use.
    pub fn level(&self) -> SimdLevel {
        self.level
    }

    fn arch(&self) -> Arch {
        self.arch
    }
}

impl Device for Cpu {
    type Buffer = Vec<f32>;
    type Network = CpuNetwork;
    type Steps = crate::NoSteps<CpuNetwork>;
    const LEADS_STEPS: bool = false;

    fn describe(&self) -> String {
        format!("CPU, {} threads, {}", self.threads(), self.level)
    }

    fn within<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    fn steps(&self, _: &CpuNetwork, _: &crate::BatchMaker) -> Result<Option<Self::Steps>> {
        Ok(None)
    }

    fn upload(&self, values: &[f32]) -> Result<Vec<f32>> {
        Ok(values.to_vec())
    }

    fn hand_over(&self, values: Vec<f32>) -> Result<Vec<f32>> {
        Ok(values)
    }

    fn download(&self, buffer: &Vec<f32>) -> Result<Vec<f32>> {
        Ok(buffer.clone())
    }

    fn network(&self, graph: &Graph, options: &NetworkOptions) -> Result<CpuNetwork> {
        CpuNetwork::new(self, graph, options)
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
        // Taken out and put back, not held: who waits for the pool must not have what a thread of the pool waits for.
        let kept = || self.loss_scratch.lock().unwrap_or_else(|e| e.into_inner());
        let mut scratch = std::mem::take(&mut *kept());
        let done = self.within(|| {
            similarity::softmax_loss(
                self.arch,
                &mut scratch,
                queries,
                keys,
                dim,
                temperature,
                positives,
                losses,
                gradient,
            )
        });
        *kept() = scratch;
        done
    }

    fn blend_rows(
        &self,
        keys: &mut Vec<f32>,
        dim: usize,
        indices: &[u32],
        queries: &Vec<f32>,
        rate: f32,
    ) -> Result<()> {
        similarity::blend_rows(keys, dim, indices, queries, rate)
    }

    fn scan(
        &self,
        queries: &Vec<f32>,
        keys: &Vec<f32>,
        scan: &Scan,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ScanResult> {
        self.within(|| similarity::scan(self.arch, queries, keys, scan, progress))
    }
}
