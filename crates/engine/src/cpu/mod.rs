//! The CPU: threads by rayon, vector instructions chosen at run time.

mod arena;
mod batch_norm;
mod conv;
pub(crate) mod elementwise;
mod exp;
mod gathered;
mod gemm;
mod losses;
mod network;
mod optimisers;
mod parameters;
mod quarters;
mod simd;
mod similarity;
mod stream;
mod sums;
mod tiles;
mod uniform;
mod winograd;

use std::sync::Arc;

use pulp::Arch;

pub(crate) use network::{CpuNetwork, State as CpuState};
pub use simd::SimdLevel;
pub(crate) use simd::vectorised;
pub(crate) use stream::{CpuStream, indices, values, values_mut};

use crate::{Buffer, DevicePositives, Graph, NetworkOptions, Positives, Result, Scan, ScanResult};

/// The CPU with a pool of threads.
#[derive(Clone)]
pub struct Cpu {
    pool: Arc<rayon::ThreadPool>,
    level: SimdLevel,
    arch: Arch,
}

impl Cpu {
    /// So many threads (0: one for each core) and the vector instructions that
    /// [`SimdLevel::wanted`] gives, or else the best there are.
    pub fn new(threads: usize) -> Self {
        let level = SimdLevel::wanted().unwrap_or_else(|_| SimdLevel::detect());
        Cpu::with_level(threads, level).expect("the detected level is there")
    }

    /// The same at a chosen level; nothing if the machine does not have it.
    pub fn with_level(threads: usize, level: SimdLevel) -> Option<Self> {
        let arch = level.arch()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("anchorhood-{i}"))
            .build()
            .expect("the system gives threads");
        Some(Cpu { pool: Arc::new(pool), level, arch })
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

    /// Runs work inside the pool.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    pub(crate) fn describe(&self) -> String {
        format!("CPU, {} threads, {}", self.threads(), self.level)
    }

    pub(crate) fn upload(&self, values: &[f32]) -> Result<Buffer> {
        self.hand_over(values.to_vec())
    }

    pub(crate) fn hand_over(&self, values: Vec<f32>) -> Result<Buffer> {
        Ok(Buffer::new(values.len(), values))
    }

    pub(crate) fn upload_indices(&self, values: &[u32]) -> Result<Buffer<u32>> {
        Ok(Buffer::new(values.len(), values.to_vec()))
    }

    pub(crate) fn write(&self, from: &[f32], to: &mut Buffer) -> Result<()> {
        values_mut(to)?.copy_from_slice(from);
        Ok(())
    }

    pub(crate) fn download(&self, buffer: &Buffer) -> Result<Vec<f32>> {
        Ok(values(buffer)?.to_vec())
    }

    pub(crate) fn download_indices(&self, buffer: &Buffer<u32>) -> Result<Vec<u32>> {
        Ok(indices(buffer)?.to_vec())
    }

    pub(crate) fn positives(&self, positives: &Positives, keys: usize) -> Result<DevicePositives> {
        let copy = positives.clone();
        Ok(DevicePositives::new(positives.len(), positives.most(), keys, copy))
    }

    pub(crate) fn network(
        &self,
        graph: &Arc<Graph>,
        options: &NetworkOptions,
    ) -> Result<CpuNetwork> {
        CpuNetwork::new(self, graph, options)
    }

    pub(crate) fn make_stream(&self) -> CpuStream {
        CpuStream::new(self)
    }

    pub(crate) fn scan(
        &self,
        queries: &Buffer,
        keys: &Buffer,
        scan: &Scan,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ScanResult> {
        let (queries, keys) = (values(queries)?, values(keys)?);
        self.install(|| similarity::scan(self.arch, queries, keys, scan, progress))
    }
}
