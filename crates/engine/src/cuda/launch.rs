//! Safe-looking doors to our kernels: one method per kernel, with its types, and the shape of its launch.
//!
//! Tensors are device pointers; 0 is a tensor that is not there. What a method reads and writes is said in its .cu file.
//! Callers promise, by passing a pointer, that it covers the values the kernel touches; the network's plan sees to that.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, result};

use super::{Cuda, failed};
use crate::{Result, Sgd, Shape, Window};

/// A place in device memory, 0 for none.
pub(super) type Pointer = u64;

/// Threads of a block where nothing speaks for another number.
const BLOCK: u32 = 256;

/// Threads of a block that sums over rows.
const REDUCTION_BLOCK: u32 = 512;

/// Blocks that a sum over rows aims at: two for each multiprocessor of the largest GPUs, since each costs the second
/// stage its time.
const REDUCTION_BLOCKS: u32 = 264;

/// Channels and lanes of a block that sums over chunks.
const FINISH: [u32; 2] = [8, 32];

/// Launches a kernel with these arguments, whose types must be the kernel's.
macro_rules! launch {
    ($self:ident.$function:ident, $grid:expr, $block:expr, $($argument:expr),+ $(,)?) => {
        $self.launch(
            &$self.$function,
            $grid,
            $block,
            &mut [$((&raw const $argument).cast_mut().cast::<c_void>()),+],
        )
    };
}

macro_rules! kernels {
    ($($file:literal: $($name:ident),+;)+) => {
        /// All kernels of a network, loaded.
        pub(super) struct Kernels {
            stream: Arc<CudaStream>,
            $($($name: CudaFunction,)+)+
        }

        impl Kernels {
            pub(super) fn load(cuda: &Cuda, stream: &Arc<CudaStream>) -> Result<Self> {
                Ok(Kernels {
                    stream: stream.clone(),
                    $($($name: cuda.function($file, stringify!($name))?,)+)+
                })
            }
        }
    };
}

kernels! {
    "elementwise": narrow, widen, finish, pass_gradient, dropout;
    "batch_norm": statistics_8, statistics_1, backward_sums_8, backward_sums_1, sums_8, sums_1, statistics_finish,
        running_scale, apply, backward_finish, sums_finish, backward_values;
    "pool": max_pool, max_pool_backward, global_average, global_average_backward, l2_normalise, l2_normalise_backward;
    "convolution": direct_forward, direct_input_gradient, direct_weight_gradient;
    "sgd": set_settings, set_step, sgd;
}

/// A window over pictures, as pool.cu has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Sliding {
    input: [u32; 3],
    output: [u32; 2],
    window: [u32; 6],
}

/// The same with output channels, as convolution.cu has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Windows {
    input: [u32; 3],
    output: [u32; 3],
    window: [u32; 6],
}

/// The optimiser's settings, as sgd.cu has them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Settings {
    rate: f32,
    momentum: f32,
    decay: f32,
    nesterov: u32,
}

fn three(s: Shape) -> [u32; 3] {
    [s.height, s.width, s.channels].map(|v| v as u32)
}

fn six(w: Window) -> [u32; 6] {
    let [a, b, c] = [w.kernel, w.stride, w.padding];
    [a[0], a[1], b[0], b[1], c[0], c[1]].map(|v| v as u32)
}

/// How rows are cut for a sum over them: a choice that depends on the shape alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    rows: u32,
    channels: u32,
    /// Eight channels a thread, or one.
    wide: bool,
    block: [u32; 2],
    grid: [u32; 2],
    chunk_rows: u32,
}

