//! Batch norm over the rows of all processes: what each found about its own rows is put together in
//! between.

use cudarc::driver::CudaSlice;

use super::State;
use crate::cuda::launch::{Gradients, GroupSums, NormTensors, Reduction, Sums};
use crate::cuda::nccl::Kind;
use crate::cuda::stream::Carrier;
use crate::cuda::{Cuda, Pointer};
use crate::{Graph, Result};

/// Room for what processes tell each other about a norm: two rows of channels, those of all, and
/// what is made of them.
pub(super) struct SyncMemory {
    own: CudaSlice<f64>,
    all: CudaSlice<f64>,
    merged: CudaSlice<f64>,
}

impl SyncMemory {
    pub(super) fn new(cuda: &Cuda, graph: &Graph, ranks: usize) -> Result<Self> {
        let norms = graph.nodes().iter().filter(|n| n.op.norm().is_some());
        let most = norms.map(|n| n.shape.channels).max().unwrap_or(0);
        let rows = |rows: usize| cuda.zeros(rows * most, "statistics of all processes");
        Ok(SyncMemory { own: rows(2)?, all: rows(2 * ranks)?, merged: rows(2)? })
    }
}

/// A norm whose rows are those of all processes.
pub(super) struct SyncNorm<'a> {
    cuda: &'a Cuda,
    memory: &'a SyncMemory,
    carrier: &'a Carrier,
}

impl State {
    /// Nothing where each process normalises by its own rows.
    pub(super) fn sync_norm(&self) -> Option<SyncNorm<'_>> {
        Some(SyncNorm {
            cuda: &self.cuda,
            memory: self.sync_memory.as_ref()?,
            carrier: self.carrier.as_ref()?,
        })
    }
}

impl SyncNorm<'_> {
    fn pointer(&self, of: &CudaSlice<f64>) -> Pointer {
        self.cuda.pointer(of)
    }

    /// The statistics of all rows, from the sums over this process's.
    pub(super) fn statistics(
        &self,
        state: &State,
        r: &Reduction,
        x: Pointer,
        sums: &Sums,
    ) -> Result<GroupSums> {
        let (m, k, nccl) = (self.memory, state.kernels(), &self.carrier.nccl);
        let [own, all, merged] = [&m.own, &m.all, &m.merged].map(|s| self.pointer(s));
        k.own_statistics(r, x, sums, own)?;
        nccl.all_gather(&state.stream.inner, [own, all], 2 * r.channels(), Kind::F64)?;
        k.merge_statistics(r, x, all, nccl.ranks(), merged)?;
        Ok(GroupSums::of_all(merged, nccl.ranks()))
    }

    /// The sums over all rows that gradients of values are made of; those of γ and β stay this
    /// process's own, to be added up with all others.
    pub(super) fn gradients(
        &self,
        state: &State,
        r: &Reduction,
        t: &NormTensors,
        sums: &Sums,
        g: &Gradients,
    ) -> Result<GroupSums> {
        let (k, nccl) = (state.kernels(), &self.carrier.nccl);
        let own = self.pointer(&self.memory.own);
        k.own_gradients(r, t, sums, g, own)?;
        nccl.all_reduce(&state.stream.inner, own, 2 * r.channels(), Kind::F64)?;
        Ok(GroupSums::of_all(own, nccl.ranks()))
    }
}
