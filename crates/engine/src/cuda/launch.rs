//! Safe-looking doors to our kernels: one method per kernel, with its types, and the shape of its
//! launch.
//!
//! Tensors are device pointers; 0 is a tensor that is not there. What a method reads and writes is
//! said in its .cu file. Callers promise, by passing a pointer, that it covers the values the
//! kernel touches; the network's plan sees to that.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, result, sys};

use super::{Cuda, Doing};
use crate::ops::LayerKernels;
use crate::{Error, Result};

/// A place in device memory, 0 for none.
pub(crate) type Pointer = u64;

/// Threads of a block where nothing speaks for another number.
pub(super) const BLOCK: u32 = 256;

/// The most blocks side by side that a GPU starts.
const MOST_BLOCKS: u32 = i32::MAX as u32;

mod norm;
mod on_chip;
mod stem;
mod windows;

pub(crate) use windows::Sliding;

pub(super) use norm::{Applied, Gradients, GroupSums, NormTensors, Reduction, Sums};
pub(super) use on_chip::{Meeting, OnChip};

/// What a kernel is given, one argument after the other; their types must be the kernel's.
pub(crate) trait Arguments {
    /// Adds where they lie.
    fn add_to(&self, pointers: &mut Vec<*mut c_void>);

    /// Where they lie, as long as they are not moved.
    fn pointers(&self) -> Vec<*mut c_void> {
        let mut pointers = Vec::with_capacity(16);
        self.add_to(&mut pointers);
        pointers
    }
}

/// Types that are one argument, laid out as kernels have them.
macro_rules! argument {
    ($($kind:ty),+) => {
        $(impl crate::cuda::launch::Arguments for $kind {
            fn add_to(&self, pointers: &mut Vec<*mut std::ffi::c_void>) {
                pointers.push(std::ptr::from_ref(self).cast_mut().cast());
            }
        })+
    };
}
pub(super) use argument;

argument!(u32, i32, u64, f32);

impl<T: Arguments, const N: usize> Arguments for [T; N] {
    fn add_to(&self, pointers: &mut Vec<*mut c_void>) {
        self.iter().for_each(|argument| argument.add_to(pointers));
    }
}

impl<T: Arguments> Arguments for Option<T> {
    fn add_to(&self, pointers: &mut Vec<*mut c_void>) {
        self.iter().for_each(|argument| argument.add_to(pointers));
    }
}

macro_rules! tuples {
    ($($first:ident $($other:ident)*;)+) => {
        $(impl<$first: Arguments, $($other: Arguments),*> Arguments for ($first, $($other,)*) {
            #[expect(non_snake_case, reason = "each value is named as its type")]
            fn add_to(&self, pointers: &mut Vec<*mut c_void>) {
                let ($first, $($other,)*) = self;
                $first.add_to(pointers);
                $($other.add_to(pointers);)*
            }
        })+
    };
}

tuples! {
    A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H;
    A B C D E F G H I; A B C D E F G H I J; A B C D E F G H I J K; A B C D E F G H I J K L;
}

/// Starts a kernel on a stream and waits for nothing. `doing` is what an error says.
pub(super) fn launch(
    stream: &CudaStream,
    kernel: &CudaFunction,
    shape: LaunchConfig,
    doing: &str,
    arguments: impl Arguments,
) -> Result<()> {
    stream.context().bind_to_thread().doing(doing)?;
    let mut arguments_at = arguments.pointers();
    // SAFETY: every caller passes what its kernel declares, in order, and promises that pointers
    // cover what the kernel touches; the arguments outlive the call.
    let launched = unsafe {
        result::launch_kernel(
            kernel.cu_function(),
            shape.grid_dim,
            shape.block_dim,
            shape.shared_mem_bytes,
            stream.cu_stream(),
            &mut arguments_at,
        )
    };
    launched.doing(doing)
}

