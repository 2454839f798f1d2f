//! The contrastive loss between views of pictures (NT-Xent of SimCLR, for two views or more), as
//! plain loops in f64.

use super::similarity::{dot, log_sum_exp};

/// `rows` is view 0 of all pictures, then view 1, and so on: N = views · B rows of length `dim`,
/// taken as they are. With s_jk = row j · row k / temperature, row j = (v, i):
///
/// ```text
/// losses[j] = ln Σ_{k ≠ j} e^s_jk − 1/(views − 1) · Σ_{u ≠ v} s_j(u, i)
/// ```
///
/// The gradient of weight · mean(losses) reaches a row as a query and as a key of all others. Both
/// are written (`=`).
pub fn contrastive(
    rows: &[f64],
    dim: usize,
    views: usize,
    temperature: f64,
    weight: f64,
    losses: &mut [f64],
    gradient: &mut [f64],
) {
    let n = rows.len() / dim;
    let batch = n / views;
    let row = |j: usize| &rows[j * dim..(j + 1) * dim];
    let s = |j, k| dot(row(j), row(k)) / temperature;
    gradient.fill(0.0);
    for j in 0..n {
        let logits: Vec<f64> = (0..n).map(|k| s(j, k)).collect();
        let all = log_sum_exp((0..n).filter(|k| *k != j).map(|k| logits[k]));
        let share = 1.0 / (views - 1) as f64;
        losses[j] = all;
        for k in (0..n).filter(|k| *k != j) {
            let mut slope = (logits[k] - all).exp();
            if k % batch == j % batch {
                losses[j] -= share * logits[k];
                slope -= share;
            }
            slope *= weight / (n as f64 * temperature);
            for d in 0..dim {
                gradient[j * dim + d] += slope * row(k)[d];
                gradient[k * dim + d] += slope * row(j)[d];
            }
        }
    }
}
