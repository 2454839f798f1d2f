//! Which rows a loss over a sample looks at in a step, and their copies (kernels/sampled.cu).

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream};

use crate::cuda::Cuda;
use crate::cuda::launch::{Pointer, argument, blocks, launch, ones, warps};
use crate::{Result, RowSample};

/// Threads of the block that packs.
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
argument!(SampleWords);

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
        stream: &CudaStream,
        [table, step, keys]: [Pointer; 3],
        [n, first]: [usize; 2],
    ) -> Result<()> {
        let (words, doing) = (self.words, "a sample of the keys");
        let [found, counts] = [&self.found, &self.counts].map(|v| cuda.pointer(v));
        let [picked, here] = [&self.picked, &self.here].map(|v| cuda.pointer(v));
        let (log_weights, rows) = (cuda.pointer(&self.log_weights), cuda.pointer(&self.rows));
        let arguments = (words, [table, step, found, counts]);
        launch(stream, &self.find, ones(self.places)?, doing, arguments)?;
        let range = [first, n].map(|v| v as u32);
        let arguments = (words, found, range, [counts, picked, log_weights, here]);
        launch(stream, &self.pack, blocks(1, PACK_THREADS)?, doing, arguments)?;
        let arguments = (keys, self.dim as i32, [picked, here, rows]);
        launch(stream, &self.copy, warps(self.places)?, doing, arguments)
    }
}
