//! Softmax cross-entropy with class indices: row b's class is `labels[indices[b]]`.
//!
//! ```text
//! losses[b]      = w · (ln Σ_c e^logit − logit[class])
//! gradient[b][c] = w · weight / B · (p_c − [c = class]),   p = softmax(logits[b])
//! ```
//!
//! w is the class's own weight, or 1.
//!
//! A row is read twice: for its greatest logit, and for e^(logit − greatest), which the gradient
//! holds until it is scaled.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::LEAST_ROWS;
use crate::cpu::exp::exp;

/// Values summed in f32 before they are added in f64, so that rows of many classes lose nothing.
const RUN: usize = 1024;

/// B × `classes` logits, whose row b is of class `labels[items[b]]`.
pub(crate) struct Labelled<'a> {
    pub(crate) logits: &'a [f32],
    pub(crate) classes: usize,
    pub(crate) labels: &'a [u32],
    pub(crate) items: &'a [u32],
}

/// See the module. `gradient` is B × `classes`.
pub(crate) fn cross_entropy(
    arch: Arch,
    of: &Labelled,
    weights: Option<&[f32]>,
    weight: f32,
    losses: &mut [f32],
    gradient: &mut [f32],
) {
    let scale = weight / of.items.len() as f32;
    let rows = of.logits.par_chunks(of.classes).zip(of.items);
    (gradient.par_chunks_mut(of.classes).zip(losses)).zip(rows).with_min_len(LEAST_ROWS).for_each(
        |((gradient, loss), (logits, item))| {
            let class = of.labels[*item as usize] as usize;
            let own = weights.map_or(1.0, |weights| weights[class]);
            let row = arch.dispatch(Row { logits, class, scale: own * scale, gradient });
            *loss = own * row;
        },
    );
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
    rest.iter().fold(simd.reduce_max_f32s(max), |max, v| max.max(*v))
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