impl Reduction {
    pub(super) fn new(rows: usize, channels: usize) -> Self {
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
    pub(super) fn partials(&self) -> usize {
        2 * self.grid[1] as usize * self.channels as usize
    }
}

/// A batch norm's tensors beside the activations: parameters, running statistics, and seven rows of channels that its
/// passes share.
#[derive(Clone, Copy)]
pub(super) struct NormTensors {
    pub(super) gamma: Pointer,
    pub(super) beta: Pointer,
    pub(super) running_mean: Pointer,
    pub(super) running_variance: Pointer,
    pub(super) saved: Pointer,
}

impl Kernels {
    fn launch(
        &self,
        function: &CudaFunction,
        grid: [u32; 2],
        block: [u32; 2],
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        // SAFETY: every caller is a method below that passes what its kernel declares, in order; pointers are the
        // callers' promise.
        let launched = unsafe {
            result::launch_kernel(
                function.cu_function(),
                (grid[0], grid[1], 1),
                (block[0], block[1], 1),
                0,
                self.stream.cu_stream(),
                arguments,
            )
        };
        launched.map_err(|e| failed("starting a kernel", e))
    }

    /// y = x, from f32 to activations.
    pub(super) fn narrow(&self, x: Pointer, len: usize, y: Pointer) -> Result<()> {
        let n = len as u64;
        launch!(self.narrow, eights(len), [BLOCK, 1], x, n, y)
    }

    /// y = x, from activations to f32.
    pub(super) fn widen(&self, x: Pointer, len: usize, y: Pointer) -> Result<()> {
        let n = len as u64;
        launch!(self.widen, eights(len), [BLOCK, 1], x, n, y)
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
        launch!(
            self.finish,
            eights(len),
            [BLOCK, 1],
            x,
            bias,
            residual,
            relu,
            c,
            n,
            y
        )
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
        launch!(
            self.pass_gradient,
            eights(len),
            [BLOCK, 1],
            y,
            dy,
            add,
            n,
            dx
        )
    }

    /// y (+)= dropout of x; `step` is a place that holds the step.
    pub(super) fn dropout(
        &self,
        x: Pointer,
        layer: usize,
        step: Pointer,
        p: f32,
        accumulate: bool,
        len: usize,
        y: Pointer,
    ) -> Result<()> {
        let (layer, add, n) = (layer as u32, i32::from(accumulate), len as u64);
        launch!(
            self.dropout,
            eights(len),
            [BLOCK, 1],
            x,
            layer,
            step,
            p,
            add,
            n,
            y
        )
    }

