//! The softmax over all keys, its loss and its gradient: which kernels run how
//! (kernels/similarity.cu has the maths).
//!
//! Keys are cut into ranges, as many as fill the GPU once; each range leaves its sums behind, and a
//! second kernel puts them together in order. How keys are cut depends on the sizes and on the GPU,
//! so the bits are the same every time on one GPU. Beside the bank this takes ranges × batch × (dim
//! + 2) values: 9 MB on an H200 for a batch of 128 or 256.

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream};

use super::Ranges;
use crate::cuda::launch::{Pointer, blocks, launch, shape};
use crate::cuda::{Cuda, Precision, allow_shared};
use crate::{Error, Result};

/// Keys in a tile of either kernel.
const TILE: usize = 64;
/// Rows for the tensor cores: their kernel keeps 128 values of a row in registers, shorter rows
/// filled up with zeros. Below the least there would be more zeros than work worth the rounding.
const BF16_ROWS: std::ops::RangeInclusive<usize> = 32..=128;
/// Columns a block of the f32 kernel sums; longer rows take several blocks.
const CHUNK: usize = 128;
/// What loss_merge has room for.
const MOST_RANGES: usize = 1024;
/// Threads of a block of loss_merge.
pub(super) const MERGE_THREADS: u32 = 512;
/// Shared memory of the f32 kernel: two tiles of rows and the weights, padded.
const F32_SHARED: usize = (2 * TILE * (CHUNK + 4) + TILE * (TILE + 4)) * 4;

/// How a loss is cut into blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    bf16: bool,
    batch: usize,
    n: usize,
    dim: usize,
    /// Blocks of queries, chunks of columns.
    blocks: usize,
    chunks: usize,
    ranges: Ranges,
}

impl Cut {
    fn new(bf16: bool, multiprocessors: usize, batch: usize, n: usize, dim: usize) -> Self {
        let bf16 = bf16 && BF16_ROWS.contains(&dim);
        // One block of 128 queries fills a multiprocessor's registers, or two of 64.
        let (side, fill) = if bf16 { (128, 1) } else { (64, 2) };
        let blocks = batch.div_ceil(side);
        let chunks = if bf16 { 1 } else { dim.div_ceil(CHUNK) };
        let wanted = fill * multiprocessors / (blocks * chunks).max(1);
        let ranges = Ranges::new(n.div_ceil(TILE), wanted.min(MOST_RANGES));
        Cut { bf16, batch, n, dim, blocks, chunks, ranges }
    }
}

/// Positives on the device: those of query q are `members[starts[r]..starts[r + 1]]` with r = q, or
/// with r = `items[q mod count]` where there are items.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct PositivePointers {
    /// u32, one more than there are rows.
    pub(in crate::cuda) starts: Pointer,
    /// u32.
    pub(in crate::cuda) members: Pointer,
    /// u32, the batch's items; 0 for none.
    pub(in crate::cuda) items: Pointer,
    /// How many items.
    pub(in crate::cuda) count: usize,
    /// Whether every positive counts as much.
    pub(in crate::cuda) each: bool,
}

impl PositivePointers {
    /// The places, for a recording to be known by.
    pub(in crate::cuda) fn signature(&self) -> [u64; 5] {
        let (count, each) = (self.count as u64, u64::from(self.each));
        [self.starts, self.members, self.items, count, each]
    }
}

/// The loss of batches of one size over as many keys, with its memory.
pub(in crate::cuda) struct SoftmaxKernels {
    cut: Cut,
    tiles: CudaFunction,
    weighted: bool,
    merge: CudaFunction,
    /// Maxima, sums and weighted keys of the ranges, and where they lie.
    _memory: [CudaSlice<f32>; 3],
    places: [Pointer; 3],
}

impl SoftmaxKernels {
    /// Allocates what losses of `batch` queries over `n` keys need.
    pub(in crate::cuda) fn new(cuda: &Cuda, batch: usize, n: usize, dim: usize) -> Result<Self> {
        SoftmaxKernels::of(cuda, batch, n, dim, false)
    }

    /// The same over up to `n` keys with a weight each.
    pub(super) fn weighted(cuda: &Cuda, batch: usize, n: usize, dim: usize) -> Result<Self> {
        SoftmaxKernels::of(cuda, batch, n, dim, true)
    }

