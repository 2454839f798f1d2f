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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Positives;
    use crate::cuda::testing::{OnDevice, open, unwritten};
    use crate::naive::similarity::softmax_loss;
    use crate::testing::{assert_close, uniform};

    /// What three processes would do, one after the other on one GPU, with nothing in between but what they would tell each other.
    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn parts_put_together_are_the_whole() {
        let (cuda, ranks, count, dim, keys) = (open(), 3, 8, 8, 1001);
        let [temperature, weight] = [0.3, 0.7];
        let (queries, bank) = (uniform(1, ranks * count * dim), uniform(2, keys * dim));
        // Two views of as many items.
        let items: Vec<u32> = (0..ranks as u32 * 4).map(|i| 77 * i + 5).collect();
        let members = |i: u32| [i, (i + 5) % 1001, (3 * i) % 1001];
        for each in [false, true] {
            let mut of_queries = Positives::default();
            let row = |q: usize| items[q / count * 4 + q % count % 4];
            (0..ranks * count).for_each(|q| of_queries.push(members(row(q))));
            let of_queries = match each {
                true => of_queries.counting_each(),
                false => of_queries,
            };
            let [mut losses, mut gradient] =
                [ranks * count, queries.len()].map(|len| vec![0.0; len]);
            let (l, g) = (&mut losses, &mut gradient);
            softmax_loss(&queries, &bank, dim, temperature, &of_queries, l, g);

            let starts: Vec<u32> = (0..=keys as u32).map(|i| 3 * i).collect();
            let all: Vec<u32> = (0..keys as u32).flat_map(members).collect();
            let [starts, all] = [starts, all].map(|v| OnDevice::new(&cuda, &v));
            let parts = [0..334, 334..668, 668..1001];
            let mut shards: Vec<_> = parts
                .iter()
                .map(|part| {
                    let shape = [part.len(), part.start];
                    ShardSoftmax::new(&cuda, ranks, [count, 4, dim], shape).unwrap()
                })
                .collect();
            let stream = cuda.stream();
            let mut sums = vec![];
            for (shard, part) in shards.iter_mut().zip(&parts) {
                cuda.send(&queries, &mut shard.gathered.rows).unwrap();
                cuda.send(&items, &mut shard.gathered.indices).unwrap();
                let own = OnDevice::new(&cuda, &bank[part.start * dim..part.end * dim]);
                let [rows, indices] = shard.gathered.places(&cuda);
                let positives = PositivePointers {
                    starts: starts.at,
                    members: all.at,
                    items: indices,
                    count: 4,
                    each,
                };
                let places = [rows, own.at];
                let softmax = &shard.softmax;
                softmax.enqueue_tiles(stream, places, temperature).unwrap();
                let queries = ranks * count;
                let looked = shard.enqueue_look(stream, places, temperature, positives, queries);
                looked.unwrap();
                sums.extend(stream.clone_dtoh(&shard.sums).unwrap());
            }
            let (mut told, mut share) = (vec![], vec![0.0; gradient.len()]);
            for (rank, shard) in shards.iter_mut().enumerate() {
                cuda.send(&sums, &mut shard.all_sums).unwrap();
                let own = unwritten(&cuda, count);
                let numbers = [temperature, weight / ranks as f32];
                let shared = shard.enqueue_share(stream, [rank, ranks], numbers, each, own.at);
                shared.unwrap();
                told.extend(own.read(&cuda));
                let part = stream.clone_dtoh(&shard.means).unwrap();
                share.iter_mut().zip(part).for_each(|(s, p)| *s += p);
            }
            let wide = |v: &[f32], by: f64| v.iter().map(|v| by * f64::from(*v)).collect();
            let (losses, gradient): (Vec<f64>, Vec<f64>) =
                (wide(&losses, 1.0), wide(&gradient, f64::from(weight)));
            assert_close("losses", &told, &losses, 1e-5);
            assert_close("gradient", &share, &gradient, 1e-5);
        }
    }
}