/// Kernels of some files, loaded.
macro_rules! kernels {
    ($(#[$about:meta])* $kind:ident { $($file:ident: $($name:ident),+;)+ }) => {
        $(#[$about])*
        pub(crate) struct $kind {
            $($(pub(crate) $name: cudarc::driver::CudaFunction,)+)+
        }

        impl $kind {
            pub(crate) fn load(cuda: &crate::cuda::Cuda) -> crate::Result<Self> {
                Ok($kind { $($($name: cuda.function(stringify!($file), stringify!($name))?,)+)+ })
            }
        }
    };
}
pub(crate) use kernels;

/// All kernels of a network, loaded.
pub(crate) struct Kernels {
    stream: Arc<CudaStream>,
    multiprocessors: usize,
    /// Whether kernels may begin before the one before them has ended.
    early: bool,
    on_chip: Vec<CudaFunction>,
    stem: Option<stem::Stem>,
    of: Functions,
    pub(crate) layers: LayerKernels,
}

kernels! {
    /// Those that every network has.
    Functions {
        elementwise: narrow, narrow_padded, gather_rows, widen, noise, finish, pass_gradient;
        batch_norm: statistics_8, statistics_1, backward_sums_8, backward_sums_1, sums_8, sums_1,
            apply, backward_values, apply_columns_8, apply_columns_1, backward_columns_8,
            backward_columns_1, sums_finish, own_statistics, merge_statistics, own_gradients;
        convolution: gather, scatter, direct_forward, direct_input_gradient,
            direct_weight_gradient;
    }
}

impl Kernels {
    pub(super) fn load(cuda: &Cuda, stream: &Arc<CudaStream>) -> Result<Self> {
        Ok(Kernels {
            stream: stream.clone(),
            multiprocessors: cuda.multiprocessors()?,
            early: cuda.starts_early(),
            on_chip: Kernels::load_on_chip(cuda)?,
            stem: stem::Stem::load(cuda)?,
            of: Functions::load(cuda)?,
            layers: LayerKernels::load(cuda)?,
        })
    }

    pub(crate) fn launch(
        &self,
        function: &CudaFunction,
        shape: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        launch(&self.stream, function, shape, "starting a kernel", arguments)
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
        arguments: impl Arguments,
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
        let mut at = arguments.pointers();
        // SAFETY: as in `launch`; the attribute and the arguments outlive the call.
        let launched = unsafe { sys::cuLaunchKernelEx(&config, function, at.as_mut_ptr(), none) };
        launched.result().doing("starting a kernel")
    }

    /// y = x, from f32 to activations.
    pub(super) fn narrow(&self, x: Pointer, len: usize, y: Pointer) -> Result<()> {
        self.launch(&self.of.narrow, eights(len)?, (x, len as u64, y))
    }

    /// So many rows of a matrix, named by `indices`, one after the other.
    pub(super) fn gather_rows(
        &self,
        rows: Pointer,
        indices: Pointer,
        [count, row]: [usize; 2],
        y: Pointer,
    ) -> Result<()> {
        let shape = blocks(count, BLOCK)?;
        self.launch(&self.of.gather_rows, shape, (rows, indices, row as u32, y))
    }

    /// y = x, from f32 to activations, with zeros for channels that x does not have.
    pub(super) fn narrow_padded(
        &self,
        x: Pointer,
        places: usize,
        [from, to]: [usize; 2],
        y: Pointer,
    ) -> Result<()> {
        let arguments = (x, places as u64, from as u32, to as u32, y);
        self.launch(&self.of.narrow_padded, ones(places)?, arguments)
    }

    /// y = x, from activations to f32.
    pub(super) fn widen(&self, x: Pointer, len: usize, y: Pointer) -> Result<()> {
        self.launch(&self.of.widen, eights(len)?, (x, len as u64, y))
    }

    /// y = anything in ±1.
    pub(super) fn noise(&self, len: usize, y: Pointer) -> Result<()> {
        self.launch(&self.of.noise, eights(len)?, (len as u64, y))
    }

    /// y = x + bias + residual, then ReLU.
    pub(crate) fn finish(
        &self,
        x: Pointer,
        bias: Pointer,
        residual: Pointer,
        relu: bool,
        channels: usize,
        len: usize,
        y: Pointer,
    ) -> Result<()> {
        let arguments = (x, bias, residual, i32::from(relu), channels as u32, len as u64, y);
        self.launch(&self.of.finish, eights(len)?, arguments)
    }

    /// dx (+)= dy, where y > 0 if there is a y.
    pub(crate) fn pass_gradient(
        &self,
        y: Pointer,
        dy: Pointer,
        accumulate: bool,
        len: usize,
        dx: Pointer,
    ) -> Result<()> {
        let arguments = (y, dy, i32::from(accumulate), len as u64, dx);
        self.launch(&self.of.pass_gradient, eights(len)?, arguments)
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

/// So many blocks of so many threads.
pub(crate) fn blocks(count: usize, threads: u32) -> Result<LaunchConfig> {
    Ok(shape([side_by_side(count)?, 1, 1], [threads, 1], 0))
}

/// Blocks for as many threads as there are runs of eight values.
pub(crate) fn eights(len: usize) -> Result<LaunchConfig> {
    ones(len.div_ceil(8))
}

/// Blocks for a thread a value.
pub(crate) fn ones(len: usize) -> Result<LaunchConfig> {
    blocks(len.div_ceil(BLOCK as usize), BLOCK)
}

/// Blocks for a warp a row.
pub(super) fn warps(rows: usize) -> Result<LaunchConfig> {
    blocks(rows.div_ceil(BLOCK as usize / 32), BLOCK)
}

/// Blocks of threads, each block with so many bytes of shared memory.
pub(super) fn shape(blocks: [u32; 3], [x, y]: [u32; 2], shared_bytes: usize) -> LaunchConfig {
    let shared_mem_bytes = shared_bytes as u32;
    LaunchConfig { grid_dim: blocks.into(), block_dim: (x, y, 1), shared_mem_bytes }
}

/// Numbers as kernels count, in 32 bits.
pub(super) fn counts<const N: usize>(numbers: [usize; N]) -> Result<[u32; N]> {
    match numbers.iter().max() {
        Some(most) if u32::try_from(*most).is_err() => {
            Err(Error::Plan(format!("{most} values are more than a GPU's kernels can count")))
        }
        Some(_) | None => Ok(numbers.map(|n| n as u32)),
    }
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
        assert_eq!(ones((1 << 32) + 1).unwrap().grid_dim, ((1 << 24) + 1, 1, 1));
        assert_eq!(eights((1 << 32) + 1).unwrap().grid_dim, ((1 << 21) + 1, 1, 1));
    }

    #[test]
    fn more_values_than_can_be_counted_are_refused() {
        assert_eq!(counts([0, u32::MAX as usize]).unwrap(), [0, u32::MAX]);
        assert!(matches!(counts([1, 1 << 32]), Err(Error::Plan(_))));
    }

    #[test]
    fn arguments_are_given_in_their_order_wherever_they_lie() {
        let arguments = ([1_u32, 2], (3_u32, Some([4_u32])), None::<u32>, 5_u32);
        let at = arguments.pointers();
        // SAFETY: each points to a number among the arguments, which live.
        let given: Vec<u32> = at.iter().map(|at| unsafe { at.cast::<u32>().read() }).collect();
        assert_eq!(given, [1, 2, 3, 4, 5]);
    }
}
