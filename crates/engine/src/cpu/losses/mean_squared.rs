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

use super::{LEAST_ROWS, check_rows};
use crate::Result;
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
    a: &[f32],
    b: &[f32],
    dim: usize,
    weight: f32,
    losses: &mut [f32],
    gradient: &mut [f32],
) -> Result<()> {
    check_rows(losses.len(), dim, [a, b, gradient])?;
    let scale = 2.0 * weight / (losses.len() * dim) as f32;
    (gradient.par_chunks_mut(dim).zip(losses))
        .zip(a.par_chunks(dim).zip(b.par_chunks(dim)))
        .with_min_len(LEAST_ROWS)
        .for_each(|((gradient, loss), (a, b))| row(arch, a, b, scale, loss, gradient));
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
            let [a, b] = [uniform(1, rows * dim), uniform(2, rows * dim)];
            let [mut losses, mut gradient] = [vec![0.0; rows], vec![0.0; rows * dim]];
            let (wide, weight) = ([widen(&a), widen(&b)], f64::from(0.7_f32));
            naive::mean_squared::mean_squared(
                &wide[0],
                &wide[1],
                dim,
                weight,
                &mut losses,
                &mut gradient,
            );
            let got = on_every_cpu(|arch| {
                let mut got = [vec![f32::NAN; rows], vec![f32::NAN; rows * dim]];
                let [losses, gradient] = &mut got;
                mean_squared(arch, &a, &b, dim, 0.7, losses, gradient).unwrap();
                got
            });
            for [got_losses, got_gradient] in got {
                assert_close("losses", &got_losses, &losses, 1e-6);
                assert_close("gradient", &got_gradient, &gradient, 1e-6);
            }
        }
    }

    #[test]
    fn rows_of_another_length_are_refused() {
        let (mut losses, mut gradient) = ([0.0; 2], [0.0; 4]);
        let mut run = |a: &[f32], b: &[f32], dim| {
            mean_squared(Arch::new(), a, b, dim, 1.0, &mut losses, &mut gradient).is_ok()
        };
        assert!(run(&[1.0; 4], &[1.0; 4], 2));
        assert!(!run(&[1.0; 6], &[1.0; 4], 2) && !run(&[], &[], 0));
    }
}
