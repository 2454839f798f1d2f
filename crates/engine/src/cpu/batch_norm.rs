//! Batch norm, with the residual add and ReLU that follow it, over rows of `channels` values
//! (places of all pictures).
//!
//! ```text
//! statistics  mean, var over the M rows of each channel (var biased)
//! forward     y  = relu((c − mean) · γ/√(var + ε) + β + residual)             (writes y =)
//! backward    dz = dy where y > 0, else 0;  x̂ = (c − mean)/√(var + ε)
//!             dβ = Σ dz;  dγ = Σ dz · x̂                                       (writes dβ, dγ =)
//!             dc = γ/√(var + ε) · (dz − dβ/M − x̂ · dγ/M)                      (over dy in place)
//!             dresidual (+)= dz
//! ```
//!
//! Statistics are taken per task in two passes (mean, then squared deviations) and merged in the
//! order of the tasks with Chan's formula in f64.

mod column_sums;

use pulp::Arch;
use rayon::prelude::*;

use super::elementwise::at_least;
use super::simd::vectorised;

/// Rows a task works on, about, where the geometry does not say otherwise.
const VALUES_PER_TASK: usize = 64 * 1024;

/// Values of a task over rows of `channels`.
pub(super) fn task_len(channels: usize) -> usize {
    (VALUES_PER_TASK / channels).max(1) * channels
}

/// Mean and sum of squared deviations of each channel over the rows of one task; `out` holds 2 ×
/// channels.
pub(super) fn task_statistics(arch: Arch, rows: &[f32], out: &mut [f32]) {
    let channels = out.len() / 2;
    let (mean, squares) = out.split_at_mut(channels);
    column_sums::sum(arch, rows, mean);
    let inverse = channels as f32 / rows.len() as f32;
    mean.iter_mut().for_each(|m| *m *= inverse);
    column_sums::squared_deviations(arch, rows, mean, squares);
}

/// Statistics of rows that lie in memory already, task by task into `partials`.
pub(super) fn statistics(arch: Arch, rows: &[f32], channels: usize, partials: &mut [f32]) {
    rows.par_chunks(task_len(channels))
        .zip(partials.par_chunks_mut(2 * channels))
        .for_each(|(rows, out)| task_statistics(arch, rows, out));
}

/// Merges the tasks' statistics: mean and biased variance of each channel over `rows` rows,
/// `task_rows` a task.
pub(super) fn merge_statistics(
    partials: &[f32],
    rows: usize,
    task_rows: usize,
    mean: &mut [f32],
    variance: &mut [f32],
) {
    let channels = mean.len();
    for c in 0..channels {
        let (mut n, mut m, mut s) = (0.0_f64, 0.0_f64, 0.0_f64);
        for (task, partial) in partials.chunks_exact(2 * channels).enumerate() {
            let Some(left) = rows.checked_sub(task * task_rows).filter(|l| *l > 0) else {
                break;
            };
            let tn = left.min(task_rows) as f64;
            let delta = f64::from(partial[c]) - m;
            s += f64::from(partial[channels + c]) + delta * delta * n * tn / (n + tn);
            m += delta * tn / (n + tn);
            n += tn;
        }
        mean[c] = m as f32;
        variance[c] = (s / n) as f32;
    }
}

/// scale = γ/√(var + ε), shift = β − mean · scale.
pub(super) fn scale_and_shift(
    gamma: &[f32],
    beta: &[f32],
    mean: &[f32],
    inverse_std: impl Fn(usize) -> f32,
    scale: &mut [f32],
    shift: &mut [f32],
) {
    for c in 0..gamma.len() {
        scale[c] = gamma[c] * inverse_std(c);
        shift[c] = beta[c] - mean[c] * scale[c];
    }
}

/// Values of rows that are walked over at once.
const WIDE: usize = 64;

/// What is said of each channel, again and again, so that narrow rows are walked over several at
/// once, as one of many channels: a row of four values is half a vector, and a loop for each costs
/// more than its work.
struct Repeated {
    values: [f32; WIDE],
    len: usize,
}

impl Repeated {
    #[inline(always)]
    fn new(channels: &[f32]) -> Self {
        let mut values = [0.0; WIDE];
        let times = WIDE / channels.len();
        for values in values.chunks_exact_mut(channels.len()).take(times) {
            values.copy_from_slice(channels);
        }
        Repeated { values, len: times * channels.len() }
    }

