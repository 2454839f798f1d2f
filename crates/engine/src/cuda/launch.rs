//! Safe-looking doors to our kernels: one method per kernel, with its types, and the shape of its
//! launch.
//!
//! Tensors are device pointers; 0 is a tensor that is not there. What a method reads and writes is
//! said in its .cu file. Callers promise, by passing a pointer, that it covers the values the
//! kernel touches; the network's plan sees to that.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, result, sys};

use super::{Cuda, failed};
use crate::{Activation, DropoutKey, Error, Result};

/// A place in device memory, 0 for none.
pub(super) type Pointer = u64;

/// Threads of a block where nothing speaks for another number.
const BLOCK: u32 = 256;

/// The most blocks side by side that a GPU starts.
const MOST_BLOCKS: u32 = i32::MAX as u32;

/// A kernel's arguments, whose types must be the kernel's; they must outlive the launch.
macro_rules! arguments {
    ($($argument:expr),+ $(,)?) => {
        [$((&raw const $argument).cast_mut().cast::<c_void>()),+]
    };
}

/// Launches a kernel with these arguments.
macro_rules! launch {
    ($self:ident.$function:ident, $grid:expr, $block:expr, $($argument:expr),+ $(,)?) => {
        $self.launch(&$self.$function, $grid, $block, 0, &mut arguments!($($argument),+))
    };
}

mod norm;
mod on_chip;
mod stem;
mod windows;

pub(super) use norm::{Applied, Gradients, GroupSums, NormTensors, Reduction, Sums};
pub(super) use on_chip::{Meeting, OnChip};
pub(super) use windows::Sliding;

macro_rules! kernels {
    ($($file:literal: $($name:ident),+;)+) => {
        /// All kernels of a network, loaded.
        pub(super) struct Kernels {
            stream: Arc<CudaStream>,
            multiprocessors: usize,
            /// Whether kernels may begin before the one before them has ended.
            early: bool,
            on_chip: Vec<CudaFunction>,
            stem: Option<stem::Stem>,
            $($($name: CudaFunction,)+)+
        }

        impl Kernels {
            pub(super) fn load(cuda: &Cuda, stream: &Arc<CudaStream>) -> Result<Self> {
                Ok(Kernels {
                    stream: stream.clone(),
                    multiprocessors: cuda.multiprocessors()?,
                    early: cuda.starts_early(),
                    on_chip: Kernels::load_on_chip(cuda)?,
                    stem: stem::Stem::load(cuda)?,
                    $($($name: cuda.function($file, stringify!($name))?,)+)+
                })
            }
        }
    };
}

kernels! {
    "elementwise": narrow, narrow_padded, gather_rows, widen, noise, finish, pass_gradient, activation, activation_backward, dropout,
        channels, lab, lab_backward;
    "batch_norm": statistics_8, statistics_1, backward_sums_8, backward_sums_1, sums_8, sums_1, apply,
        backward_values, apply_columns_8, apply_columns_1, backward_columns_8, backward_columns_1, sums_finish,
        own_statistics, merge_statistics, own_gradients;
    "pool": max_pool_8, max_pool_1, max_pool_backward_8, max_pool_backward_1, global_average, global_average_backward, upsample,
        upsample_backward, l2_normalise, l2_normalise_backward;
    "convolution": gather, scatter, direct_forward, direct_input_gradient, direct_weight_gradient;
}

impl Kernels {
    fn launch(
        &self,
        function: &CudaFunction,
        grid: [u32; 2],
        block: [u32; 2],
        shared_bytes: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        // SAFETY: every caller is a method below that passes what its kernel declares, in order;
        // pointers are the callers' promise.
        let launched = unsafe {
            result::launch_kernel(
                function.cu_function(),
                (grid[0], grid[1], 1),
                (block[0], block[1], 1),
                shared_bytes,
                self.stream.cu_stream(),
                arguments,
            )
        };
        launched.map_err(|e| failed("starting a kernel", e))
    }

