//! The contrastive loss between views of pictures: which kernels run how (kernels/contrastive.cu
//! has the maths).
//!
//! Keys are cut into ranges, as many as fill the GPU once, and the ranges' sums are put together in
//! order: the bits are the same every time on one GPU. Beside the rows this takes ranges × N × (dim
//! + 2) values: 9 MB on an H200 for 1024 rows of 128.
//!
//! Where several processes have pictures, rows of all of them are gathered, and each process has
//! the losses and gradients of its own.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream};

use super::{Ranges, rows};
use crate::Result;
use crate::cuda::launch::{Pointer, launch, ones, shape, warps};
use crate::cuda::nccl::{Kind, Nccl};
use crate::cuda::{Cuda, allow_shared};

/// Rows in a block and in a tile.
const SIDE: usize = 64;
/// Columns a block sums; longer rows take several blocks.
const CHUNK: usize = 128;
/// Shared memory: two tiles of rows, padded; and with the weights.
const SUMS_SHARED: usize = 2 * SIDE * (CHUNK + 4) * 4;
const WEIGHTED_SHARED: usize = SUMS_SHARED + SIDE * (SIDE + 4) * 4;

/// Views of pictures: of all processes together, and of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cuda) struct Shape {
    pub(in crate::cuda) views: usize,
    /// Pictures of all processes.
    pub(in crate::cuda) batch: usize,
    pub(in crate::cuda) dim: usize,
    /// The number of this process's first picture, and how many it has.
    pub(in crate::cuda) first: usize,
    pub(in crate::cuda) own: usize,
}

/// The loss of matrices of one shape, with its memory.
pub(in crate::cuda) struct Contrastive {
    cuda: Cuda,
    shape: Shape,
    ranges: Ranges,
    kernels: [CudaFunction; 4],
    /// Maxima and sums of the ranges, l of each own row, weighted keys of the ranges; and where
    /// they lie.
    _memory: [CudaSlice<f32>; 4],
    places: [Pointer; 4],
    /// Rows and l of all processes.
    gathered: Option<[CudaSlice<f32>; 2]>,
}

impl Contrastive {
    /// Allocates what losses of these views need, gathered from several processes or not.
    pub(in crate::cuda) fn new(cuda: &Cuda, shape: Shape, gathers: bool) -> Result<Self> {
        let (views, dim) = (shape.views, shape.dim);
        let all = rows("rows", views * shape.batch * dim, dim)?;
        let own = views * shape.own;
        let ranges = cut(cuda.multiprocessors()?, [own, all], dim);
        let kernel = |name| cuda.function("contrastive", name);
        let kernels = [
            kernel("contrastive_sums")?,
            kernel("contrastive_losses")?,
            kernel("contrastive_weighted")?,
            kernel("contrastive_gradient")?,
        ];
        allow_shared(&kernels[0], SUMS_SHARED)?;
        allow_shared(&kernels[2], WEIGHTED_SHARED)?;
        let zeros = |len| cuda.zeros(len, "sums of the contrastive loss");
        let each = ranges.count * own;
        let memory = [zeros(each)?, zeros(each)?, zeros(own)?, zeros(each * dim)?];
        let gathered = || Ok([zeros(all * dim)?, zeros(all)?]);
        Ok(Contrastive {
            cuda: cuda.clone(),
            shape,
            ranges,
            kernels,
            places: memory.each_ref().map(|slice| cuda.pointer(slice)),
            _memory: memory,
            gathered: gathers.then(gathered).transpose()?,
        })
    }

    /// Every process's `each` values of each view, to `to`: view 0 of all processes, then view 1,
    /// and so on.
    fn gather(
        &self,
        stream: &Arc<CudaStream>,
        nccl: &Nccl,
        [from, to]: [Pointer; 2],
        each: usize,
    ) -> Result<()> {
        let bytes = |values: usize| 4 * values as u64;
        nccl.grouped(|| {
            (0..self.shape.views).try_for_each(|view| {
                let from = from + bytes(view * each);
                let to = to + bytes(view * nccl.ranks() * each);
                nccl.all_gather(stream, [from, to], each, Kind::F32)
            })
        })
    }

