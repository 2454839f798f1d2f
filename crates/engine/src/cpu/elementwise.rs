//! ReLU's gradient, add, bias and plain copies: one pass over memory each.

use pulp::Arch;
use rayon::prelude::*;

use super::simd::vectorised;

/// Values a task works on.
pub(crate) const TASK: usize = 64 * 1024;

vectorised! {
    /// out (+)= dy where y > 0 (or everywhere without y), one task.
    pub(crate) fn mask_and_copy<'a>(
        y: Option<&'a [f32]>,
        dy: &'a [f32],
        accumulate: bool,
        out: &'a mut [f32],
    ) {
        match (y, accumulate) {
            (None, false) => out.copy_from_slice(dy),
            (None, true) => {
                for (o, d) in out.iter_mut().zip(dy) {
                    *o += d;
                }
            }
            (Some(y), false) => {
                for ((o, d), y) in out.iter_mut().zip(dy).zip(y) {
                    *o = if *y > 0.0 { *d } else { 0.0 };
                }
            }
            (Some(y), true) => {
                for ((o, d), y) in out.iter_mut().zip(dy).zip(y) {
                    *o += if *y > 0.0 { *d } else { 0.0 };
                }
            }
        }
    }
}

/// The gradient through a copy (an add's input) or a ReLU: out (+)= dy, masked where `y` is given.
pub(crate) fn pass_gradient(
    arch: Arch,
    y: Option<&[f32]>,
    dy: &[f32],
    accumulate: bool,
    out: &mut [f32],
) {
    out.par_chunks_mut(TASK).zip(dy.par_chunks(TASK)).enumerate().for_each(|(task, (out, dy))| {
        let y = y.map(|y| &y[task * TASK..][..dy.len()]);
        mask_and_copy(arch, y, dy, accumulate, out);
    });
}

/// dy is zeroed where y is not positive.
pub(crate) fn mask_in_place(arch: Arch, y: &[f32], dy: &mut [f32]) {
    vectorised! {
        fn task<'a>(y: &'a [f32], dy: &'a mut [f32]) {
            for (d, y) in dy.iter_mut().zip(y) {
                *d = if *y > 0.0 { *d } else { 0.0 };
            }
        }
    }
    let tasks = dy.par_chunks_mut(TASK).zip(y.par_chunks(TASK));
    tasks.for_each(|(dy, y)| task(arch, y, dy));
}

/// The larger of `x` and `floor`, and NaN where `x` is NaN, as in PyTorch: a diverged run must not
/// look healthy. (`f32::max` drops NaN, and takes three vector instructions in place of one.)
#[inline(always)]
pub(crate) fn at_least(floor: f32, x: f32) -> f32 {
    if floor > x { floor } else { x }
}

/// y = a + b.
pub(crate) fn add(arch: Arch, a: &[f32], b: &[f32], y: &mut [f32]) {
    vectorised! {
        fn task<'a>(a: &'a [f32], b: &'a [f32], y: &'a mut [f32]) {
            for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
                *y = a + b;
            }
        }
    }
    let inputs = a.par_chunks(TASK).zip(b.par_chunks(TASK));
    let tasks = y.par_chunks_mut(TASK).zip(inputs);
    tasks.for_each(|(y, (a, b))| task(arch, a, b, y));
}

vectorised! {
    /// y = y + bias (+ residual), then ReLU: what follows a convolution without batch norm, one
    /// task.
    pub(crate) fn finish_plain<'a>(
        bias: Option<&'a [f32]>,
        residual: Option<&'a [f32]>,
        relu: bool,
        channels: usize,
        y: &'a mut [f32],
    ) {
        if let Some(bias) = bias {
            for y in y.chunks_exact_mut(channels) {
                for (y, b) in y.iter_mut().zip(bias) {
                    *y += b;
                }
            }
        }
        if let Some(residual) = residual {
            for (y, r) in y.iter_mut().zip(residual) {
                *y += r;
            }
        }
        if relu {
            for y in y.iter_mut() {
                *y = at_least(0.0, *y);
            }
        }
    }
}

/// The gradient of a bias: the sum of dy over rows, in f64, in order.
pub(crate) fn bias_gradient(dy: &[f32], channels: usize, dbias: &mut [f32]) {
    dbias.par_iter_mut().enumerate().for_each(|(c, d)| {
        let column = dy[c..].iter().step_by(channels);
        *d = column.map(|v| f64::from(*v)).sum::<f64>() as f32;
    });
}
