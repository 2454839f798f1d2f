//! The contrastive loss between views of pictures: which kernels run how (kernels/contrastive.cu has the maths).
//!
//! Keys are cut into ranges, as many as fill the GPU once, and the ranges' sums are put together in order: the bits are the
//! same every time on one GPU. Beside the rows this takes ranges × N × (dim + 2) values: 9 MB on an H200 for 1024 rows of 128.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, PushKernelArg};

use super::{rows, shape};
use crate::Result;
use crate::cuda::launch::Pointer;
use crate::cuda::{Cuda, allow_shared, failed};

/// Rows in a block and in a tile.
const SIDE: usize = 64;
/// Columns a block sums; longer rows take several blocks.
const CHUNK: usize = 128;
/// Shared memory: two tiles of rows, padded; and with the weights.
const SUMS_SHARED: usize = 2 * SIDE * (CHUNK + 4) * 4;
const WEIGHTED_SHARED: usize = SUMS_SHARED + SIDE * (SIDE + 4) * 4;
/// Threads of the kernels that take rows or values one by one.
const THREADS: usize = 256;

/// The loss of matrices of one shape, with its memory.
pub(in crate::cuda) struct Contrastive {
    views: usize,
    batch: usize,
    dim: usize,
    tiles_per_range: usize,
    ranges: usize,
    kernels: [CudaFunction; 4],
    /// Maxima and sums of the ranges, l of each row, weighted keys of the ranges; and where they lie.
    _memory: [CudaSlice<f32>; 4],
    places: [Pointer; 4],
}

impl Contrastive {
    /// Allocates what losses of `views` of `batch` pictures need.
    pub(in crate::cuda) fn new(
        cuda: &Cuda,
        views: usize,
        batch: usize,
        dim: usize,
    ) -> Result<Self> {
        let n = rows("rows", views * batch * dim, dim)?;
        let (tiles_per_range, ranges) = cut(cuda.multiprocessors()?, n, dim);
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
        let each = ranges * n;
        let memory = [zeros(each)?, zeros(each)?, zeros(n)?, zeros(each * dim)?];
        Ok(Contrastive {
            views,
            batch,
            dim,
            tiles_per_range,
            ranges,
            kernels,
            places: memory.each_ref().map(|slice| cuda.pointer(slice)),
            _memory: memory,
        })
    }

    /// Whether it is for matrices of this shape.
    pub(in crate::cuda) fn fits(&self, views: usize, batch: usize, dim: usize) -> bool {
        (self.views, self.batch, self.dim) == (views, batch, dim)
    }

    /// Asks for the losses and the gradient of weight · mean(losses), both written (`=`), and waits for nothing.
    ///
    /// `rows` and `gradient` are views · batch × dim, `losses` has a value for each row.
    pub(in crate::cuda) fn enqueue(
        &self,
        stream: &Arc<CudaStream>,
        rows: Pointer,
        temperature: f32,
        weight: f32,
        [losses, gradient]: [Pointer; 2],
    ) -> Result<()> {
        let count = self.views * self.batch;
        if count == 0 {
            return Ok(());
        }
        let [views, batch, n, dim] = [self.views, self.batch, count, self.dim].map(|v| v as i32);
        let [per_range, ranges] = [self.tiles_per_range, self.ranges].map(|v| v as i32);
        let [maxima, sums, log_sums, weighted] = self.places;
        let inverse = 1.0 / temperature;
        let failed = |e| failed("the contrastive loss", e);
        let blocks = count.div_ceil(SIDE);
        let grid = |chunks: usize| [self.ranges, blocks, chunks].map(|v| v as u32);
        let flat = |threads: usize| {
            let blocks = threads.div_ceil(THREADS) as u32;
            shape([blocks, 1, 1], THREADS as u32, 0)
        };

        let mut launch = stream.launch_builder(&self.kernels[0]);
        launch.arg(&rows).arg(&n).arg(&dim).arg(&inverse);
        launch.arg(&per_range).arg(&maxima).arg(&sums);
        // SAFETY: the arguments are those of the kernel, and the memory is as large as its shape asks; here and below.
        unsafe { launch.launch(shape(grid(1), 256, SUMS_SHARED)) }.map_err(failed)?;

        let mut launch = stream.launch_builder(&self.kernels[1]);
        launch.arg(&rows).arg(&views).arg(&batch).arg(&dim);
        launch.arg(&inverse).arg(&ranges).arg(&maxima).arg(&sums);
        launch.arg(&log_sums).arg(&losses);
        // SAFETY: as above; a warp a row.
        unsafe { launch.launch(flat(32 * count)) }.map_err(failed)?;

        let mut launch = stream.launch_builder(&self.kernels[2]);
        launch.arg(&rows).arg(&views).arg(&batch).arg(&dim);
        launch
            .arg(&inverse)
            .arg(&per_range)
            .arg(&log_sums)
            .arg(&weighted);
        let chunks = grid(self.dim.div_ceil(CHUNK));
        // SAFETY: as above.
        unsafe { launch.launch(shape(chunks, 256, WEIGHTED_SHARED)) }.map_err(failed)?;

        let (len, factor) = (
            (count * self.dim) as u64,
            weight / (count as f32 * temperature),
        );
        let mut launch = stream.launch_builder(&self.kernels[3]);
        launch.arg(&weighted).arg(&ranges).arg(&len).arg(&factor);
        launch.arg(&gradient);
        // SAFETY: as above; a thread a value.
        unsafe { launch.launch(flat(count * self.dim)) }.map_err(failed)?;
        Ok(())
    }
}

/// Tiles in a range and ranges of n keys: two blocks fill a multiprocessor.
fn cut(multiprocessors: usize, n: usize, dim: usize) -> (usize, usize) {
    let tiles = n.div_ceil(SIDE);
    let blocks = (tiles * dim.div_ceil(CHUNK)).max(1);
    let wanted = (2 * multiprocessors / blocks).max(1);
    let tiles_per_range = tiles.div_ceil(wanted).max(1);
    (tiles_per_range, tiles.div_ceil(tiles_per_range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::testing::{OnDevice, open, unwritten};
    use crate::testing::uniform;

    #[test]
    fn a_cut_covers_the_keys_once() {
        for (n, dim) in [
            (2, 1),
            (64, 128),
            (65, 128),
            (1024, 128),
            (8192, 300),
            (100_000, 32),
        ] {
            let (per_range, ranges) = cut(132, n, dim);
            let tiles = n.div_ceil(SIDE);
            assert!(per_range * ranges >= tiles && per_range * (ranges - 1) < tiles);
            assert!(ranges * n * dim * 4 < 64 << 20, "{n} rows of {dim}");
        }
        assert_eq!(cut(132, 1024, 128), (1, 16));
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_batch_of_512_pictures_takes_far_less_than_a_step() {
        let cuda = open();
        let rows = OnDevice::new(&cuda, &uniform(3, 1024 * 128));
        let out = [1024, 1024 * 128].map(|len| unwritten(&cuda, len));
        let loss = Contrastive::new(&cuda, 2, 512, 128).unwrap();
        let run = |times: usize| {
            for _ in 0..times {
                let at = out.each_ref().map(|o| o.at);
                loss.enqueue(cuda.stream(), rows.at, 0.5, 1.0, at).unwrap();
            }
            cuda.synchronise().unwrap();
        };
        run(100);
        let start = std::time::Instant::now();
        run(1000);
        let each = start.elapsed() / 1000;
        eprintln!("1024 rows of 128: {each:?}");
        assert!(each.as_micros() < 500, "{each:?}");
    }
}
