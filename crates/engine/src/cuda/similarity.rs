//! Similarities between rows of two matrices on the GPU: losses and blending as parts of a step,
//! with everything on the device, so that it can be captured; and the scans of discovery.

mod contrastive;
mod loss;
mod nearest;
mod sampled;
mod scan;
mod shard;

use std::ops::Range;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream};

use super::launch::{Pointer, launch, warps};
use crate::{Error, Result};

pub(super) use contrastive::{Contrastive, Shape as ViewShape};
pub(super) use loss::{PositivePointers, SoftmaxKernels};
pub(super) use nearest::Nearest;
pub(super) use scan::scan;
pub(super) use shard::{GatheredRows, ShardShape, ShardSoftmax};

/// Positives on the device.
pub(super) struct CudaPositives {
    /// Where each row's members begin, and the last one's end.
    pub(super) starts: CudaSlice<u32>,
    pub(super) members: CudaSlice<u32>,
    /// Whether every positive counts as much.
    pub(super) each: bool,
}

/// How tiles of keys are cut into ranges that blocks share; it depends on sizes and the GPU alone.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ranges {
    tiles_each: usize,
    count: usize,
}

impl Ranges {
    /// As many as are wanted at most, and none of them empty.
    fn new(tiles: usize, wanted: usize) -> Self {
        let tiles_each = tiles.div_ceil(wanted.max(1)).max(1);
        Ranges { tiles_each, count: tiles.div_ceil(tiles_each) }
    }
}

/// Rows to blend, all on the device, one after the other: an index named twice is blended twice.
pub(super) struct Blend {
    /// The matrix whose rows change.
    pub(super) keys: Pointer,
    /// What they move to.
    pub(super) queries: Pointer,
    /// Length of a row.
    pub(super) dim: usize,
    /// How many rows.
    pub(super) count: usize,
    /// How far.
    pub(super) rate: f32,
    /// u32: which rows.
    pub(super) indices: Pointer,
    /// u32: not 0 where nothing may change.
    pub(super) flag: Pointer,
    /// The numbers of the rows that are here, among all; others are left alone.
    pub(super) here: Range<usize>,
}

/// Asks for rows to be blended, and waits for nothing.
pub(super) fn enqueue_blend(
    stream: &CudaStream,
    kernel: &CudaFunction,
    blend: &Blend,
) -> Result<()> {
    if blend.count == 0 {
        return Ok(());
    }
    let sizes = [blend.dim, blend.count].map(|n| n as i32);
    let here = [blend.here.start, blend.here.len()].map(|n| n as u32);
    let arguments =
        ([blend.keys, blend.queries], sizes, blend.rate, [blend.indices, blend.flag], here);
    launch(stream, kernel, warps(blend.count)?, "blending rows", arguments)
}

/// How many rows of length `dim` a matrix of `len` values has, no more than kernels, which count in
/// 32 bits, can.
pub(super) fn rows(what: &str, len: usize, dim: usize) -> Result<usize> {
    let n = crate::similarity::rows(what, len, dim)?;
    Error::refuse(n > i32::MAX as usize - 256, || {
        format!("{what}: {n} rows are more than a GPU's kernels can count")
    })?;
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_every_tile_once() {
        for tiles in [1, 2, 17, 782, 1563, 20_019, 156_250] {
            for wanted in [0, 1, 2, 16, 132, 264, 1024] {
                let ranges = Ranges::new(tiles, wanted);
                assert!(ranges.count * ranges.tiles_each >= tiles, "{tiles}: {ranges:?}");
                assert!((ranges.count - 1) * ranges.tiles_each < tiles, "{tiles}: {ranges:?}");
                assert!((1..=wanted.max(1)).contains(&ranges.count), "{tiles}: {ranges:?}");
            }
        }
        assert_eq!(Ranges::new(0, 7).count, 0);
    }
}
