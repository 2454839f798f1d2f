//! Launches of norm_on_chip.cu: which tensors the chip can hold, and how they are cut.

use super::norm::{Applied, Gradients, NormTensors, arguments_of};
use super::{Kernels, Pointer};
use crate::Result;
use crate::cuda::{Precision, allow_shared};

/// Threads of a block.
const THREADS: u32 = 512;

/// Channels of a slice, where a tensor has more.
const MOST_WIDTH: u32 = 64;

/// Rows a thread can hold of bf16 tensors: a kernel for each.
const TURNS: [u32; 4] = [2, 4, 8, 16];

/// Values of which the backward kernel keeps the gradients in shared memory too, of the most turns.
const ASIDE: u32 = 8;

/// Bytes of shared memory that the kernels have for their sums.
const FOR_SUMS: u32 = 28 << 10;

/// How a tensor is cut into blocks that are on the chip all at once.
#[derive(Clone, Copy, Debug)]
pub(in crate::cuda) struct OnChip {
    rows: u32,
    channels: u32,
    width: u32,
    chunk_rows: u32,
    /// Slices of channels, chunks of rows.
    grid: [u32; 2],
    /// Index among the kernels.
    kernel: usize,
    /// Bytes of shared memory, forwards and backwards.
    shared: [u32; 2],
}

/// Bytes of shared memory that a kernel of so many turns asks for, forwards and backwards.
fn shared_bytes(turns: u32, precision: Precision) -> [u32; 2] {
    let aside = if turns == 16 { ASIDE } else { 0 };
    let held = if precision == Precision::Bf16 { 16 } else { 32 };
    [turns, turns + aside].map(|rows| rows * THREADS * held)
}

/// Turns of the kernels that a chip can run whose blocks may have so much shared memory. Registers
/// hold half as many values of four bytes.
fn turns(precision: Precision, most_shared: usize) -> impl Iterator<Item = u32> {
    let most = if precision == Precision::Bf16 { 16 } else { 4 };
    let fits = move |t: &u32| {
        let [_, backward] = shared_bytes(*t, precision);
        *t <= most && (backward + FOR_SUMS) as usize <= most_shared
    };
    TURNS.into_iter().take_while(fits)
}

impl OnChip {
    /// Nothing if the chip cannot hold it, or its channels do not fall into slices.
    pub(in crate::cuda) fn new(
        rows: usize,
        channels: usize,
        multiprocessors: usize,
        precision: Precision,
        most_shared: usize,
    ) -> Option<Self> {
        let (rows, channels) = (u32::try_from(rows).ok()?, channels as u32);
        let width = match channels {
            8 | 16 | 32 => channels,
            c if c > 0 && c.is_multiple_of(MOST_WIDTH) => MOST_WIDTH,
            _ => return None,
        };
        let slices = channels / width;
        let most_chunks = multiprocessors as u32 / slices;
        let down = THREADS / (width / 8);
        if most_chunks == 0 || rows == 0 {
            return None;
        }
        let chunk_rows = rows.div_ceil(most_chunks).max(down);
        let kernel = turns(precision, most_shared).position(|t| chunk_rows <= t * down)?;
        Some(OnChip {
            rows,
            channels,
            width,
            chunk_rows,
            grid: [slices, rows.div_ceil(chunk_rows)],
            kernel,
            shared: shared_bytes(TURNS[kernel], precision),
        })
    }

    /// Sums of blocks that it keeps in memory.
    pub(in crate::cuda) fn partials(&self) -> usize {
        2 * self.grid[1] as usize * self.channels as usize
    }
}

/// Where blocks meet: their sums, and counters that nobody else uses.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Meeting {
    pub(in crate::cuda) partials: Pointer,
    pub(in crate::cuda) arrivals: Pointer,
}

impl Kernels {
    /// Statistics, then y = x·scale + shift (+ residual), then ReLU; moves the running statistics.
    /// Writes down which values are above zero, a bit each, where there is a place for it.
    pub(in crate::cuda) fn norm_forward_on_chip(
        &self,
        o: &OnChip,
        norm: crate::Norm,
        t: &NormTensors,
        m: Meeting,
        a: &Applied,
        relu_mask: Pointer,
    ) -> Result<()> {
        let n = arguments_of(norm, o.rows, t);
        let sizes = [o.channels, o.width, o.chunk_rows];
        let results = [m.partials, m.arrivals, a.y, relu_mask];
        let arguments = (a.x, a.residual, n, i32::from(a.relu), sizes, results);
        let function = self.on_chip(o, false);
        let shared = if a.residual == 0 { 0 } else { o.shared[0] };
        self.launch_together(function, o.grid, THREADS, shared, arguments)
    }

