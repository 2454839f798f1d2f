//! The mean squared error of rows.
//!
//! ```text
//! losses[r]   = the mean over row r of (a − b)²
//! gradient[r] = weight / R · 2·(a − b) / dim
//! ```
//!
//! Both are written (`=`). The gradient is that of a alone.

use pulp::Arch;
use rayon::prelude::*;

use super::LEAST_ROWS;
use crate::cpu::simd::vectorised;
use crate::cpu::sums::dot;

vectorised! {
    fn row<'a>(a: &'a [f32], b: &'a [f32], scale: f32, loss: &'a mut f32, gradient: &'a mut [f32]) {
        for ((g, a), b) in gradient.iter_mut().zip(a).zip(b) {
            *g = a - b;
        }
        *loss = (dot(gradient, gradient) / a.len() as f64) as f32;
        gradient.iter_mut().for_each(|g| *g *= scale);
    }
}

/// See the module. All matrices are R × `dim`, R being the number of losses.
pub(crate) fn mean_squared(
    arch: Arch,
    [a, b]: [&[f32]; 2],
    dim: usize,
    weight: f32,
    losses: &mut [f32],
    gradient: &mut [f32],
) {
    let scale = 2.0 * weight / (losses.len() * dim) as f32;
    (gradient.par_chunks_mut(dim).zip(losses))
        .zip(a.par_chunks(dim).zip(b.par_chunks(dim)))
        .with_min_len(LEAST_ROWS)
        .for_each(|((gradient, loss), (a, b))| row(arch, a, b, scale, loss, gradient));
}
