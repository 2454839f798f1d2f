//! Launches of batch_norm.cu, and how sums over rows are cut.

use cudarc::driver::{CudaFunction, LaunchConfig};

use super::{Arguments, BLOCK, Kernels, Pointer, argument, shape};
use crate::Result;

/// Threads of a block that sums over rows.
const REDUCTION_BLOCK: u32 = 512;

/// Blocks that a sum over rows aims at: two for each multiprocessor of the largest GPUs.
const REDUCTION_BLOCKS: u32 = 264;

/// Chunks that the last block among them adds up.
const GROUP: u32 = 32;

/// Values that a block of `apply` and `backward_values` takes at a time: two tiles.
const TWO_TILES: usize = 2 * 8 * BLOCK as usize;

/// Blocks of `apply` and `backward_values` on a multiprocessor: each begins with adding up sums, so
/// there are no more than fit at once.
const BLOCKS_EACH: usize = 4;

/// Rows of channels that `backward_values` keeps in shared memory, of which every GPU gives 48 KB.
const SHARED_ROWS: usize = 5;

/// The most channels that fit there; norms with more keep them in registers, a few a thread.
const MOST_SHARED: u32 = (48 << 10) / (4 * SHARED_ROWS as u32);

/// Threads of a block of `apply_columns` and `backward_columns`: across channels, down rows.
const COLUMNS_BLOCK: [u32; 2] = [32, BLOCK / 32];

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

    fn groups(&self) -> u32 {
        self.grid[1].div_ceil(GROUP)
    }

    pub(in crate::cuda) fn channels(&self) -> usize {
        self.channels as usize
    }

    /// Blocks that go over the values by columns: all channels across, down as many as fit at once
    /// or the rows need.
    fn columns(&self, multiprocessors: u32) -> [u32; 2] {
        let [across, down] = COLUMNS_BLOCK;
        let blocks = self.channels.div_ceil(across * if self.wide { 8 } else { 1 });
        let most = (BLOCKS_EACH as u32 * multiprocessors / blocks).max(1);
        [blocks, self.rows.div_ceil(down).min(most)]
    }

    /// Values of each part of [`Sums`] that it needs.
    pub(in crate::cuda) fn sizes(&self) -> [usize; 3] {
        let [across, down] = self.grid.map(|v| v as usize);
        let (channels, groups) = (self.channels as usize, self.groups() as usize);
        [2 * down * channels, 2 * groups * channels, groups * across]
    }
}

/// Where sums over rows are made: of chunks (f32), of groups of chunks (f64), and counters, zero
/// between launches (u32).
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Sums {
    pub(in crate::cuda) chunks: Pointer,
    pub(in crate::cuda) groups: Pointer,
    pub(in crate::cuda) tickets: Pointer,
}

/// Sums of a norm: so many groups of them, over the rows of so many processes.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct GroupSums {
    at: Pointer,
    groups: u32,
    ranks: u32,
}

impl GroupSums {
    /// Those that a reduction has just made, of this process's rows.
    pub(in crate::cuda) fn of(r: &Reduction, sums: &Sums) -> Self {
        GroupSums { at: sums.groups, groups: r.groups(), ranks: 1 }
    }

    /// Those of several processes' rows, put together.
    pub(in crate::cuda) fn of_all(at: Pointer, ranks: usize) -> Self {
        GroupSums { at, groups: 1, ranks: ranks as u32 }
    }
}

/// A batch norm's tensors beside the activations: parameters, running statistics, and four rows of
/// channels that its passes share.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct NormTensors {
    pub(in crate::cuda) gamma: Pointer,
    pub(in crate::cuda) beta: Pointer,
    pub(in crate::cuda) running_mean: Pointer,
    pub(in crate::cuda) running_variance: Pointer,
    pub(in crate::cuda) saved: Pointer,
}

/// The same, as batch_norm.cu has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Norm {
    sums: Pointer,
    groups: u32,
    rows: u32,
    epsilon: f32,
    momentum: f32,
    ranks: u32,
    tensors: [Pointer; 5],
}
argument!(Norm);

/// A norm over so many rows, whose sums nobody has made yet.
pub(super) fn arguments_of(norm: crate::Norm, rows: u32, t: &NormTensors) -> Norm {
    Norm {
        sums: 0,
        groups: 0,
        rows,
        epsilon: norm.epsilon,
        momentum: norm.momentum,
        ranks: 1,
        tensors: [t.gamma, t.beta, t.running_mean, t.running_variance, t.saved],
    }
}

impl Norm {
    fn new(norm: crate::Norm, r: &Reduction, t: &NormTensors, sums: GroupSums) -> Self {
        Norm {
            sums: sums.at,
            groups: sums.groups,
            ranks: sums.ranks,
            ..arguments_of(norm, r.rows, t)
        }
    }
}

