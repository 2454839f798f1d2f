//! The softmax over keys that lie in parts on several processes, and rows gathered from all of them (kernels/similarity.cu has the maths).
//!
//! Queries of all processes are gathered; each process looks at its own keys for all of them; what they found is gathered and put together in
//! rank order; and each process's share of the gradient is summed where the queries came from.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, PushKernelArg};

use super::loss::{MERGE_THREADS, PositivePointers, SoftmaxKernels};
use super::shape;
use crate::Result;
use crate::cuda::launch::Pointer;
use crate::cuda::nccl::{Kind, Nccl};
use crate::cuda::{Cuda, failed};

/// Rows of all processes, one process's after the other's, and the item of each; every process has as many.
pub(in crate::cuda) struct GatheredRows {
    count: usize,
    items: usize,
    dim: usize,
    rows: CudaSlice<f32>,
    indices: CudaSlice<u32>,
}

impl GatheredRows {
    /// Room for `count` rows and so many items of each of `ranks` processes.
    pub(in crate::cuda) fn new(
        cuda: &Cuda,
        ranks: usize,
        [count, items, dim]: [usize; 3],
    ) -> Result<Self> {
        let what = "rows of all processes";
        Ok(GatheredRows {
            count,
            items,
            dim,
            rows: cuda.zeros(ranks * count * dim, what)?,
            indices: cuda.zeros(ranks * items, what)?,
        })
    }

    pub(in crate::cuda) fn fits(&self, shape: [usize; 3]) -> bool {
        [self.count, self.items, self.dim] == shape
    }

    /// Where rows and items lie.
    pub(in crate::cuda) fn places(&self, cuda: &Cuda) -> [Pointer; 2] {
        [cuda.pointer(&self.rows), cuda.pointer(&self.indices)]
    }

    /// Asks for everybody's rows and items.
    pub(in crate::cuda) fn enqueue(
        &self,
        cuda: &Cuda,
        stream: &Arc<CudaStream>,
        nccl: &Nccl,
        [rows, items]: [Pointer; 2],
    ) -> Result<()> {
        let [to_rows, to_items] = self.places(cuda);
        nccl.grouped(|| {
            nccl.all_gather(stream, [rows, to_rows], self.count * self.dim, Kind::F32)?;
            nccl.all_gather(stream, [items, to_items], self.items, Kind::U32)
        })
    }
}

/// The loss of batches of one size over keys in parts, with its memory.
pub(in crate::cuda) struct ShardSoftmax {
    cuda: Cuda,
    /// Keys here, and the number of the first.
    n: usize,
    first: usize,
    gathered: GatheredRows,
    softmax: SoftmaxKernels,
    look: CudaFunction,
    share: CudaFunction,
    /// This part's A and P of each query, and all parts'.
    sums: CudaSlice<f64>,
    all_sums: CudaSlice<f64>,
    /// The means of keys and of positives; the first become this part's share of the gradient.
    means: CudaSlice<f32>,
    positives: CudaSlice<f32>,
}

impl ShardSoftmax {
    /// Allocates what losses of `count` queries of each process need, of so many items and `dim` values, over `n` keys from number `first` on.
    pub(in crate::cuda) fn new(
        cuda: &Cuda,
        ranks: usize,
        [count, items, dim]: [usize; 3],
        [n, first]: [usize; 2],
    ) -> Result<Self> {
        let queries = ranks * count;
        let (sums, means) = ("sums of the loss", "gradients of all processes");
        Ok(ShardSoftmax {
            cuda: cuda.clone(),
            n,
            first,
            gathered: GatheredRows::new(cuda, ranks, [count, items, dim])?,
            softmax: SoftmaxKernels::new(cuda, queries, n, dim)?,
            look: cuda.function("similarity", "shard_look")?,
            share: cuda.function("similarity", "shard_share")?,
            sums: cuda.zeros(2 * queries, sums)?,
            all_sums: cuda.zeros(ranks * 2 * queries, sums)?,
            means: cuda.zeros(queries * dim, means)?,
            positives: cuda.zeros(queries * dim, means)?,
        })
    }

    pub(in crate::cuda) fn fits(&self, queries: [usize; 3], keys: [usize; 2]) -> bool {
        self.gathered.fits(queries) && [self.n, self.first] == keys
    }