    /// See [`Kernels::norm_backward`]; where that reads y, this reads which values were above zero.
    pub(in crate::cuda) fn norm_backward_on_chip(
        &self,
        o: &OnChip,
        norm: crate::Norm,
        t: &NormTensors,
        m: Meeting,
        g: &Gradients,
        relu_mask: Pointer,
    ) -> Result<()> {
        let n = arguments_of(norm, o.rows, t);
        let (relu, add) = (i32::from(g.relu), i32::from(g.accumulate));
        let sizes = [o.channels, o.width, o.chunk_rows];
        let results = [g.residual, g.dy, g.dgamma, g.dbeta, m.partials, m.arrivals];
        let arguments = (g.x, relu_mask, n, relu, sizes, add, results);
        let function = self.on_chip(o, true);
        self.launch_together(function, o.grid, THREADS, o.shared[1], arguments)
    }

    fn on_chip(&self, o: &OnChip, backward: bool) -> &cudarc::driver::CudaFunction {
        &self.on_chip[2 * o.kernel + usize::from(backward)]
    }

    /// The kernels, each direction for each number of turns that the chip can run.
    pub(super) fn load_on_chip(
        cuda: &crate::cuda::Cuda,
    ) -> Result<Vec<cudarc::driver::CudaFunction>> {
        let precision = cuda.precision();
        let mut functions = vec![];
        for turns in turns(precision, cuda.most_shared()?) {
            let [forward, backward] = shared_bytes(turns, precision);
            for (direction, bytes) in [("forward", forward), ("backward", backward)] {
                let name = format!("norm_{direction}_{turns}");
                let function = cuda.function("norm_on_chip", &name)?;
                allow_shared(&function, bytes as usize)?;
                functions.push(function);
            }
        }
        Ok(functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a block of such a chip may have.
    const HOPPER: usize = 227 << 10;

    #[test]
    fn a_cut_covers_every_row_and_channel_once_and_fits() {
        let bf16 = Precision::Bf16;
        for (rows, channels) in
            [(1, 8), (131_072, 64), (32_768, 128), (8192, 256), (2048, 512), (513, 32), (128, 4096)]
        {
            let o = OnChip::new(rows, channels, 132, bf16, HOPPER).unwrap();
            assert!(o.grid[0] * o.grid[1] <= 132, "{o:?}");
            assert_eq!(o.grid[0] * o.width, channels as u32, "{o:?}");
            assert!((o.grid[1] * o.chunk_rows) as usize >= rows, "{o:?}");
            assert!((o.grid[1] - 1) * o.chunk_rows < rows as u32, "{o:?}");
            let held = TURNS[o.kernel] * THREADS / (o.width / 8);
            assert!(o.chunk_rows <= held, "{o:?}");
            assert!((o.shared[1] + FOR_SUMS) as usize <= HOPPER, "{o:?}");
        }
        let cut = |rows, channels, precision| OnChip::new(rows, channels, 132, precision, HOPPER);
        assert!(cut(10, 24, bf16).is_none());
        assert!(cut(10, 64 * 200, bf16).is_none());
        assert!(cut(1 << 20, 64, bf16).is_none());
        assert!(cut(131_072, 64, Precision::F32).is_none());
    }

    #[test]
    fn a_chip_with_less_shared_memory_holds_less() {
        let on = |rows, most| OnChip::new(rows, 64, 84, Precision::Bf16, most);
        for most in [99 << 10, 163 << 10] {
            let half = on(42_000, most).unwrap();
            assert!((half.shared[1] + FOR_SUMS) as usize <= most, "{half:?}");
            assert!(on(84_000, most).is_none());
        }
        assert!(on(84_000, HOPPER).is_some());
        assert!(on(1, 20 << 10).is_none());
    }

    #[test]
    fn numbers_are_the_kernels() {
        let source = include_str!("../kernels/norm_on_chip.cu");
        assert!(source.contains(&format!("#define THREADS {THREADS}\n")));
        assert!(source.contains(&format!("K == 16 ? {ASIDE} : 0")));
        assert!(source.contains(&format!("#define MOST_ACROSS {} ", MOST_WIDTH / 8)));
    }
}