    /// Asks for the losses and the gradient of weight · mean(losses), both written (`=`), and waits
    /// for nothing.
    ///
    /// `own` and `gradient` are views · own pictures × dim, `losses` has a value for each row.
    pub(in crate::cuda) fn enqueue(
        &self,
        stream: &Arc<CudaStream>,
        nccl: Option<&Nccl>,
        own: Pointer,
        [temperature, weight]: [f32; 2],
        [losses, gradient]: [Pointer; 2],
    ) -> Result<()> {
        let count = self.shape.views * self.shape.own;
        if count == 0 {
            return Ok(());
        }
        let s = self.shape;
        let sizes = [s.views, s.batch, s.first, s.own, s.dim].map(|v| v as i32);
        let [per_range, ranges] = [self.ranges.tiles_each, self.ranges.count].map(|v| v as i32);
        let [maxima, sums, log_sums, weighted] = self.places;
        let (inverse, doing) = (1.0 / temperature, "the contrastive loss");
        let blocks = count.div_ceil(SIDE);
        let grid = |chunks: usize, shared: usize| {
            shape([self.ranges.count, blocks, chunks].map(|v| v as u32), [256, 1], shared)
        };
        let among = nccl.zip(self.gathered.as_ref());
        let [rows, all_log_sums] = match among {
            None => [own, log_sums],
            Some((_, gathered)) => gathered.each_ref().map(|g| self.cuda.pointer(g)),
        };
        if let Some((nccl, _)) = among {
            self.gather(stream, nccl, [own, rows], s.own * s.dim)?;
        }

        let [of_ranges, of_rows, of_columns, of_values] = &self.kernels;
        let arguments = ([own, rows], sizes, inverse, per_range, [maxima, sums]);
        launch(stream, of_ranges, grid(1, SUMS_SHARED), doing, arguments)?;

        let arguments = (rows, sizes, inverse, ranges, [maxima, sums, log_sums, losses]);
        launch(stream, of_rows, warps(count)?, doing, arguments)?;
        if let Some((nccl, _)) = among {
            self.gather(stream, nccl, [log_sums, all_log_sums], s.own)?;
        }

        let chunks = grid(s.dim.div_ceil(CHUNK), WEIGHTED_SHARED);
        let arguments = ([own, rows], sizes, inverse, per_range, [all_log_sums, weighted]);
        launch(stream, of_columns, chunks, doing, arguments)?;

        let (len, factor) = ((count * s.dim) as u64, weight / (count as f32 * temperature));
        let arguments = (weighted, ranges, len, factor, gradient);
        launch(stream, of_values, ones(count * s.dim)?, doing, arguments)
    }
}

/// Ranges of n keys for so many queries: two blocks fill a multiprocessor.
fn cut(multiprocessors: usize, [queries, n]: [usize; 2], dim: usize) -> Ranges {
    let blocks = (queries.div_ceil(SIDE) * dim.div_ceil(CHUNK)).max(1);
    Ranges::new(n.div_ceil(SIDE), 2 * multiprocessors / blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_takes_little_memory() {
        for (n, dim) in [(2, 1), (64, 128), (65, 128), (1024, 128), (8192, 300), (100_000, 32)] {
            let ranges = cut(132, [n, n], dim);
            assert!(ranges.count * n * dim * 4 < 64 << 20, "{n} rows of {dim}");
        }
        assert_eq!(cut(132, [1024, 1024], 128), Ranges { tiles_each: 1, count: 16 });
        // Of four processes: an eighth of the rows are queries.
        assert_eq!(cut(132, [512, 4096], 128), Ranges { tiles_each: 2, count: 32 });
    }
}
