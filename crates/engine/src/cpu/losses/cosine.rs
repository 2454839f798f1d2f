//! The cosine loss with stop-gradient (SimSiam, BYOL), and the mean of a picture's other views (FastSiam).
//!
//! ```text
//! losses[r]      = −cos(p, z) = −p·z / (P·Z),   P = max(‖p‖, 1e-8),  Z = max(‖z‖, 1e-8)
//! gradient[r]    = weight / R · (cos(p, z) / P² · p − z / (P·Z)),   the first part only where ‖p‖ > 1e-8
//! targets (v, i) = the mean over u ≠ v of row (u, i), each divided by its length first if asked
//! ```
//!
//! All are written (`=`). The gradient is that of the predictions p alone.

use pulp::Arch;
use rayon::prelude::*;

use super::{LEAST_ROWS, check_rows};
use crate::cpu::simd::vectorised;
use crate::cpu::sums::dot;
use crate::{Error, Result};

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
    predictions: &[f32],
    targets: &[f32],
    dim: usize,
    weight: f32,
    losses: &mut [f32],
    gradient: &mut [f32],
) -> Result<()> {
    check_rows(losses.len(), dim, [predictions, targets, gradient])?;
    let scale = weight / losses.len() as f32;
    (gradient.par_chunks_mut(dim).zip(losses))
        .zip(predictions.par_chunks(dim).zip(targets.par_chunks(dim)))
        .with_min_len(LEAST_ROWS)
        .for_each(|((gradient, loss), (p, z))| row(arch, p, z, scale, loss, gradient));
    Ok(())
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

/// See the module. Both matrices are views · batch × `dim`: view 0 of all pictures, then view 1, and so on.
pub(crate) fn mean_of_others(
    arch: Arch,
    rows: &[f32],
    dim: usize,
    views: usize,
    normalise: bool,
    targets: &mut [f32],
) -> Result<()> {
    if views < 2 {
        return Err(Error::Plan(format!(
            "the mean of other views, of {views}: there must be two or more"
        )));
    }
    let batch = rows.len() / dim.max(1) / views;
    check_rows(views * batch, dim, [rows, targets])?;
    (targets.par_chunks_mut(dim).with_min_len(LEAST_ROWS))
        .enumerate()
        .for_each(|(j, target)| {
            target.fill(0.0);
            for u in (0..views).filter(|u| *u != j / batch) {
                let x = &rows[(u * batch + j % batch) * dim..][..dim];
                add_share(arch, x, views, normalise, target);
            }
        });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive::{self, widen};
    use crate::testing::{assert_close, on_every_cpu, uniform};

    #[test]
    fn like_the_naive_one_and_the_same_for_any_number_of_threads() {
        for (rows, dim) in [(1, 1), (3, 7), (40, 64), (33, 131)] {
            let [mut p, z] = [uniform(1, rows * dim), uniform(2, rows * dim)];
            p[..dim].fill(0.0); // a row without length
            let [mut losses, mut gradient] = [vec![0.0; rows], vec![0.0; rows * dim]];
            let weight = f64::from(0.7_f32);
            let wide = [widen(&p), widen(&z)];
            naive::cosine::cosine(&wide[0], &wide[1], dim, weight, &mut losses, &mut gradient);
            let got = on_every_cpu(|arch| {
                let mut got = [vec![f32::NAN; rows], vec![f32::NAN; rows * dim]];
                let [losses, gradient] = &mut got;
                cosine(arch, &p, &z, dim, 0.7, losses, gradient).unwrap();
                got
            });
            for [got_losses, got_gradient] in got {
                assert_close("losses", &got_losses, &losses, 1e-6);
                // The row without length has a gradient that dwarfs all others.
                assert_close("of zero", &got_gradient[..dim], &gradient[..dim], 1e-6);
                assert_close("gradient", &got_gradient[dim..], &gradient[dim..], 1e-6);
            }
        }
    }

    #[test]
    fn means_of_others_like_the_naive_ones() {
        for (views, batch, dim) in [(2, 1, 1), (2, 9, 33), (5, 7, 16)] {
            let rows = uniform(1, views * batch * dim);
            for normalise in [true, false] {
                let mut expected = vec![0.0; rows.len()];
                naive::cosine::mean_of_others(&widen(&rows), dim, views, normalise, &mut expected);
                let got = on_every_cpu(|arch| {
                    let mut targets = vec![f32::NAN; rows.len()];
                    mean_of_others(arch, &rows, dim, views, normalise, &mut targets).unwrap();
                    [targets]
                });
                for [got] in got {
                    assert_close("targets", &got, &expected, 1e-6);
                }
            }
        }
    }

    #[test]
    fn one_view_and_rows_of_another_length_are_refused() {
        let arch = Arch::new();
        assert!(mean_of_others(arch, &[0.0; 4], 2, 1, true, &mut [0.0; 4]).is_err());
        assert!(mean_of_others(arch, &[0.0; 6], 2, 2, true, &mut [0.0; 6]).is_err());
        assert!(mean_of_others(arch, &[0.0; 6], 0, 2, true, &mut [0.0; 6]).is_err());
        let (mut losses, mut gradient) = ([0.0; 2], [0.0; 4]);
        let mut run = |p: &[f32], z: &[f32], dim| {
            cosine(arch, p, z, dim, 1.0, &mut losses, &mut gradient).is_ok()
        };
        assert!(run(&[1.0; 4], &[1.0; 4], 2));
        assert!(!run(&[1.0; 4], &[1.0; 6], 2) && !run(&[], &[], 0));
    }
}
