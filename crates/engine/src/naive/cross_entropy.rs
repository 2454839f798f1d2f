//! Softmax cross-entropy with class indices, as plain loops in f64.

use super::similarity::log_sum_exp;

/// Row b's class is `labels[indices[b]]`. With p the softmax of a row of logits:
///
/// ```text
/// losses[b]      = ln Σ_c e^logit − logit[class]
/// gradient[b][c] = weight / B · (p_c − [c = class])
/// ```
///
/// Both are written (`=`); the gradient is that of weight · mean(losses).
pub fn cross_entropy(
    logits: &[f64],
    classes: usize,
    labels: &[u32],
    indices: &[u32],
    weight: f64,
    losses: &mut [f64],
    gradient: &mut [f64],
) {
    let scale = weight / indices.len() as f64;
    for (b, item) in indices.iter().enumerate() {
        let class = labels[*item as usize] as usize;
        let row = &logits[b * classes..(b + 1) * classes];
        let all = log_sum_exp(row.iter().copied());
        losses[b] = all - row[class];
        for c in 0..classes {
            let hit = if c == class { 1.0 } else { 0.0 };
            gradient[b * classes + c] = scale * ((row[c] - all).exp() - hit);
        }
    }
}