/// What goes backwards through a norm: x and dy, which becomes x's gradient in place; y where a
/// residual was added before a ReLU; the parameters' gradients; and the residual's, if it is
/// wanted, (+)=.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Gradients {
    pub(in crate::cuda) x: Pointer,
    pub(in crate::cuda) y: Pointer,
    pub(in crate::cuda) dy: Pointer,
    pub(in crate::cuda) relu: bool,
    pub(in crate::cuda) dgamma: Pointer,
    pub(in crate::cuda) dbeta: Pointer,
    pub(in crate::cuda) residual: Pointer,
    pub(in crate::cuda) accumulate: bool,
}

/// What a norm is applied to: x, and y = norm(x) (+ residual), then ReLU.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Applied {
    pub(in crate::cuda) x: Pointer,
    pub(in crate::cuda) residual: Pointer,
    pub(in crate::cuda) relu: bool,
    pub(in crate::cuda) y: Pointer,
}

impl Kernels {
    /// One of the kernels that sum over rows.
    fn sum_rows(
        &self,
        [wide, narrow]: [&CudaFunction; 2],
        r: &Reduction,
        tensors: [Pointer; 3],
        relu: bool,
        saved: Pointer,
        s: &Sums,
    ) -> Result<()> {
        let function = if r.wide { wide } else { narrow };
        let [across, down] = r.grid;
        let sizes = [r.rows, r.channels, r.chunk_rows];
        let arguments = (tensors, i32::from(relu), saved, sizes, [s.chunks, s.groups, s.tickets]);
        self.launch(function, shape([across, down, 1], r.block, 0), arguments)
    }

    /// Batch statistics of x, as sums that [`Kernels::apply`] takes up.
    pub(in crate::cuda) fn statistics(&self, r: &Reduction, x: Pointer, s: &Sums) -> Result<()> {
        let functions = [&self.of.statistics_8, &self.of.statistics_1];
        self.sum_rows(functions, r, [x, 0, 0], false, 0, s)
    }

    /// y = x·scale + shift (+ residual), then ReLU. In training by the statistics that were summed,
    /// which also move the running ones; else by the running ones.
    pub(in crate::cuda) fn apply(
        &self,
        r: &Reduction,
        norm: crate::Norm,
        t: &NormTensors,
        sums: Option<GroupSums>,
        a: &Applied,
    ) -> Result<()> {
        let n = match sums {
            Some(sums) => Norm::new(norm, r, t, sums),
            None => arguments_of(norm, r.rows, t),
        };
        let (training, relu) = (i32::from(sums.is_some()), i32::from(a.relu));
        let (c, len) = (r.channels, u64::from(r.rows) * u64::from(r.channels));
        if c > MOST_SHARED {
            let functions = [&self.of.apply_columns_8, &self.of.apply_columns_1];
            return self.columns(functions, r, (a.x, a.residual, n, training, relu, c, a.y));
        }
        let arguments = (a.x, a.residual, n, training, relu, c, len, a.y);
        self.launch(&self.of.apply, self.pairs_of_tiles(len, 8 * c), arguments)
    }

    /// What dγ, dβ and dy are made of, as sums that [`Kernels::norm_gradients`] takes up.
    pub(in crate::cuda) fn backward_sums(
        &self,
        r: &Reduction,
        t: &NormTensors,
        s: &Sums,
        g: &Gradients,
    ) -> Result<()> {
        let functions = [&self.of.backward_sums_8, &self.of.backward_sums_1];
        self.sum_rows(functions, r, [g.x, g.y, g.dy], g.relu, t.saved, s)
    }

    /// dγ and dβ, where they are wanted, then dy in place and the residual's gradient.
    pub(in crate::cuda) fn norm_gradients(
        &self,
        r: &Reduction,
        norm: crate::Norm,
        t: &NormTensors,
        sums: GroupSums,
        g: &Gradients,
    ) -> Result<()> {
        let n = Norm::new(norm, r, t, sums);
        let (relu, add) = (i32::from(g.relu), i32::from(g.accumulate));
        let (c, len) = (r.channels, u64::from(r.rows) * u64::from(r.channels));
        let results = [g.residual, g.dy, g.dgamma, g.dbeta];
        if c > MOST_SHARED {
            let functions = [&self.of.backward_columns_8, &self.of.backward_columns_1];
            return self.columns(functions, r, (g.x, g.y, n, relu, c, add, results));
        }
        let shape = self.pairs_of_tiles(len, 4 * SHARED_ROWS as u32 * c);
        let arguments = (g.x, g.y, n, relu, c, len, add, results);
        self.launch(&self.of.backward_values, shape, arguments)
    }