    /// Launches a kernel whose blocks wait for each other, a block or none on every multiprocessor.
    ///
    /// It begins before the kernel before it has quite ended, where it knows how to wait for that
    /// one. That they get onto the chip together, and no other such kernel with them, is then seen
    /// to by the order of the one stream they go to; else it is the driver's promise.
    fn launch_together(
        &self,
        function: &CudaFunction,
        grid: [u32; 2],
        threads: u32,
        shared_bytes: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        use sys::CUlaunchAttributeID as Id;
        // SAFETY: an attribute is plain numbers.
        let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
        match self.early {
            true => {
                attribute.id = Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
                attribute.value.programmaticStreamSerializationAllowed = 1;
            }
            false => {
                attribute.id = Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
                attribute.value.cooperative = 1;
            }
        }
        let config = sys::CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared_bytes,
            hStream: self.stream.cu_stream(),
            attrs: &mut attribute,
            numAttrs: 1,
        };
        let (function, none) = (function.cu_function(), std::ptr::null_mut());
        // SAFETY: as above; the attribute outlives the call.
        let launched =
            unsafe { sys::cuLaunchKernelEx(&config, function, arguments.as_mut_ptr(), none) };
        let launched = launched.result();
        launched.map_err(|e| failed("starting a kernel", e))
    }

    /// y = x, from f32 to activations.
    pub(super) fn narrow(&self, x: Pointer, len: usize, y: Pointer) -> Result<()> {
        let n = len as u64;
        launch!(self.narrow, eights(len)?, [BLOCK, 1], x, n, y)
    }

    /// So many rows of a matrix, named by `indices`, one after the other.
    pub(super) fn gather_rows(
        &self,
        rows: Pointer,
        indices: Pointer,
        [count, row]: [usize; 2],
        y: Pointer,
    ) -> Result<()> {
        let (grid, row) = ([side_by_side(count)?, 1], row as u32);
        launch!(self.gather_rows, grid, [BLOCK, 1], rows, indices, row, y)
    }

    /// y = x, from f32 to activations, with zeros for channels that x does not have.
    pub(super) fn narrow_padded(
        &self,
        x: Pointer,
        places: usize,
        [from, to]: [usize; 2],
        y: Pointer,
    ) -> Result<()> {
        let (n, from, to) = (places as u64, from as u32, to as u32);
        launch!(self.narrow_padded, ones(places)?, [BLOCK, 1], x, n, from, to, y)
    }

    /// y = x, from activations to f32.
    pub(super) fn widen(&self, x: Pointer, len: usize, y: Pointer) -> Result<()> {
        let n = len as u64;
        launch!(self.widen, eights(len)?, [BLOCK, 1], x, n, y)
    }

    /// y = anything in ±1.
    pub(super) fn noise(&self, len: usize, y: Pointer) -> Result<()> {
        let n = len as u64;
        launch!(self.noise, eights(len)?, [BLOCK, 1], n, y)
    }

    /// y = x + bias + residual, then ReLU.
    pub(super) fn finish(
        &self,
        x: Pointer,
        bias: Pointer,
        residual: Pointer,
        relu: bool,
        channels: usize,
        len: usize,
        y: Pointer,
    ) -> Result<()> {
        let (relu, c, n) = (i32::from(relu), channels as u32, len as u64);
        launch!(self.finish, eights(len)?, [BLOCK, 1], x, bias, residual, relu, c, n, y)
    }

    /// dx (+)= dy, where y > 0 if there is a y.
    pub(super) fn pass_gradient(
        &self,
        y: Pointer,
        dy: Pointer,
        accumulate: bool,
        len: usize,
        dx: Pointer,
    ) -> Result<()> {
        let (add, n) = (i32::from(accumulate), len as u64);
        launch!(self.pass_gradient, eights(len)?, [BLOCK, 1], y, dy, add, n, dx)
    }

    /// y = f(x).
    pub(super) fn activation(
        &self,
        f: Activation,
        x: Pointer,
        len: usize,
        y: Pointer,
    ) -> Result<()> {
        let ((tanh, leak), n) = (words(f), len as u64);
        launch!(self.activation, eights(len)?, [BLOCK, 1], x, tanh, leak, n, y)
    }

    /// dx (+)= dy times the slope of f where its result is y.
    pub(super) fn activation_backward(
        &self,
        f: Activation,
        [y, dy]: [Pointer; 2],
        accumulate: bool,
        len: usize,
        dx: Pointer,
    ) -> Result<()> {
        let ((tanh, leak), n) = (words(f), len as u64);
        let (grid, add) = (eights(len)?, i32::from(accumulate));
        let arguments = arguments!(y, dy, tanh, leak, add, n, dx);
        let function = &self.activation_backward;
        self.launch(function, grid, [BLOCK, 1], 0, &mut { arguments })
    }

    /// y (+)= dropout of x; `step` is a place that holds the step.
    pub(super) fn dropout(
        &self,
        x: Pointer,
        key: DropoutKey,
        (step, rank): (Pointer, usize),
        p: f32,
        accumulate: bool,
        len: usize,
        y: Pointer,
    ) -> Result<()> {
        let (seed, words) = (key.seed, key.block());
        let (add, n) = (i32::from(accumulate), len as u64);
        // Tensors of so many other processes, as long as this one, come before it.
        let before = (rank * len.div_ceil(4)) as u64;
        launch!(self.dropout, eights(len)?, [BLOCK, 1], x, seed, words, step, before, p, add, n, y)
    }

    /// Channel c of y (+)= channel c + `first` of x where there is one, else zero.
    pub(super) fn channels(
        &self,
        x: Pointer,
        [from, to]: [usize; 2],
        first: isize,
        accumulate: bool,
        len: usize,
        y: Pointer,
    ) -> Result<()> {
        let (grid, first, add, n) = (ones(len)?, first as i32, i32::from(accumulate), len as u64);
        let (from, to) = (from as u32, to as u32);
        launch!(self.channels, grid, [BLOCK, 1], x, from, first, to, add, n, y)
    }

    /// y = Lab of x, normalised by mean and std.
    pub(super) fn lab(
        &self,
        x: Pointer,
        [mean, std]: [Pointer; 2],
        places: usize,
        y: Pointer,
    ) -> Result<()> {
        let (grid, n) = (ones(places)?, places as u64);
        launch!(self.lab, grid, [BLOCK, 1], x, mean, std, n, y)
    }

    /// dx (+)= the gradient of Lab's input.
    pub(super) fn lab_backward(
        &self,
        [x, dy]: [Pointer; 2],
        [mean, std]: [Pointer; 2],
        accumulate: bool,
        places: usize,
        dx: Pointer,
    ) -> Result<()> {
        let (grid, add, n) = (ones(places)?, i32::from(accumulate), places as u64);
        launch!(self.lab_backward, grid, [BLOCK, 1], x, dy, mean, std, add, n, dx)
    }

    pub(super) fn l2_normalise(
        &self,
        x: Pointer,
        rows: usize,
        dim: usize,
        y: Pointer,
        wide: Pointer,
    ) -> Result<()> {
        let dim = dim as u32;
        launch!(self.l2_normalise, [side_by_side(rows)?, 1], [128, 1], x, dim, y, wide)
    }

    pub(super) fn l2_normalise_backward(
        &self,
        x: Pointer,
        [dy, wide]: [Pointer; 2],
        rows: usize,
        dim: usize,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let (dim, add) = (dim as u32, i32::from(accumulate));
        launch!(
            self.l2_normalise_backward,
            [side_by_side(rows)?, 1],
            [128, 1],
            x,
            dy,
            wide,
            dim,
            add,
            dx
        )
    }
}