    /// Those, or the channels themselves where they are many.
    #[inline(always)]
    fn or<'a>(&'a self, channels: &'a [f32]) -> &'a [f32] {
        match self.len {
            0 => channels,
            len => &self.values[..len],
        }
    }
}

vectorised! {
    /// One task of y = relu(y · scale + shift + residual), in place.
    pub(super) fn apply_in_place<'a>(
        scale: &'a [f32],
        shift: &'a [f32],
        residual: Option<&'a [f32]>,
        relu: bool,
        y: &'a mut [f32],
    ) {
        let wide = [scale, shift].map(Repeated::new);
        let (scale, shift) = (wide[0].or(scale), wide[1].or(shift));
        let channels = scale.len();
        let floor = if relu { 0.0 } else { f32::NEG_INFINITY };
        let rows = y.chunks_mut(channels);
        match residual {
            None => {
                for y in rows {
                    for ((y, s), t) in y.iter_mut().zip(scale).zip(shift) {
                        *y = at_least(floor, *y * s + t);
                    }
                }
            }
            Some(residual) => {
                for (y, r) in rows.zip(residual.chunks(channels)) {
                    for (((y, r), s), t) in y.iter_mut().zip(r).zip(scale).zip(shift) {
                        *y = at_least(floor, *y * s + t + r);
                    }
                }
            }
        }
    }
}

/// y = relu(c · scale + shift + residual) over all rows.
pub(super) fn apply(
    arch: Arch,
    c: &[f32],
    scale: &[f32],
    shift: &[f32],
    residual: Option<&[f32]>,
    relu: bool,
    y: &mut [f32],
) {
    let len = task_len(scale.len());
    let tasks = y.par_chunks_mut(len).zip(c.par_chunks(len)).enumerate();
    tasks.for_each(|(task, (y, c))| {
        let residual = residual.map(|r| &r[task * len..][..y.len()]);
        apply_task(arch, c, scale, shift, residual, relu, y);
    });
}

vectorised! {
    fn apply_task<'a>(
        c: &'a [f32],
        scale: &'a [f32],
        shift: &'a [f32],
        residual: Option<&'a [f32]>,
        relu: bool,
        y: &'a mut [f32],
    ) {
        let wide = [scale, shift].map(Repeated::new);
        let (scale, shift) = (wide[0].or(scale), wide[1].or(shift));
        let channels = scale.len();
        let floor = if relu { 0.0 } else { f32::NEG_INFINITY };
        let rows = y.chunks_mut(channels).zip(c.chunks(channels));
        match residual {
            None => {
                for (y, c) in rows {
                    for (((y, c), s), t) in y.iter_mut().zip(c).zip(scale).zip(shift) {
                        *y = at_least(floor, c * s + t);
                    }
                }
            }
            Some(residual) => {
                for ((y, c), r) in rows.zip(residual.chunks(channels)) {
                    let values = y.iter_mut().zip(c).zip(r).zip(scale).zip(shift);
                    for ((((y, c), r), s), t) in values {
                        *y = at_least(floor, c * s + t + r);
                    }
                }
            }
        }
    }
}

/// Running statistics move towards the batch's, the variance unbiased, as PyTorch has it.
pub(super) fn update_running(
    momentum: f32,
    rows: usize,
    mean: &[f32],
    variance: &[f32],
    running_mean: &mut [f32],
    running_variance: &mut [f32],
) {
    let unbias = rows as f32 / (rows as f32 - 1.0).max(1.0);
    for c in 0..mean.len() {
        running_mean[c] = (1.0 - momentum) * running_mean[c] + momentum * mean[c];
        running_variance[c] =
            (1.0 - momentum) * running_variance[c] + momentum * unbias * variance[c];
    }
}

/// What the backward pass reads.
pub(super) struct Saved<'a> {
    /// The values before the norm.
    pub(super) c: &'a [f32],
    /// The output, when ReLU followed.
    pub(super) y: Option<&'a [f32]>,
    pub(super) mean: &'a [f32],
    pub(super) inverse_std: &'a [f32],
}