    /// From the sums of [`Kernels::statistics`] to this process's mean and squares, two rows of
    /// f64.
    pub(in crate::cuda) fn own_statistics(
        &self,
        r: &Reduction,
        x: Pointer,
        s: &Sums,
        own: Pointer,
    ) -> Result<()> {
        let arguments = (x, s.groups, r.groups(), r.rows, r.channels, own);
        self.each_channel(&self.of.own_statistics, r, arguments)
    }

    /// From those of all processes, in rank order, to sums over all rows.
    pub(in crate::cuda) fn merge_statistics(
        &self,
        r: &Reduction,
        x: Pointer,
        all: Pointer,
        ranks: usize,
        sums: Pointer,
    ) -> Result<()> {
        let arguments = (x, all, ranks as u32, r.rows, r.channels, sums);
        self.each_channel(&self.of.merge_statistics, r, arguments)
    }

    /// From the sums of [`Kernels::backward_sums`] to this process's dγ and dβ, and to the two rows
    /// of f64 they are made of.
    pub(in crate::cuda) fn own_gradients(
        &self,
        r: &Reduction,
        t: &NormTensors,
        s: &Sums,
        g: &Gradients,
        own: Pointer,
    ) -> Result<()> {
        let arguments = (s.groups, r.groups(), r.channels, t.saved, g.dgamma, g.dbeta, own);
        self.each_channel(&self.of.own_gradients, r, arguments)
    }

    /// A thread for each channel.
    fn each_channel(
        &self,
        function: &CudaFunction,
        r: &Reduction,
        arguments: impl Arguments,
    ) -> Result<()> {
        let shape = shape([r.channels.div_ceil(BLOCK), 1, 1], [BLOCK, 1], 0);
        self.launch(function, shape, arguments)
    }

    /// The sum of dy over its rows.
    pub(in crate::cuda) fn sums(
        &self,
        r: &Reduction,
        dy: Pointer,
        s: &Sums,
        sums: Pointer,
    ) -> Result<()> {
        self.sum_rows([&self.of.sums_8, &self.of.sums_1], r, [0, 0, dy], false, 0, s)?;
        self.each_channel(&self.of.sums_finish, r, (s.groups, r.groups(), r.channels, sums))
    }

    /// One of the kernels that go down columns of channels.
    fn columns(
        &self,
        [wide, narrow]: [&CudaFunction; 2],
        r: &Reduction,
        arguments: impl Arguments,
    ) -> Result<()> {
        let function = if r.wide { wide } else { narrow };
        let [across, down] = r.columns(self.multiprocessors as u32);
        self.launch(function, shape([across, down, 1], COLUMNS_BLOCK, 0), arguments)
    }

    /// As many blocks as fit at once, each with as many pairs of tiles as the others, and with
    /// so many bytes of shared memory.
    fn pairs_of_tiles(&self, len: u64, shared_bytes: u32) -> LaunchConfig {
        let pairs = (len as usize).div_ceil(TWO_TILES).max(1);
        let turns = pairs.div_ceil(BLOCKS_EACH * self.multiprocessors);
        shape([pairs.div_ceil(turns) as u32, 1, 1], [BLOCK, 1], shared_bytes as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduction_covers_every_row_and_channel_once() {
        for (rows, channels) in
            [(1, 1), (15, 3), (131_072, 64), (2048, 512), (7, 2048), (100_001, 17)]
        {
            let r = Reduction::new(rows, channels);
            let per_thread = if r.wide { 8 } else { 1 };
            assert!((r.grid[0] * r.block[0] * per_thread) as usize >= channels, "{r:?}");
            assert!((r.grid[1] * r.chunk_rows) as usize >= rows, "{r:?}");
            assert!(((r.grid[1] - 1) * r.chunk_rows) < rows as u32, "{r:?}");
            assert_eq!(r.block[0] * r.block[1], REDUCTION_BLOCK, "{r:?}");
            assert!(r.block[1].is_power_of_two(), "{r:?}");
            assert!(r.groups() * GROUP >= r.grid[1], "{r:?}");
        }
    }

    #[test]
    fn columns_cover_every_channel() {
        for (rows, channels) in [(128, 4096), (1, 2459), (100_000, 4104), (7, 1 << 20)] {
            let r = Reduction::new(rows, channels);
            let [across, down] = r.columns(132);
            let per_thread = if r.wide { 8 } else { 1 };
            assert!((across * 32 * per_thread) as usize >= channels, "{r:?}");
            assert!(((across - 1) * 32 * per_thread) < channels as u32, "{r:?}");
            assert!(down >= 1 && (down - 1) * 8 < rows as u32, "{r:?}");
        }
    }

    #[test]
    fn groups_are_the_kernels() {
        let source = include_str!("../kernels/batch_norm.cu");
        assert!(source.contains(&format!("#define GROUP {GROUP}\n")));
        assert!(source.contains(&format!("#define TILE {}\n", TWO_TILES / 2)));
    }
}
