//! Launches of batch_norm.cu, and how sums over rows are cut.

use std::ffi::c_void;

use super::{BLOCK, Kernels, Pointer};
use crate::Result;

/// Threads of a block that sums over rows.
const REDUCTION_BLOCK: u32 = 512;

/// Blocks that a sum over rows aims at: two for each multiprocessor of the largest GPUs, since each costs the second
/// stage its time.
const REDUCTION_BLOCKS: u32 = 264;

/// Channels and lanes of a block that sums over chunks.
const FINISH: [u32; 2] = [8, 32];

/// Values that a block of `apply` and `backward_values` takes: two tiles.
const TWO_TILES: usize = 2 * 8 * BLOCK as usize;

/// How rows are cut for a sum over them: a choice that depends on the shape alone.
#[derive(Clone, Copy, Debug)]
pub(in crate::cuda) struct Reduction {
    rows: u32,
    channels: u32,
    /// Eight channels a thread, or one.
    wide: bool,
    block: [u32; 2],
    grid: [u32; 2],
    chunk_rows: u32,
}

impl Reduction {
    pub(in crate::cuda) fn new(rows: usize, channels: usize) -> Self {
        let (rows, channels) = (rows as u32, channels as u32);
        let wide = channels.is_multiple_of(8);
        let groups = if wide { channels / 8 } else { channels };
        let across = groups.next_power_of_two().min(32);
        let down = REDUCTION_BLOCK / across;
        let blocks = groups.div_ceil(across);
        let most = (REDUCTION_BLOCKS / blocks).max(1);
        let chunk_rows = rows.div_ceil(rows.div_ceil(4 * down).min(most));
        Reduction {
            rows,
            channels,
            wide,
            block: [across, down],
            grid: [blocks, rows.div_ceil(chunk_rows)],
            chunk_rows,
        }
    }

    /// Values of scratch memory it needs.
    pub(in crate::cuda) fn partials(&self) -> usize {
        2 * self.grid[1] as usize * self.channels as usize
    }
}

/// A batch norm's tensors beside the activations: parameters, running statistics, and seven rows of channels that its
/// passes share.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct NormTensors {
    pub(in crate::cuda) gamma: Pointer,
    pub(in crate::cuda) beta: Pointer,
    pub(in crate::cuda) running_mean: Pointer,
    pub(in crate::cuda) running_variance: Pointer,
    pub(in crate::cuda) saved: Pointer,
}

impl Kernels {
    /// Batch statistics of x into `t.saved`; moves the running ones.
    pub(in crate::cuda) fn statistics(
        &self,
        r: &Reduction,
        x: Pointer,
        norm: crate::Norm,
        t: &NormTensors,
        partials: Pointer,
    ) -> Result<()> {
        let none: Pointer = 0;
        let (rows, channels) = (r.rows, r.channels);
        if r.wide {
            launch!(
                self.statistics_8,
                r.grid,
                r.block,
                x,
                none,
                none,
                none,
                rows,
                channels,
                r.chunk_rows,
                partials
            )?;
        } else {
            launch!(
                self.statistics_1,
                r.grid,
                r.block,
                x,
                none,
                none,
                none,
                rows,
                channels,
                r.chunk_rows,
                partials
            )?;
        }
        launch!(
            self.statistics_finish,
            [channels.div_ceil(FINISH[0]), 1],
            FINISH,
            partials,
            r.grid[1],
            x,
            rows,
            channels,
            norm.epsilon,
            norm.momentum,
            t.gamma,
            t.beta,
            t.running_mean,
            t.running_variance,
            t.saved,
        )
    }

    /// Scale and shift of the running statistics into `t.saved`.
    pub(in crate::cuda) fn running_scale(
        &self,
        channels: usize,
        epsilon: f32,
        t: &NormTensors,
    ) -> Result<()> {
        let c = channels as u32;
        launch!(
            self.running_scale,
            [c.div_ceil(BLOCK), 1],
            [BLOCK, 1],
            c,
            epsilon,
            t.gamma,
            t.beta,
            t.running_mean,
            t.running_variance,
            t.saved,
        )
    }