    /// Batch statistics of x into `t.saved`; moves the running ones.
    pub(super) fn statistics(
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
    pub(super) fn running_scale(
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
    pub(super) fn apply(
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
            eights(len),
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
    pub(super) fn norm_backward(
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
        let grid = eights(n as usize);
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
    pub(super) fn sums(
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

    pub(super) fn max_pool(
        &self,
        x: Pointer,
        [input, output]: [Shape; 2],
        window: Window,
        batch: usize,
        y: Pointer,
    ) -> Result<()> {
        let (s, len) = (sliding(input, output, window), batch * output.len());
        let n = len as u64;
        launch!(self.max_pool, ones(len), [BLOCK, 1], x, s, n, y)
    }

    pub(super) fn max_pool_backward(
        &self,
        [x, y, dy]: [Pointer; 3],
        [input, output]: [Shape; 2],
        window: Window,
        batch: usize,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let (s, len) = (sliding(input, output, window), batch * input.len());
        let (n, add) = (len as u64, i32::from(accumulate));
        launch!(
            self.max_pool_backward,
            ones(len),
            [BLOCK, 1],
            x,
            y,
            dy,
            s,
            n,
            add,
            dx
        )
    }

    pub(super) fn global_average(
        &self,
        x: Pointer,
        input: Shape,
        batch: usize,
        y: Pointer,
    ) -> Result<()> {
        let (pixels, c) = (input.pixels() as u32, input.channels as u32);
        let len = batch * input.channels;
        let n = len as u64;
        launch!(
            self.global_average,
            ones(len),
            [BLOCK, 1],
            x,
            pixels,
            c,
            n,
            y
        )
    }

    pub(super) fn global_average_backward(
        &self,
        dy: Pointer,
        input: Shape,
        batch: usize,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let (pixels, c) = (input.pixels() as u32, input.channels as u32);
        let len = batch * input.len();
        let (n, add) = (len as u64, i32::from(accumulate));
        launch!(
            self.global_average_backward,
            ones(len),
            [BLOCK, 1],
            dy,
            pixels,
            c,
            n,
            add,
            dx
        )
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
        launch!(
            self.l2_normalise,
            [rows as u32, 1],
            [128, 1],
            x,
            dim,
            y,
            wide
        )
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
            [rows as u32, 1],
            [128, 1],
            x,
            dy,
            wide,
            dim,
            add,
            dx
        )
    }

    pub(super) fn direct_forward(
        &self,
        [x, w]: [Pointer; 2],
        [input, output]: [Shape; 2],
        window: Window,
        batch: usize,
        y: Pointer,
    ) -> Result<()> {
        let (s, len) = (windows(input, output, window), batch * output.len());
        let n = len as u64;
        launch!(self.direct_forward, ones(len), [BLOCK, 1], x, w, s, n, y)
    }

    pub(super) fn direct_input_gradient(
        &self,
        [w, dy]: [Pointer; 2],
        [input, output]: [Shape; 2],
        window: Window,
        batch: usize,
        accumulate: bool,
        dx: Pointer,
    ) -> Result<()> {
        let (s, len) = (windows(input, output, window), batch * input.len());
        let (n, add) = (len as u64, i32::from(accumulate));
        launch!(
            self.direct_input_gradient,
            ones(len),
            [BLOCK, 1],
            w,
            dy,
            s,
            n,
            add,
            dx
        )
    }

    pub(super) fn direct_weight_gradient(
        &self,
        [x, dy]: [Pointer; 2],
        [input, output]: [Shape; 2],
        window: Window,
        batch: usize,
        dw: Pointer,
    ) -> Result<()> {
        let s = windows(input, output, window);
        let [kh, kw] = window.kernel;
        let weights = (output.channels * kh * kw * input.channels) as u32;
        let batch = batch as u32;
        launch!(
            self.direct_weight_gradient,
            [weights, 1],
            [128, 1],
            x,
            dy,
            s,
            batch,
            dw
        )
    }

    /// Writes the optimiser's settings to device memory.
    pub(super) fn set_settings(&self, sgd: &Sgd, settings: Pointer) -> Result<()> {
        let given = Settings {
            rate: sgd.rate,
            momentum: sgd.momentum,
            decay: sgd.decay,
            nesterov: u32::from(sgd.nesterov),
        };
        launch!(self.set_settings, [1, 1], [1, 1], given, settings)
    }

    /// Writes the step's number to device memory.
    pub(super) fn set_step(&self, given: u64, step: Pointer) -> Result<()> {
        launch!(self.set_step, [1, 1], [1, 1], given, step)
    }

    pub(super) fn sgd(
        &self,
        settings: Pointer,
        [gradients, narrow_gradients]: [Pointer; 2],
        matrices: usize,
        len: usize,
        [weights, momentum, copies]: [Pointer; 3],
    ) -> Result<()> {
        let (first, n) = (matrices as u64, len as u64);
        let grid = [(len as u32).div_ceil(4 * BLOCK), 1];
        launch!(
            self.sgd,
            grid,
            [BLOCK, 1],
            settings,
            gradients,
            narrow_gradients,
            first,
            n,
            weights,
            momentum,
            copies,
        )
    }
}

/// Blocks for as many threads as there are runs of eight values.
fn eights(len: usize) -> [u32; 2] {
    [len.div_ceil(8).div_ceil(BLOCK as usize).max(1) as u32, 1]
}

/// Blocks for a thread a value.
fn ones(len: usize) -> [u32; 2] {
    [len.div_ceil(BLOCK as usize).max(1) as u32, 1]
}

fn sliding(input: Shape, output: Shape, window: Window) -> Sliding {
    Sliding {
        input: three(input),
        output: [output.height as u32, output.width as u32],
        window: six(window),
    }
}

fn windows(input: Shape, output: Shape, window: Window) -> Windows {
    Windows {
        input: three(input),
        output: three(output),
        window: six(window),
    }
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
