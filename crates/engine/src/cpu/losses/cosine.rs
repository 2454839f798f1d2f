//! The cosine loss with stop-gradient (SimSiam, BYOL), and the mean of a picture's other views
//! (FastSiam).
//!
//! ```text
//! losses[r]      = −cos(p, z) = −p·z / (P·Z),   P = max(‖p‖, 1e-8),  Z = max(‖z‖, 1e-8)
//! gradient[r]    = weight / R · (cos(p, z) / P² · p − z / (P·Z)),
//!                  the first part only where ‖p‖ > 1e-8
//! targets (v, i) = the mean over u ≠ v of row (u, i), each divided by its length first if asked
//! ```
//!
//! All are written (`=`). The gradient is that of the predictions p alone.

use pulp::Arch;
use rayon::prelude::*;

use super::LEAST_ROWS;
use crate::cpu::simd::vectorised;
use crate::cpu::sums::dot;

/// The least length that divides, as PyTorch's `cosine_similarity` has it.
const EPSILON: f64 = 1e-8;

vectorised! {
    fn row<'a>(p: &'a [f32], z: &'a [f32], scale: f32, loss: &'a mut f32, gradient: &'a mut [f32]) {
        let [p_norm, z_norm] = [dot(p, p).sqrt(), dot(z, z).sqrt()];
        let [p_length, z_length] = [p_norm, z_norm].map(|n| n.max(EPSILON));
        let similarity = dot(p, z) / (p_length * z_length);
        let along = if p_norm > EPSILON { similarity / p_length } else { 0.0 };
        let of_z = (-f64::from(scale) / (p_length * z_length)) as f32;
        let of_p = (f64::from(scale) * along / p_length) as f32;
        for ((g, p), z) in gradient.iter_mut().zip(p).zip(z) {
            *g = of_z * z + of_p * p;
        }
        *loss = -similarity as f32;
    }
}

/// See the module. All matrices are R × `dim`, R being the number of losses.
pub(crate) fn cosine(
    arch: Arch,
    [predictions, targets]: [&[f32]; 2],
    dim: usize,
    weight: f32,
    losses: &mut [f32],
    gradient: &mut [f32],
) {
    let scale = weight / losses.len() as f32;
    (gradient.par_chunks_mut(dim).zip(losses))
        .zip(predictions.par_chunks(dim).zip(targets.par_chunks(dim)))
        .with_min_len(LEAST_ROWS)
        .for_each(|((gradient, loss), (p, z))| row(arch, p, z, scale, loss, gradient));
}

vectorised! {
    fn add_share<'a>(x: &'a [f32], views: usize, normalise: bool, target: &'a mut [f32]) {
        let length = if normalise { dot(x, x).sqrt().max(1e-12) } else { 1.0 };
        let share = (1.0 / (length * (views - 1) as f64)) as f32;
        for (t, x) in target.iter_mut().zip(x) {
            *t += share * x;
        }
    }
}

/// See the module. Both matrices are views · batch × `dim`: view 0 of all pictures, then view 1,
/// and so on.
pub(crate) fn mean_of_others(
    arch: Arch,
    rows: &[f32],
    dim: usize,
    views: usize,
    normalise: bool,
    targets: &mut [f32],
) {
    let batch = rows.len() / dim / views;
    (targets.par_chunks_mut(dim).with_min_len(LEAST_ROWS)).enumerate().for_each(|(j, target)| {
        target.fill(0.0);
        for u in (0..views).filter(|u| *u != j / batch) {
            let x = &rows[(u * batch + j % batch) * dim..][..dim];
            add_share(arch, x, views, normalise, target);
        }
    });
}
