//! The cosine loss with stop-gradient (SimSiam, BYOL) and the mean of a picture's other views
//! (FastSiam), as plain loops in f64.

use super::similarity::dot;

/// The least length that divides, as PyTorch's `cosine_similarity` has it.
const EPSILON: f64 = 1e-8;

/// `losses[r]` = −p·z / (max(‖p‖, 1e-8) · max(‖z‖, 1e-8)) for rows p of the predictions and z of
/// the targets, and the gradient of weight · mean(losses) with respect to the predictions alone.
/// Both are written (`=`).
pub fn cosine(
    predictions: &[f64],
    targets: &[f64],
    dim: usize,
    weight: f64,
    losses: &mut [f64],
    gradient: &mut [f64],
) {
    let scale = weight / losses.len() as f64;
    for (r, loss) in losses.iter_mut().enumerate() {
        let at = r * dim..(r + 1) * dim;
        let (p, z) = (&predictions[at.clone()], &targets[at.clone()]);
        let [p_norm, z_norm] = [p, z].map(|x| dot(x, x).sqrt());
        let [p_length, z_length] = [p_norm, z_norm].map(|n| n.max(EPSILON));
        let similarity = dot(p, z) / (p_length * z_length);
        *loss = -similarity;
        for (d, g) in gradient[at].iter_mut().enumerate() {
            *g = -scale * z[d] / (p_length * z_length);
            if p_norm > EPSILON {
                *g += scale * similarity * p[d] / (p_length * p_length);
            }
        }
    }
}

/// `rows` is view 0 of all pictures, then view 1, and so on. targets (v, i) = the mean over u ≠ v
/// of row (u, i), each divided by its length (at least 1e-12) first if `normalise`. Written (`=`).
pub fn mean_of_others(
    rows: &[f64],
    dim: usize,
    views: usize,
    normalise: bool,
    targets: &mut [f64],
) {
    let batch = rows.len() / dim / views;
    targets.fill(0.0);
    for (j, target) in targets.chunks_exact_mut(dim).enumerate() {
        for u in (0..views).filter(|u| *u != j / batch) {
            let row = &rows[(u * batch + j % batch) * dim..][..dim];
            let length = if normalise { dot(row, row).sqrt().max(1e-12) } else { 1.0 };
            for (t, v) in target.iter_mut().zip(row) {
                *t += v / length / (views - 1) as f64;
            }
        }
    }
}