/// dβ and dγ; `partials` holds 2 × channels for each task.
pub(super) fn backward_sums(
    arch: Arch,
    saved: &Saved,
    dy: &[f32],
    partials: &mut [f32],
    dgamma: &mut [f32],
    dbeta: &mut [f32],
) {
    let channels = saved.mean.len();
    let len = task_len(channels);
    let tasks = dy.len().div_ceil(len);
    let partials = &mut partials[..tasks * 2 * channels];
    dy.par_chunks(len)
        .zip(saved.c.par_chunks(len))
        .zip(partials.par_chunks_mut(2 * channels))
        .enumerate()
        .for_each(|(task, ((dy, c), out))| {
            let y = saved.y.map(|y| &y[task * len..][..dy.len()]);
            let (sum, product) = out.split_at_mut(channels);
            column_sums::gradient(arch, dy, c, y, saved.mean, sum, product);
        });
    for ch in 0..channels {
        let (mut b, mut g) = (0.0_f64, 0.0_f64);
        for partial in partials.chunks_exact(2 * channels) {
            b += f64::from(partial[ch]);
            g += f64::from(partial[channels + ch]);
        }
        dbeta[ch] = b as f32;
        dgamma[ch] = (g * f64::from(saved.inverse_std[ch])) as f32;
    }
}

/// dc over dy in place; `coefficients` holds 3 × channels of scratch. `dresidual` takes dz, `=` or
/// `+=`. dγ, dβ and the statistics are over so many times as many rows as there are here.
pub(super) fn backward_values(
    arch: Arch,
    saved: &Saved,
    gamma: &[f32],
    dgamma: &[f32],
    dbeta: &[f32],
    times: usize,
    coefficients: &mut [f32],
    dresidual: Option<(&mut [f32], bool)>,
    dy: &mut [f32],
) {
    let channels = gamma.len();
    let rows = (times * (dy.len() / channels)) as f32;
    // dc = k1 · dz − k2 − k3 · (c − mean)
    let (k1, rest) = coefficients[..3 * channels].split_at_mut(channels);
    let (k2, k3) = rest.split_at_mut(channels);
    for ch in 0..channels {
        k1[ch] = gamma[ch] * saved.inverse_std[ch];
        k2[ch] = k1[ch] * dbeta[ch] / rows;
        k3[ch] = k1[ch] * dgamma[ch] * saved.inverse_std[ch] / rows;
    }
    let k = Coefficients { k1, k2, k3, mean: saved.mean };
    let len = task_len(channels);
    let part = |task: usize, n: usize| {
        let y = saved.y.map(|y| &y[task * len..][..n]);
        (&saved.c[task * len..][..n], y)
    };
    match dresidual {
        None => dy.par_chunks_mut(len).enumerate().for_each(|(task, dy)| {
            let (c, y) = part(task, dy.len());
            task_values(arch, k, c, y, dy);
        }),
        Some((dresidual, accumulate)) => {
            dy.par_chunks_mut(len).zip(dresidual.par_chunks_mut(len)).enumerate().for_each(
                |(task, (dy, dr))| {
                    let (c, y) = part(task, dy.len());
                    super::elementwise::mask_and_copy(arch, y, dy, accumulate, dr);
                    task_values(arch, k, c, y, dy);
                },
            )
        }
    }
}

#[derive(Clone, Copy)]
struct Coefficients<'a> {
    k1: &'a [f32],
    k2: &'a [f32],
    k3: &'a [f32],
    mean: &'a [f32],
}

vectorised! {
    /// dc = k1 · dz − k2 − k3 · (c − mean) over dy in place, one task.
    fn task_values<'a>(
        k: Coefficients<'a>,
        c: &'a [f32],
        y: Option<&'a [f32]>,
        dy: &'a mut [f32],
    ) {
        let wide = [k.k1, k.k2, k.k3, k.mean].map(Repeated::new);
        let k = Coefficients {
            k1: wide[0].or(k.k1),
            k2: wide[1].or(k.k2),
            k3: wide[2].or(k.k3),
            mean: wide[3].or(k.mean),
        };
        let channels = k.mean.len();
        let rows = dy.chunks_mut(channels).zip(c.chunks(channels));
        match y {
            None => {
                for (dy, c) in rows {
                    let ks = k.k1.iter().zip(k.k2).zip(k.k3).zip(k.mean);
                    for ((dy, c), (((k1, k2), k3), m)) in dy.iter_mut().zip(c).zip(ks) {
                        *dy = k1 * *dy - k2 - k3 * (c - m);
                    }
                }
            }
            Some(y) => {
                for ((dy, c), y) in rows.zip(y.chunks(channels)) {
                    let ks = k.k1.iter().zip(k.k2).zip(k.k3).zip(k.mean);
                    for (((dy, c), y), (((k1, k2), k3), m)) in dy.iter_mut().zip(c).zip(y).zip(ks) {
                        let dz = if *y > 0.0 { *dy } else { 0.0 };
                        *dy = k1 * dz - k2 - k3 * (c - m);
                    }
                }
            }
        }
    }
}
