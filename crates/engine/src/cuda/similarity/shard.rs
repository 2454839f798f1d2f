//! The softmax over keys that lie in parts on several processes, and rows gathered from all of them
//! (kernels/similarity.cu has the maths).
//!
//! Queries of all processes are gathered, and each tells the positives of the items it has; each
//! process looks at its own keys for all of them; what they found is gathered and put together in
//! rank order; and each process's share of the gradient is summed where the queries came from. Over
//! a sample of the keys a process alone goes this way, too, and asks nobody.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream};

use super::loss::{MERGE_THREADS, PositivePointers, SoftmaxKernels};
use super::sampled::SampledRows;
use crate::cuda::Cuda;
use crate::cuda::launch::{Pointer, blocks, launch, ones};
use crate::cuda::nccl::{Kind, Nccl};
use crate::{Result, RowSample};

/// Rows of all processes, one process's after the other's, and the items they are of; every process
/// has as many.
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

/// What a loss over keys in parts is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) struct ShardShape {
    /// Processes, and queries and items of each.
    pub(in crate::cuda) ranks: usize,
    pub(in crate::cuda) count: usize,
    pub(in crate::cuda) items: usize,
    pub(in crate::cuda) dim: usize,
    /// Keys here, the number of the first, and how many there are of all.
    pub(in crate::cuda) n: usize,
    pub(in crate::cuda) first: usize,
    pub(in crate::cuda) keys: usize,
    /// The first item whose positives are here, how many have theirs here, and how many positives
    /// one has at most.
    pub(in crate::cuda) known: [usize; 3],
    /// How many rows stand for all, and which; all keys are looked at where nothing is said.
    pub(in crate::cuda) sample: Option<RowSample>,
}

impl ShardShape {
    fn queries(&self) -> usize {
        self.ranks * self.count
    }

    /// Numbers by which an item's positives are told: how many, and which.
    fn width(&self) -> usize {
        self.known[2] + 1
    }
}

/// The loss of batches of one size over keys in parts, or over a sample of them, with its memory.
pub(in crate::cuda) struct ShardSoftmax {
    cuda: Cuda,
    shape: ShardShape,
    gathered: GatheredRows,
    sampled: Option<SampledRows>,
    softmax: SoftmaxKernels,
    tell: CudaFunction,
    look: CudaFunction,
    share: CudaFunction,
    /// The positives of all processes' items.
    table: CudaSlice<u32>,
    /// This part's A and P of each query, and all parts'.
    sums: CudaSlice<f64>,
    all_sums: CudaSlice<f64>,
    /// The means of keys and of positives; the first become this part's share of the gradient.
    means: CudaSlice<f32>,
    positives: CudaSlice<f32>,
}

impl ShardSoftmax {
    /// Allocates what losses of this shape need.
    pub(in crate::cuda) fn new(cuda: &Cuda, shape: ShardShape) -> Result<Self> {
        let (queries, dim) = (shape.queries(), shape.dim);
        let (items, width) = (shape.ranks * shape.items, shape.width());
        let (sums, means) = ("sums of the loss", "gradients of all processes");
        let sampled = shape
            .sample
            .map(|sample| SampledRows::new(cuda, sample, [shape.keys, dim], [items, width]));
        let sampled = sampled.transpose()?;
        let softmax = match &sampled {
            None => SoftmaxKernels::new(cuda, queries, shape.n, dim)?,
            Some(rows) => SoftmaxKernels::weighted(cuda, queries, rows.most(), dim)?,
        };
        let of_each = [shape.count, shape.items, dim];
        Ok(ShardSoftmax {
            cuda: cuda.clone(),
            gathered: GatheredRows::new(cuda, shape.ranks, of_each)?,
            sampled,
            softmax,
            tell: cuda.function("similarity", "known_positives")?,
            look: cuda.function("similarity", "shard_look")?,
            share: cuda.function("similarity", "shard_share")?,
            table: cuda.zeros(items * width, "positives of all processes")?,
            sums: cuda.zeros(2 * queries, sums)?,
            all_sums: cuda.zeros(shape.ranks * 2 * queries, sums)?,
            means: cuda.zeros(queries * dim, means)?,
            positives: cuda.zeros(queries * dim, means)?,
            shape,
        })
    }

