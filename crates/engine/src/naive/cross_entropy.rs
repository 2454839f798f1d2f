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
    let alike = vec![1.0; classes];
    weighted_cross_entropy(logits, &alike, labels, indices, weight, losses, gradient);
}

/// The same with a weight for each class, by which losses and gradients of its rows are multiplied.
pub fn weighted_cross_entropy(
    logits: &[f64],
    weights: &[f64],
    labels: &[u32],
    indices: &[u32],
    weight: f64,
    losses: &mut [f64],
    gradient: &mut [f64],
) {
    let classes = weights.len();
    let scale = weight / indices.len() as f64;
    for (b, item) in indices.iter().enumerate() {
        let class = labels[*item as usize] as usize;
        let row = &logits[b * classes..(b + 1) * classes];
        let all = log_sum_exp(row.iter().copied());
        losses[b] = weights[class] * (all - row[class]);
        for c in 0..classes {
            let hit = if c == class { 1.0 } else { 0.0 };
            gradient[b * classes + c] = weights[class] * scale * ((row[c] - all).exp() - hit);
        }
    }
}