    /// Asks for the losses of this process's queries and the gradient of weight · mean(losses), both written (`=`), and waits for nothing.
    /// Positives are numbers among all keys.
    pub(in crate::cuda) fn enqueue(
        &self,
        stream: &Arc<CudaStream>,
        nccl: &Nccl,
        [queries, keys]: [Pointer; 2],
        [temperature, weight]: [f32; 2],
        positives: PositivePointers,
        [losses, gradient]: [Pointer; 2],
    ) -> Result<()> {
        let cuda = &self.cuda;
        self.gathered
            .enqueue(cuda, stream, nccl, [queries, positives.items])?;
        let [queries, items] = self.gathered.places(cuda);
        self.softmax
            .enqueue_tiles(stream, [queries, keys], temperature)?;
        let positives = PositivePointers { items, ..positives };
        let all = nccl.ranks() * self.gathered.count;
        self.enqueue_look(stream, [queries, keys], temperature, positives, all)?;
        let sums = [&self.sums, &self.all_sums].map(|s| cuda.pointer(s));
        nccl.all_gather(stream, sums, 2 * all, Kind::F64)?;
        let ranks = [nccl.rank(), nccl.ranks()];
        self.enqueue_share(stream, ranks, [temperature, weight], positives.each, losses)?;
        let (count, dim) = (self.gathered.count, self.gathered.dim);
        let means = cuda.pointer(&self.means);
        nccl.reduce_scatter(stream, [means, gradient], count * dim, Kind::F32)
    }

    /// What this part says of `all` queries.
    fn enqueue_look(
        &self,
        stream: &Arc<CudaStream>,
        [queries, keys]: [Pointer; 2],
        temperature: f32,
        positives: PositivePointers,
        all: usize,
    ) -> Result<()> {
        let cuda = &self.cuda;
        let (ranges, rounded, places) = self.softmax.ranges();
        let (dim, per_rank) = (self.gathered.dim as i32, self.gathered.count as i32);
        let [batch, n, ranges] = [all, self.n, ranges].map(|v| v as i32);
        let (inverse, rounded) = (1.0 / temperature, i32::from(rounded));
        let (count, each) = (positives.count as u32, i32::from(positives.each));
        let first = self.first as u32;
        let sums = cuda.pointer(&self.sums);
        let [means, of_positives] = [&self.means, &self.positives].map(|s| cuda.pointer(s));
        let mut launch = stream.launch_builder(&self.look);
        launch.arg(&queries).arg(&keys);
        launch.arg(&batch).arg(&n).arg(&dim);
        launch.arg(&inverse).arg(&ranges);
        places.iter().for_each(|pointer| {
            launch.arg(pointer);
        });
        launch.arg(&positives.starts).arg(&positives.members);
        launch.arg(&positives.items).arg(&count).arg(&each);
        launch.arg(&rounded).arg(&first).arg(&per_rank);
        launch.arg(&sums).arg(&means).arg(&of_positives);
        // SAFETY: the arguments are those of the kernel, and the memory is as large as its sizes ask; positives that are not here are not read.
        let launched = unsafe { launch.launch(shape([all as u32, 1, 1], MERGE_THREADS, 0)) };
        launched
            .map(drop)
            .map_err(|e| failed("the loss over keys of several processes", e))
    }

    /// From what all parts say to losses, and to this part's share of the gradient.
    fn enqueue_share(
        &self,
        stream: &Arc<CudaStream>,
        [rank, ranks]: [usize; 2],
        [temperature, weight]: [f32; 2],
        each: bool,
        losses: Pointer,
    ) -> Result<()> {
        let (count, dim) = (self.gathered.count, self.gathered.dim as i32);
        let all = ranks * count;
        let sums = self.cuda.pointer(&self.all_sums);
        let [means, positives] = [&self.means, &self.positives].map(|s| self.cuda.pointer(s));
        let [ranks, rank, batch, per_rank] = [ranks, rank, all, count].map(|v| v as i32);
        let (inverse, each) = (1.0 / temperature, i32::from(each));
        let mut launch = stream.launch_builder(&self.share);
        launch.arg(&sums).arg(&ranks).arg(&rank);
        launch.arg(&batch).arg(&per_rank).arg(&dim);
        launch.arg(&inverse).arg(&each).arg(&weight);
        launch.arg(&positives).arg(&means).arg(&losses);
        // SAFETY: as above.
        let launched = unsafe { launch.launch(shape([all as u32, 1, 1], 128, 0)) };
        launched
            .map(drop)
            .map_err(|e| failed("the loss over keys of several processes", e))
    }
}
