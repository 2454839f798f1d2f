//! Functions of each value alone; the maths is in [`crate::naive::activation`]. y = f(x); dx (+)=
//! dy · f′, told by y.

use rayon::prelude::*;

use crate::Activation;

/// Values a task works on.
const TASK: usize = 16 * 1024;

pub(crate) fn forward(f: Activation, x: &[f32], y: &mut [f32]) {
    let tasks = y.par_chunks_mut(TASK).zip(x.par_chunks(TASK));
    tasks.for_each(|(y, x)| match f {
        Activation::LeakyRelu(leak) => map(x, y, |x| if x > 0.0 { x } else { leak * x }),
        Activation::Tanh => map(x, y, f32::tanh),
    });
}

pub(crate) fn backward(f: Activation, y: &[f32], dy: &[f32], accumulate: bool, dx: &mut [f32]) {
    let given = y.par_chunks(TASK).zip(dy.par_chunks(TASK));
    let tasks = dx.par_chunks_mut(TASK).zip(given);
    tasks.for_each(|(dx, (y, dy))| match f {
        Activation::LeakyRelu(leak) => {
            through([y, dy], accumulate, dx, |y| if y > 0.0 { 1.0 } else { leak })
        }
        Activation::Tanh => through([y, dy], accumulate, dx, |y| 1.0 - y * y),
    });
}

#[inline(always)]
fn map(x: &[f32], y: &mut [f32], f: impl Fn(f32) -> f32) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = f(*x);
    }
}

#[inline(always)]
fn through([y, dy]: [&[f32]; 2], accumulate: bool, dx: &mut [f32], slope: impl Fn(f32) -> f32) {
    for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
        *dx = slope(*y) * dy + if accumulate { *dx } else { 0.0 };
    }
}
