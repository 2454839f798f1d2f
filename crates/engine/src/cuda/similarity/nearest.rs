//! The most similar key of each query, copied: which kernels run how (kernels/nearest.cu has the
//! maths).
//!
//! Keys are cut into ranges, as many as fill the GPU once, and the ranges' best are compared in
//! order: the bits are the same every time on one GPU.

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream};

use super::{Ranges, rows};
use crate::Result;
use crate::cuda::launch::{Pointer, launch, shape, warps};
use crate::cuda::{Cuda, allow_shared};

/// Rows in a block and in a tile.
const SIDE: usize = 64;
/// Shared memory: two tiles of rows, padded.
const SHARED: usize = 2 * SIDE * (128 + 4) * 4;

/// The search of so many queries among as many keys, with its memory.
pub(in crate::cuda) struct Nearest {
    count: usize,
    n: usize,
    dim: usize,
    ranges: Ranges,
    kernels: [CudaFunction; 2],
    /// The best similarity of each query in each range, and which key it is of; and where they lie.
    _similarities: CudaSlice<f32>,
    _found: CudaSlice<i32>,
    places: [Pointer; 2],
}

impl Nearest {
    /// Allocates what searches of `count` queries among `n` keys need.
    pub(in crate::cuda) fn new(cuda: &Cuda, count: usize, n: usize, dim: usize) -> Result<Self> {
        rows("keys", n * dim, dim)?;
        // Two blocks fill a multiprocessor.
        let blocks = count.div_ceil(SIDE).max(1);
        let ranges = Ranges::new(n.div_ceil(SIDE), 2 * cuda.multiprocessors()? / blocks);
        let kernel = |name| cuda.function("nearest", name);
        let kernels = [kernel("nearest_in_ranges")?, kernel("nearest_copy")?];
        allow_shared(&kernels[0], SHARED)?;
        let similarities = cuda.zeros(ranges.count * count, "similarities of nearest rows")?;
        let found = cuda.zeros(ranges.count * count, "nearest rows")?;
        Ok(Nearest {
            count,
            n,
            dim,
            ranges,
            kernels,
            places: [cuda.pointer(&similarities), cuda.pointer(&found)],
            _similarities: similarities,
            _found: found,
        })
    }

    /// Asks for each query's key to be written (`=`) to `to`, and waits for nothing.
    pub(in crate::cuda) fn enqueue(
        &self,
        stream: &CudaStream,
        [queries, keys, to]: [Pointer; 3],
    ) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let [count, n, dim] = [self.count, self.n, self.dim].map(|v| v as i32);
        let [per_range, ranges] = [self.ranges.tiles_each, self.ranges.count].map(|v| v as i32);
        let (doing, blocks) = ("the search for nearest rows", self.count.div_ceil(SIDE) as u32);
        let [in_ranges, copy] = &self.kernels;

        let grid = shape([self.ranges.count as u32, blocks, 1], [256, 1], SHARED);
        let arguments = ([queries, keys], [count, n, dim, per_range], self.places);
        launch(stream, in_ranges, grid, doing, arguments)?;

        let arguments = (self.places, ranges, count, keys, dim, to);
        launch(stream, copy, warps(self.count)?, doing, arguments)
    }
}