    /// y = x·scale + shift (+ residual), then ReLU.
    pub(in crate::cuda) fn apply(
        &self,
        x: Pointer,
        residual: Pointer,
        saved: Pointer,
        relu: bool,
        channels: usize,
        len: usize,
        y: Pointer,
    ) -> Result<()> {
        let (relu, c, n) = (i32::from(relu), channels as u32, len as u64);
        launch!(
            self.apply,
            two_tiles(len),
            [BLOCK, 1],
            x,
            residual,
            saved,
            relu,
            c,
            n,
            y
        )
    }

    /// dγ and dβ, then dy in place and the residual's gradient, if it is wanted, (+)=.
    pub(in crate::cuda) fn norm_backward(
        &self,
        r: &Reduction,
        x: Pointer,
        y: Pointer,
        dy: Pointer,
        t: &NormTensors,
        partials: Pointer,
        [dgamma, dbeta]: [Pointer; 2],
        (residual, accumulate): (Pointer, bool),
    ) -> Result<()> {
        let (rows, c, mean) = (r.rows, r.channels, t.saved);
        if r.wide {
            launch!(
                self.backward_sums_8,
                r.grid,
                r.block,
                x,
                y,
                dy,
                mean,
                rows,
                c,
                r.chunk_rows,
                partials
            )?;
        } else {
            launch!(
                self.backward_sums_1,
                r.grid,
                r.block,
                x,
                y,
                dy,
                mean,
                rows,
                c,
                r.chunk_rows,
                partials
            )?;
        }
        let few = [c.div_ceil(FINISH[0]), 1];
        launch!(
            self.backward_finish,
            few,
            FINISH,
            partials,
            r.grid[1],
            rows,
            c,
            t.gamma,
            t.saved,
            dgamma,
            dbeta,
        )?;
        let n = u64::from(rows) * u64::from(c);
        let add = i32::from(accumulate);
        let grid = two_tiles(n as usize);
        launch!(
            self.backward_values,
            grid,
            [BLOCK, 1],
            x,
            y,
            t.saved,
            c,
            n,
            add,
            residual,
            dy
        )
    }

    /// The sum of dy over its rows.
    pub(in crate::cuda) fn sums(
        &self,
        r: &Reduction,
        dy: Pointer,
        partials: Pointer,
        sums: Pointer,
    ) -> Result<()> {
        let none: Pointer = 0;
        let (rows, c) = (r.rows, r.channels);
        if r.wide {
            launch!(
                self.sums_8,
                r.grid,
                r.block,
                none,
                none,
                dy,
                none,
                rows,
                c,
                r.chunk_rows,
                partials
            )?;
        } else {
            launch!(
                self.sums_1,
                r.grid,
                r.block,
                none,
                none,
                dy,
                none,
                rows,
                c,
                r.chunk_rows,
                partials
            )?;
        }
        launch!(
            self.sums_finish,
            [c.div_ceil(FINISH[0]), 1],
            FINISH,
            partials,
            r.grid[1],
            c,
            sums
        )
    }
}

fn two_tiles(len: usize) -> [u32; 2] {
    [len.div_ceil(TWO_TILES).max(1) as u32, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduction_covers_every_row_and_channel_once() {
        for (rows, channels) in [
            (1, 1),
            (15, 3),
            (131_072, 64),
            (2048, 512),
            (7, 2048),
            (100_001, 17),
        ] {
            let r = Reduction::new(rows, channels);
            let per_thread = if r.wide { 8 } else { 1 };
            assert!(
                (r.grid[0] * r.block[0] * per_thread) as usize >= channels,
                "{r:?}"
            );
            assert!((r.grid[1] * r.chunk_rows) as usize >= rows, "{r:?}");
            assert!(((r.grid[1] - 1) * r.chunk_rows) < rows as u32, "{r:?}");
            assert_eq!(r.block[0] * r.block[1], REDUCTION_BLOCK, "{r:?}");
            assert!(r.block[1].is_power_of_two(), "{r:?}");
        }
    }
}