    /// Asks for the losses of this process's queries and the gradient of weight · mean(losses),
    /// both written (`=`), and waits for nothing. Positives are numbers among all keys. `step` is
    /// where the step's number lies. A process alone asks nobody.
    pub(in crate::cuda) fn enqueue(
        &self,
        stream: &Arc<CudaStream>,
        nccl: Option<&Nccl>,
        [queries, keys, step]: [Pointer; 3],
        [temperature, weight]: [f32; 2],
        positives: PositivePointers,
        [losses, gradient]: [Pointer; 2],
    ) -> Result<()> {
        let (cuda, shape) = (&self.cuda, &self.shape);
        let own = [queries, positives.items];
        let [queries, items] = match nccl {
            None => own,
            Some(nccl) => {
                self.gathered.enqueue(cuda, stream, nccl, own)?;
                self.gathered.places(cuda)
            }
        };
        self.enqueue_table(stream, PositivePointers { items, ..positives })?;
        if let Some(nccl) = nccl {
            let (table, len) = (cuda.pointer(&self.table), self.table.len());
            nccl.all_reduce(stream, table, len, Kind::U32)?;
        }
        self.enqueue_tiles(stream, [queries, keys, step], temperature)?;
        // Alone, a process's part is the whole.
        let means = match nccl {
            None => gradient,
            Some(_) => cuda.pointer(&self.means),
        };
        let numbers = [temperature, weight];
        self.enqueue_look(stream, [queries, keys, means], temperature, positives.each)?;
        let [own, all] = [&self.sums, &self.all_sums].map(|s| cuda.pointer(s));
        let sums = match nccl {
            None => own,
            Some(nccl) => {
                nccl.all_gather(stream, [own, all], 2 * shape.queries(), Kind::F64)?;
                all
            }
        };
        let rank = nccl.map_or(0, Nccl::rank);
        self.enqueue_share(stream, rank, numbers, positives.each, [sums, means, losses])?;
        match nccl {
            None => Ok(()),
            Some(nccl) => {
                let values = shape.count * shape.dim;
                nccl.reduce_scatter(stream, [means, gradient], values, Kind::F32)
            }
        }
    }

    /// What is known here of the items' positives.
    fn enqueue_table(&self, stream: &Arc<CudaStream>, positives: PositivePointers) -> Result<()> {
        let shape = &self.shape;
        let (count, table) = (shape.ranks * shape.items, self.cuda.pointer(&self.table));
        let on_table = ones(count * shape.width())?;
        let [first, here, _] = shape.known;
        let numbers = [count, first, here, shape.width()].map(|v| v as u32);
        let arguments = ([positives.starts, positives.members, positives.items], numbers, table);
        launch(stream, &self.tell, on_table, "positives of several processes", arguments)
    }

    /// The sums over the keys that are here, or over those of the sample that are.
    fn enqueue_tiles(
        &self,
        stream: &Arc<CudaStream>,
        [queries, keys, step]: [Pointer; 3],
        temperature: f32,
    ) -> Result<()> {
        let (cuda, softmax) = (&self.cuda, &self.softmax);
        let Some(sampled) = &self.sampled else {
            return softmax.enqueue_tiles(stream, [queries, keys], temperature, None);
        };
        let table = cuda.pointer(&self.table);
        let here = [self.shape.n, self.shape.first];
        sampled.enqueue(cuda, stream, [table, step, keys], here)?;
        let (rows, weights) = sampled.places(cuda);
        softmax.enqueue_tiles(stream, [queries, rows], temperature, Some(weights))
    }

    /// What this part says of all queries.
    fn enqueue_look(
        &self,
        stream: &Arc<CudaStream>,
        [queries, keys, means]: [Pointer; 3],
        temperature: f32,
        each: bool,
    ) -> Result<()> {
        let (cuda, shape, all) = (&self.cuda, &self.shape, self.shape.queries());
        let (ranges, rounded, places) = self.softmax.ranges();
        let [batch, n, dim, ranges, per_rank] =
            [all, shape.n, shape.dim, ranges, shape.count].map(|v| v as i32);
        let (inverse, rounded) = (1.0 / temperature, i32::from(rounded));
        let [width, count, first] = [shape.width(), shape.items, shape.first].map(|v| v as u32);
        let table = (cuda.pointer(&self.table), [width, count], i32::from(each));
        let results = [cuda.pointer(&self.sums), means, cuda.pointer(&self.positives)];
        let of_keys = ([queries, keys], [batch, n, dim], inverse, ranges, places);
        let arguments = (of_keys, table, rounded, first, per_rank, results);
        let doing = "the loss over keys of several processes";
        launch(stream, &self.look, blocks(all, MERGE_THREADS)?, doing, arguments)
    }

