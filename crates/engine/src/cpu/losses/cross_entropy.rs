//! Softmax cross-entropy with class indices: row b's class is `labels[indices[b]]`.
//!
//! ```text
//! losses[b]      = ln Σ_c e^logit − logit[class]
//! gradient[b][c] = weight / B · (p_c − [c = class]),   p = softmax(logits[b])
//! ```
//!
//! A row is read twice: for its greatest logit, and for e^(logit − greatest), which the gradient holds until it is scaled.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::LEAST_ROWS;
use crate::cpu::exp::exp;
use crate::{Error, Result};

/// Values summed in f32 before they are added in f64, so that rows of many classes lose nothing.
const RUN: usize = 1024;

/// See the module. `logits` and `gradient` are B × `classes`.
pub(crate) fn cross_entropy(
    arch: Arch,
    logits: &[f32],
    classes: usize,
    labels: &[u32],
    indices: &[u32],
    weight: f32,
    losses: &mut [f32],
    gradient: &mut [f32],
) -> Result<()> {
    let batch = indices.len();
    Error::check_length("logits", batch * classes, logits.len())?;
    Error::check_length("losses", batch, losses.len())?;
    Error::check_length("gradient", batch * classes, gradient.len())?;
    indices
        .iter()
        .try_for_each(|item| check_label(labels, *item, classes))?;
    if batch == 0 {
        return Ok(());
    }
    let scale = weight / batch as f32;
    let rows = logits.par_chunks(classes).zip(indices);
    (gradient.par_chunks_mut(classes).zip(losses))
        .zip(rows)
        .with_min_len(LEAST_ROWS)
        .for_each(|((gradient, loss), (logits, item))| {
            let class = labels[*item as usize] as usize;
            *loss = arch.dispatch(Row {
                logits,
                class,
                scale,
                gradient,
            });
        });
    Ok(())
}

/// An item has a label, and the label is a class.
fn check_label(labels: &[u32], item: u32, classes: usize) -> Result<()> {
    match labels.get(item as usize) {
        None => Err(Error::Plan(format!(
            "item {item} of {} items",
            labels.len()
        ))),
        Some(class) if *class as usize >= classes => Err(Error::Plan(format!(
            "item {item}: class {class} of {classes} classes"
        ))),
        Some(_) => Ok(()),
    }
}

/// One row: writes its gradient, gives its loss.
struct Row<'a> {
    logits: &'a [f32],
    class: usize,
    scale: f32,
    gradient: &'a mut [f32],
}

impl WithSimd for Row<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let max = greatest(simd, self.logits);
        let mut sum = 0.0;
        let runs = self.logits.chunks(RUN).zip(self.gradient.chunks_mut(RUN));
        for (logits, out) in runs {
            sum += f64::from(exponentials(simd, logits, max, out));
        }
        let factor = (f64::from(self.scale) / sum) as f32;
        self.gradient.iter_mut().for_each(|g| *g *= factor);
        self.gradient[self.class] -= self.scale;
        (sum.ln() + f64::from(max) - f64::from(self.logits[self.class])) as f32
    }
}

#[inline(always)]
fn greatest<S: Simd>(simd: S, values: &[f32]) -> f32 {
    let (vectors, rest) = S::as_simd_f32s(values);
    let mut max = simd.splat_f32s(f32::NEG_INFINITY);
    for v in vectors {
        max = simd.max_f32s(max, *v);
    }
    rest.iter()
        .fold(simd.reduce_max_f32s(max), |max, v| max.max(*v))
}

/// Writes e^(x − max), gives their sum.
#[inline(always)]
fn exponentials<S: Simd>(simd: S, x: &[f32], max: f32, out: &mut [f32]) -> f32 {
    let (vectors, rest) = S::as_simd_f32s(x);
    let (out, out_rest) = S::as_mut_simd_f32s(out);
    let mut sum = simd.splat_f32s(0.0);
    let all = simd.splat_f32s(max);
    for (x, out) in vectors.iter().zip(out) {
        *out = exp(simd, simd.sub_f32s(*x, all));
        sum = simd.add_f32s(sum, *out);
    }
    let mut sum = simd.reduce_sum_f32s(sum);
    for (x, out) in rest.iter().zip(out_rest) {
        *out = (x - max).exp();
        sum += *out;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive::{self, widen};
    use crate::testing::{assert_close, on_every_cpu, uniform};

    fn run(arch: Arch, logits: &[f32], classes: usize, labels: &[u32]) -> Result<[Vec<f32>; 2]> {
        let batch = logits.len() / classes;
        let indices: Vec<u32> = (0..batch as u32).rev().collect();
        let [mut losses, mut gradient] = [vec![f32::NAN; batch], vec![f32::NAN; logits.len()]];
        cross_entropy(
            arch,
            logits,
            classes,
            labels,
            &indices,
            0.7,
            &mut losses,
            &mut gradient,
        )?;
        Ok([losses, gradient])
    }

    #[test]
    fn like_the_naive_one_and_the_same_for_any_number_of_threads() {
        for (batch, classes) in [(1, 1), (3, 2), (37, 10), (5, 1000), (2, 1031), (2, 100_000)] {
            let logits: Vec<f32> = uniform(1, batch * classes)
                .iter()
                .map(|l| 8.0 * l)
                .collect();
            let labels: Vec<u32> = (0..batch).map(|i| (i * 7 % classes) as u32).collect();
            let indices: Vec<u32> = (0..batch as u32).rev().collect();
            let [mut losses, mut gradient] = [vec![0.0; batch], vec![0.0; logits.len()]];
            naive::cross_entropy::cross_entropy(
                &widen(&logits),
                classes,
                &labels,
                &indices,
                f64::from(0.7_f32),
                &mut losses,
                &mut gradient,
            );
            let got = on_every_cpu(|arch| run(arch, &logits, classes, &labels).unwrap());
            for [got_losses, got_gradient] in got {
                let what = format!("{batch} rows, {classes} classes");
                assert_close(&format!("losses, {what}"), &got_losses, &losses, 1e-6);
                assert_close(&format!("gradient, {what}"), &got_gradient, &gradient, 1e-6);
            }
        }
    }

    #[test]
    fn great_logits_neither_overflow_nor_vanish() {
        let arch = Arch::new();
        let [losses, gradient] = run(arch, &[1e4, -1e4, 3e38, 0.0], 2, &[1, 1]).unwrap();
        assert_eq!(losses, [2e4, 3e38]);
        assert_close("gradient", &gradient, &[0.35, -0.35, 0.35, -0.35], 1e-6);
    }

    #[test]
    fn a_diverged_row_shows_in_its_loss_alone() {
        for bad in [f32::NAN, f32::INFINITY] {
            let [losses, _] = run(Arch::new(), &[0.0, bad, 0.0, 1.0], 2, &[0, 0]).unwrap();
            assert!(losses[0].is_nan() && losses[1].is_finite(), "{losses:?}");
        }
    }

    #[test]
    fn labels_beyond_the_classes_and_items_beyond_the_labels_are_refused() {
        let why = |labels: &[u32]| {
            run(Arch::new(), &[0.0; 6], 3, labels)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(why(&[3, 0]), "item 0: class 3 of 3 classes");
        assert_eq!(why(&[0]), "item 1 of 1 items");
    }
}
