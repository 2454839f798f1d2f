//! Which rows a loss over a sample looks at in a step, and their copies (kernels/sampled.cu).

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DeviceRepr, PushKernelArg};

use super::shape;
use crate::cuda::launch::{Pointer, side_by_side};
use crate::cuda::{Cuda, failed};
use crate::{Error, Result, RowSample};

/// Threads of a block, and of the one that packs.
const THREADS: u32 = 256;
const PACK_THREADS: u32 = 1024;

/// What the kernels are told, in their own order.
#[repr(C)]
#[derive(Clone, Copy)]
struct SampleWords {
    drawn: u32,
    items: u32,
    width: u32,
    keys: u32,
    seed_low: u32,
    seed_high: u32,
}

// SAFETY: plain words, laid out as the kernels' struct has them.
unsafe impl DeviceRepr for SampleWords {}

/// The rows of a step, with their memory.
pub(super) struct SampledRows {
    words: SampleWords,
    places: usize,
    dim: usize,
    find: CudaFunction,
    pack: CudaFunction,
    copy: CudaFunction,
    /// The row of each place; how many count; which are here, and how many.
    found: CudaSlice<u32>,
    counts: CudaSlice<u32>,
    picked: CudaSlice<u32>,
    here: CudaSlice<u32>,
    log_weights: CudaSlice<f32>,
    rows: CudaSlice<f32>,
}

impl SampledRows {
    /// For samples among `keys` rows of `dim` values, and the positives of so many items, each with
    /// fewer than `width`.
    pub(super) fn new(
        cuda: &Cuda,
        sample: RowSample,
        [keys, dim]: [usize; 2],
        [items, width]: [usize; 2],
    ) -> Result<Self> {
        let (what, places) = ("rows of a sample", sample.rows + items * (width - 1));
        Ok(SampledRows {
            words: SampleWords {
                drawn: sample.rows as u32,
                items: items as u32,
                width: width as u32,
                keys: keys as u32,
                seed_low: sample.seed as u32,
                seed_high: (sample.seed >> 32) as u32,
            },
            places,
            dim,
            find: cuda.function("sampled", "sample_places")?,
            pack: cuda.function("sampled", "sample_pack")?,
            copy: cuda.function("sampled", "sample_copy")?,
            found: cuda.zeros(places, what)?,
            counts: cuda.zeros(2, what)?,
            picked: cuda.zeros(places, what)?,
            here: cuda.zeros(1, what)?,
            log_weights: cuda.zeros(places, what)?,
            rows: cuda.zeros(places * dim, what)?,
        })
    }

    /// Rows there can be at most.
    pub(super) fn most(&self) -> usize {
        self.places
    }

    /// Where the rows lie, the logarithms of their weights, and how many there are.
    pub(super) fn places(&self, cuda: &Cuda) -> (Pointer, [Pointer; 2]) {
        let weights = [cuda.pointer(&self.log_weights), cuda.pointer(&self.here)];
        (cuda.pointer(&self.rows), weights)
    }

    /// Draws the rows of the step whose number lies at `step`, and copies those that are among `n`
    /// keys from number `first` on.
    pub(super) fn enqueue(
        &self,
        cuda: &Cuda,
        stream: &Arc<CudaStream>,
        [table, step, keys]: [Pointer; 3],
        [n, first]: [usize; 2],
    ) -> Result<()> {
        let failed = |e| failed("a sample of the keys", e);
        let [found, counts] = [&self.found, &self.counts].map(|v| cuda.pointer(v));
        let [picked, here] = [&self.picked, &self.here].map(|v| cuda.pointer(v));
        let (log_weights, rows) = (cuda.pointer(&self.log_weights), cuda.pointer(&self.rows));
        let grid = |threads: usize| {
            let blocks = side_by_side(threads.div_ceil(THREADS as usize))?;
            Ok::<_, Error>([blocks, 1, 1])
        };
        let mut launch = stream.launch_builder(&self.find);
        launch.arg(&self.words).arg(&table).arg(&step);
        launch.arg(&found).arg(&counts);
        // SAFETY: the arguments are those of the kernels, here and below, and the memory is as
        // large as the places are many.
        unsafe { launch.launch(shape(grid(self.places)?, THREADS, 0)) }.map_err(failed)?;
        let [first, n] = [first, n].map(|v| v as u32);
        let mut launch = stream.launch_builder(&self.pack);
        launch.arg(&self.words).arg(&found).arg(&first).arg(&n);
        launch.arg(&counts).arg(&picked).arg(&log_weights).arg(&here);
        // SAFETY: as above.
        unsafe { launch.launch(shape([1, 1, 1], PACK_THREADS, 0)) }.map_err(failed)?;
        let dim = self.dim as i32;
        let mut launch = stream.launch_builder(&self.copy);
        launch.arg(&keys).arg(&dim);
        launch.arg(&picked).arg(&here).arg(&rows);
        // SAFETY: as above; rows that are picked are among the keys here.
        let copied = unsafe { launch.launch(shape(grid(32 * self.places)?, THREADS, 0)) };
        copied.map(drop).map_err(failed)
    }
}