    /// From what all parts say to losses, and to this part's share of the gradient in place of the
    /// means.
    fn enqueue_share(
        &self,
        stream: &Arc<CudaStream>,
        rank: usize,
        [temperature, weight]: [f32; 2],
        each: bool,
        [sums, means, losses]: [Pointer; 3],
    ) -> Result<()> {
        let (shape, all) = (&self.shape, self.shape.queries());
        let positives = self.cuda.pointer(&self.positives);
        let sizes = [shape.ranks, rank, all, shape.count, shape.dim].map(|v| v as i32);
        let numbers = (1.0 / temperature, i32::from(each), weight);
        let arguments = (sums, sizes, numbers, [positives, means, losses]);
        let doing = "the loss over keys of several processes";
        launch(stream, &self.share, blocks(all, 128)?, doing, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Positives;
    use crate::cuda::testing::{OnDevice, open, unwritten};
    use crate::naive::similarity::softmax_loss;
    use crate::naive::widen;
    use crate::testing::{assert_close, uniform};

    /// What three processes would do, one after the other on one GPU, with nothing in between but
    /// what they would tell each other.
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
            let of_queries = if each { of_queries.counting_each() } else { of_queries };
            let over = (&widen(&bank)[..], &vec![1.0; keys][..], dim);
            let [t, w] = [temperature, weight].map(f64::from);
            let [losses, gradient] = softmax_loss(&widen(&queries), over, t, &of_queries, w);

            let parts = [0..334, 334..668, 668..1001];
            let mut shards: Vec<_> = parts
                .iter()
                .map(|part| {
                    let shape = ShardShape {
                        ranks,
                        count,
                        items: 4,
                        dim,
                        n: part.len(),
                        first: part.start,
                        keys,
                        known: [part.start, part.len(), 3],
                        sample: None,
                    };
                    ShardSoftmax::new(&cuda, shape).unwrap()
                })
                .collect();
            let stream = cuda.stream();
            let mut table = vec![0_u32; ranks * 4 * 4];
            for (shard, part) in shards.iter_mut().zip(&parts) {
                cuda.send(&items, &mut shard.gathered.indices).unwrap();
                let mut own = Positives::default();
                (part.clone()).for_each(|i| own.push(members(i as u32)));
                let (starts, of) = own.parts();
                let [starts, of] = [starts, of].map(|v| OnDevice::new(&cuda, v));
                let positives = PositivePointers {
                    starts: starts.at,
                    members: of.at,
                    items: shard.gathered.places(&cuda)[1],
                    count: 4,
                    each,
                };
                shard.enqueue_table(stream, positives).unwrap();
                let told = stream.clone_dtoh(&shard.table).unwrap();
                table.iter_mut().zip(told).for_each(|(all, t)| *all += t);
            }
            let mut sums = vec![];
            for (shard, part) in shards.iter_mut().zip(&parts) {
                cuda.send(&queries, &mut shard.gathered.rows).unwrap();
                cuda.send(&table, &mut shard.table).unwrap();
                let own = OnDevice::new(&cuda, &bank[part.start * dim..part.end * dim]);
                let [rows, _] = shard.gathered.places(&cuda);
                let means = cuda.pointer(&shard.means);
                let tiles = shard.enqueue_tiles(stream, [rows, own.at, 0], temperature);
                tiles.unwrap();
                let looked = shard.enqueue_look(stream, [rows, own.at, means], temperature, each);
                looked.unwrap();
                sums.extend(stream.clone_dtoh(&shard.sums).unwrap());
            }
            let (mut told, mut share) = (vec![], vec![0.0; gradient.len()]);
            for (rank, shard) in shards.iter_mut().enumerate() {
                cuda.send(&sums, &mut shard.all_sums).unwrap();
                let own = unwritten(&cuda, count);
                let numbers = [temperature, weight / ranks as f32];
                let [sums, means] = [cuda.pointer(&shard.all_sums), cuda.pointer(&shard.means)];
                let places = [sums, means, own.at];
                let shared = shard.enqueue_share(stream, rank, numbers, each, places);
                shared.unwrap();
                told.extend(own.read(&cuda));
                let part = stream.clone_dtoh(&shard.means).unwrap();
                share.iter_mut().zip(part).for_each(|(s, p)| *s += p);
            }
            assert_close("losses", &told, &losses, 1e-5);
            assert_close("gradient", &share, &gradient, 1e-5);
        }
    }
}