    fn of(cuda: &Cuda, batch: usize, n: usize, dim: usize, weighted: bool) -> Result<Self> {
        let bf16 = cuda.precision() == Precision::Bf16;
        let cut = Cut::new(bf16, cuda.multiprocessors()?, batch, n, dim);
        let file = if cut.bf16 { "loss_bf16" } else { "loss_f32" };
        let kernel = if weighted { format!("{file}_weighted") } else { file.into() };
        let tiles = cuda.function(file, &kernel)?;
        if !cut.bf16 {
            allow_shared(&tiles, F32_SHARED)?;
        }
        let zeros = |len| cuda.zeros(len, "sums of the loss");
        let each = cut.ranges.count * batch;
        let memory = [zeros(each)?, zeros(each)?, zeros(each * dim)?];
        Ok(SoftmaxKernels {
            cut,
            tiles,
            weighted,
            merge: cuda.function("similarity", "loss_merge")?,
            places: memory.each_ref().map(|slice| cuda.pointer(slice)),
            _memory: memory,
        })
    }

    /// Asks for the losses and the gradient of weight · mean(losses), both written (`=`), and waits
    /// for nothing.
    ///
    /// `queries`, `keys` and `gradient` are f32 matrices of the sizes given to
    /// [`SoftmaxKernels::new`], `losses` a value per query; every query has a positive, and none
    /// lies beyond the keys.
    pub(in crate::cuda) fn enqueue(
        &self,
        stream: &CudaStream,
        [queries, keys]: [Pointer; 2],
        [temperature, weight]: [f32; 2],
        positives: PositivePointers,
        [losses, gradient]: [Pointer; 2],
    ) -> Result<()> {
        if self.cut.batch == 0 {
            return Ok(());
        }
        self.enqueue_tiles(stream, [queries, keys], temperature, None)?;
        let cut = &self.cut;
        let sizes = [cut.batch, cut.n, cut.dim].map(|v| v as i32);
        let (inverse, rounded) = (1.0 / temperature, i32::from(cut.bf16));
        let of_keys = ([queries, keys], sizes, inverse, cut.ranges.count as i32, self.places);
        let PositivePointers { starts, members, items, count, each } = positives;
        let of_positives = ([starts, members, items], count as u32, i32::from(each));
        let arguments = (of_keys, of_positives, weight, rounded, [losses, gradient]);
        let shape = blocks(cut.batch, MERGE_THREADS)?;
        launch(stream, &self.merge, shape, "the loss of a batch", arguments)
    }

    /// Asks for the sums of all ranges. Where keys are weighted: the logarithms of their weights,
    /// and where it says how many there are.
    pub(super) fn enqueue_tiles(
        &self,
        stream: &CudaStream,
        [queries, keys]: [Pointer; 2],
        temperature: f32,
        weights: Option<[Pointer; 2]>,
    ) -> Result<()> {
        Error::refuse(weights.is_some() != self.weighted, || {
            "a softmax with weights, or without".into()
        })?;
        let cut = &self.cut;
        if cut.ranges.count == 0 {
            return Ok(()); // no keys
        }
        let sizes = [cut.batch, cut.n, cut.dim].map(|v| v as i32);
        let (inverse, per_range) = (1.0 / temperature, cut.ranges.tiles_each as i32);
        let arguments = ([queries, keys], sizes, inverse, per_range, self.places, weights);
        let grid = [cut.ranges.count, cut.blocks, cut.chunks].map(|v| v as u32);
        let shape = shape(grid, [256, 1], if cut.bf16 { 0 } else { F32_SHARED });
        launch(stream, &self.tiles, shape, "the softmax over all keys", arguments)
    }

    /// How many ranges there are, whether values are rounded, and where the ranges' maxima, sums
    /// and weighted keys lie.
    pub(super) fn ranges(&self) -> (usize, bool, [Pointer; 3]) {
        (self.cut.ranges.count, self.cut.bf16, self.places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory stays small however many keys there are.
    #[test]
    fn a_cut_takes_little_memory() {
        for bf16 in [true, false] {
            for (batch, n, dim) in [
                (1, 1, 1),
                (128, 50_000, 128),
                (256, 1_281_167, 128),
                (7, 65, 300),
                (100_000, 10_000_000, 32),
            ] {
                let cut = Cut::new(bf16, 132, batch, n, dim);
                assert!((1..=MOST_RANGES).contains(&cut.ranges.count), "{cut:?}");
                let bytes = cut.ranges.count * batch * (dim + 2) * 4;
                assert!(batch > 256 || bytes < 64 << 20, "{cut:?}: {bytes} bytes");
                assert_eq!(cut.bf16, bf16 && (32..=128).contains(&dim));
            }
        }
    }
}