/// Whether it is the tangent, and what a ReLU leaks.
fn words(f: Activation) -> (i32, f32) {
    match f {
        Activation::LeakyRelu(leak) => (0, leak),
        Activation::Tanh => (1, 0.0),
    }
}

/// So many blocks side by side, at least one; more than a GPU can count are refused, rather than
/// fewer started.
pub(super) fn side_by_side(blocks: usize) -> Result<u32> {
    match u32::try_from(blocks) {
        Ok(blocks) if blocks <= MOST_BLOCKS => Ok(blocks.max(1)),
        Ok(_) | Err(_) => Err(Error::Plan(format!(
            "{blocks} blocks of a kernel, of which a GPU starts {MOST_BLOCKS} at most: \
             give it fewer values at a time"
        ))),
    }
}

/// Numbers as kernels take them; larger ones are refused, rather than cut off.
pub(super) fn counts<const N: usize>(numbers: [usize; N]) -> Result<[u32; N]> {
    let mut counts = [0; N];
    for (count, number) in counts.iter_mut().zip(numbers) {
        *count = u32::try_from(number).map_err(|_| {
            Error::Plan(format!(
                "{number} rows or values of a row, of which a GPU's kernels count {} at most: \
                 give it fewer at a time",
                u32::MAX
            ))
        })?;
    }
    Ok(counts)
}

/// Blocks for as many threads as there are runs of eight values.
fn eights(len: usize) -> Result<[u32; 2]> {
    ones(len.div_ceil(8))
}

/// Blocks for a thread a value.
fn ones(len: usize) -> Result<[u32; 2]> {
    Ok([side_by_side(len.div_ceil(BLOCK as usize))?, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_blocks_than_can_be_counted_are_refused() {
        for (blocks, expected) in [(0, 1), (1, 1), (i32::MAX as usize, MOST_BLOCKS)] {
            assert_eq!(side_by_side(blocks).unwrap(), expected);
        }
        // Cut to 32 bits the last two would be none and one.
        for blocks in [1 << 31, 1 << 32, (1 << 32) + 1] {
            assert!(matches!(side_by_side(blocks), Err(Error::Plan(_))));
        }
        assert_eq!(counts([0, u32::MAX as usize]).unwrap(), [0, u32::MAX]);
        assert!(matches!(counts([1, (1 << 32) + 1]), Err(Error::Plan(_))));
        assert_eq!(ones((1 << 32) + 1).unwrap(), [(1 << 24) + 1, 1]);
        assert_eq!(eights((1 << 32) + 1).unwrap(), [(1 << 21) + 1, 1]);
    }
}
