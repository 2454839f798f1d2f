//! Tiles cut out of pictures on the GPU (kernels/tiles.cu).

use cudarc::driver::{CudaFunction, CudaStream};

use super::launch::{BLOCK, Pointer, argument, blocks, launch};
use crate::Result;
use crate::stream::Tiles;

/// What the kernel is told, in its own order.
#[repr(C)]
#[derive(Clone, Copy)]
struct TilesWords {
    size: u32,
    channels: u32,
    classes: u32,
    tiles: u32,
    side: u32,
    jitter: u32,
    normalise: i32,
    seed_low: u32,
    seed_high: u32,
    first: u32,
}
argument!(TilesWords);

/// Cuts `pictures` pictures, the first of which is number `first` of the batch; `step` is a place
/// that holds the step.
pub(super) fn enqueue_tiles(
    stream: &CudaStream,
    kernel: &CudaFunction,
    of: &Tiles,
    [first, pictures]: [usize; 2],
    [pixels, places, step, labels, to]: [Pointer; 5],
) -> Result<()> {
    let words = TilesWords {
        size: of.size as u32,
        channels: of.channels as u32,
        classes: (of.places.len() / of.tiles) as u32,
        tiles: of.tiles as u32,
        side: of.side as u32,
        jitter: of.jitter as u32,
        normalise: i32::from(of.normalise),
        seed_low: of.seed as u32,
        seed_high: (of.seed >> 32) as u32,
        first: first as u32,
    };
    let shape = blocks(pictures * of.tiles, BLOCK)?;
    launch(stream, kernel, shape, "cutting tiles", (pixels, places, words, step, labels, to))
}
