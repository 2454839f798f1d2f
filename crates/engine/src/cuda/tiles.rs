//! Tiles cut out of pictures on the GPU (kernels/tiles.cu).

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg};

use super::failed;
use super::launch::{Pointer, side_by_side};
use crate::Result;
use crate::stream::Tiles;

/// Threads of a block; channels of a picture at most.
pub(super) const THREADS: u32 = 256;

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

// SAFETY: plain words, laid out as the kernel's struct has them.
unsafe impl DeviceRepr for TilesWords {}

/// Cuts `pictures` pictures, the first of which is number `first` of the batch; `step` is a place
/// that holds the step.
pub(super) fn enqueue_tiles(
    stream: &Arc<CudaStream>,
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
    let grid = LaunchConfig {
        grid_dim: (side_by_side(pictures * of.tiles)?, 1, 1),
        block_dim: (THREADS, 1, 1),
        shared_mem_bytes: 0,
    };
    let mut launch = stream.launch_builder(kernel);
    launch.arg(&pixels).arg(&places).arg(&words).arg(&step);
    launch.arg(&labels).arg(&to);
    // SAFETY: the arguments are those of the kernel; places are within the pictures by their
    // promise, and pointers cover what the caller has checked.
    let launched = unsafe { launch.launch(grid) };
    launched.map(drop).map_err(|e| failed("cutting tiles", e))
}
