//! Losses over rows, and what goes with them, as plain loops in f64. Each loss gives a value for
//! each row, and the gradient of weight · mean(losses).

use super::similarity::{dot, log_sum_exp};

/// Softmax cross-entropy with class indices: row b's class is `labels[indices[b]]`, and each class
/// has a weight w. With p the softmax of a row of logits:
///
/// ```text
/// losses[b]      = w · (ln Σ_c e^logit − logit[class])
/// gradient[b][c] = w · weight / B · (p_c − [c = class])
/// ```
pub fn cross_entropy(
    logits: &[f64],
    weights: &[f64],
    labels: &[u32],
    indices: &[u32],
    weight: f64,
) -> [Vec<f64>; 2] {
    let classes = weights.len();
    let scale = weight / indices.len() as f64;
    let (mut losses, mut gradient) = (vec![], vec![]);
    for (row, item) in logits.chunks(classes).zip(indices) {
        let class = labels[*item as usize] as usize;
        let all = log_sum_exp(row.iter().copied());
        losses.push(weights[class] * (all - row[class]));
        for (c, logit) in row.iter().enumerate() {
            let hit = if c == class { 1.0 } else { 0.0 };
            gradient.push(weights[class] * scale * ((logit - all).exp() - hit));
        }
    }
    [losses, gradient]
}

/// The cosine loss with stop-gradient (SimSiam, BYOL): −p·z / (max(‖p‖, 1e-8) · max(‖z‖, 1e-8))
/// for rows p of the predictions and z of the targets, and the gradient with respect to the
/// predictions alone. The least length that divides is that of PyTorch's `cosine_similarity`.
pub fn cosine(predictions: &[f64], targets: &[f64], dim: usize, weight: f64) -> [Vec<f64>; 2] {
    const EPSILON: f64 = 1e-8;
    let scale = weight / (predictions.len() / dim) as f64;
    let (mut losses, mut gradient) = (vec![], vec![]);
    for (p, z) in predictions.chunks(dim).zip(targets.chunks(dim)) {
        let [p_norm, z_norm] = [p, z].map(|x| dot(x, x).sqrt());
        let [p_length, z_length] = [p_norm, z_norm].map(|n| n.max(EPSILON));
        let similarity = dot(p, z) / (p_length * z_length);
        losses.push(-similarity);
        for (p, z) in p.iter().zip(z) {
            let along = scale * similarity * p / (p_length * p_length);
            let own = if p_norm > EPSILON { along } else { 0.0 };
            gradient.push(-scale * z / (p_length * z_length) + own);
        }
    }
    [losses, gradient]
}

/// What the parts of a picture add up to, and what another picture must not. With φ(v, i) the row
/// of view v of picture i of n, rows view after view, and S(i) = Σ_{v ≥ 1} φ(v, i):
///
/// ```text
/// losses[i] = |S(i) − φ(0, i)|² + max(0, margin − |S(i) − φ(0, i + 1 mod n)|²)
/// ```
pub fn counting(rows: &[f64], [views, dim]: [usize; 2], margin: f64, weight: f64) -> [Vec<f64>; 2] {
    let n = rows.len() / dim / views;
    let place = |view: usize, i: usize, d: usize| (view * n + i) * dim + d;
    let apart = |i: usize, whole: usize, d: usize| {
        let parts: f64 = (1..views).map(|v| rows[place(v, i, d)]).sum();
        parts - rows[place(0, whole, d)]
    };
    let (mut losses, mut gradient) = (vec![], vec![0.0; rows.len()]);
    for i in 0..n {
        let other = (i + 1) % n;
        let distance = |whole| (0..dim).map(|d| apart(i, whole, d).powi(2)).sum::<f64>();
        let asked = distance(other) < margin;
        losses.push(distance(i) + if asked { margin - distance(other) } else { 0.0 });
        for (whole, sign) in [(i, 1.0), (other, -1.0)] {
            if sign < 0.0 && !asked {
                continue;
            }
            for d in 0..dim {
                let slope = sign * 2.0 * weight / n as f64 * apart(i, whole, d);
                gradient[place(0, whole, d)] -= slope;
                for v in 1..views {
                    gradient[place(v, i, d)] += slope;
                }
            }
        }
    }
    [losses, gradient]
}

/// The contrastive loss between views of pictures (NT-Xent of SimCLR, for two views or more).
///
/// `rows` is view 0 of all pictures, then view 1, and so on: N = views · B rows of length `dim`,
/// taken as they are. With s_jk = row j · row k / temperature, row j = (v, i):
///
/// ```text
/// losses[j] = ln Σ_{k ≠ j} e^s_jk − 1/(views − 1) · Σ_{u ≠ v} s_j(u, i)
/// ```
///
/// The gradient reaches a row as a query and as a key of all others.
pub fn contrastive(
    rows: &[f64],
    [views, dim]: [usize; 2],
    temperature: f64,
    weight: f64,
) -> [Vec<f64>; 2] {
    let n = rows.len() / dim;
    let batch = n / views;
    let row = |j: usize| &rows[j * dim..(j + 1) * dim];
    let share = 1.0 / (views - 1) as f64;
    let (mut losses, mut gradient) = (vec![], vec![0.0; rows.len()]);
    for j in 0..n {
        let logits: Vec<f64> = (0..n).map(|k| dot(row(j), row(k)) / temperature).collect();
        let all = log_sum_exp((0..n).filter(|k| *k != j).map(|k| logits[k]));
        let mut loss = all;
        for k in (0..n).filter(|k| *k != j) {
            let mut slope = (logits[k] - all).exp();
            if k % batch == j % batch {
                loss -= share * logits[k];
                slope -= share;
            }
            slope *= weight / (n as f64 * temperature);
            for d in 0..dim {
                gradient[j * dim + d] += slope * row(k)[d];
                gradient[k * dim + d] += slope * row(j)[d];
            }
        }
        losses.push(loss);
    }
    [losses, gradient]
}

/// The mean of a picture's other views (FastSiam). `rows` is view 0 of all pictures, then view 1,
/// and so on; (v, i) has the mean over u ≠ v of row (u, i), each divided by its length (at least
/// 1e-12) first if `normalise`.
pub fn mean_of_others(rows: &[f64], dim: usize, views: usize, normalise: bool) -> Vec<f64> {
    let batch = rows.len() / dim / views;
    let mut targets = vec![0.0; rows.len()];
    for (j, target) in targets.chunks_exact_mut(dim).enumerate() {
        for u in (0..views).filter(|u| *u != j / batch) {
            let row = &rows[(u * batch + j % batch) * dim..][..dim];
            let length = if normalise { dot(row, row).sqrt().max(1e-12) } else { 1.0 };
            for (t, v) in target.iter_mut().zip(row) {
                *t += v / length / (views - 1) as f64;
            }
        }
    }
    targets
}

/// Vector quantisation: for each row of `dim` the number of the entry nearest to it; of equally near ones the first. A
/// row that is not a number has entry 0.
pub fn quantise(rows: &[f64], codebook: &[f64], dim: usize) -> Vec<u32> {
    let nearest = |row: &[f64]| {
        let mut best = (f64::INFINITY, 0);
        for (entry, code) in codebook.chunks(dim).enumerate() {
            let distance: f64 = row.iter().zip(code).map(|(a, b)| (a - b).powi(2)).sum();
            if distance < best.0 {
                best = (distance, entry as u32);
            }
        }
        best.1
    };
    rows.chunks(dim).map(nearest).collect()
}

/// Row b's class is `labels[items[b]]`, its guess the greatest logit, the first of equal ones.
/// `tally[0]` += right guesses, `tally[1 + c]` += rows of class c.
pub fn tally(logits: &[f64], classes: usize, labels: &[u32], items: &[u32], tally: &mut [u32]) {
    for (row, item) in logits.chunks(classes).zip(items) {
        let mut guess = 0;
        for c in 1..classes {
            if row[c] > row[guess] {
                guess = c;
            }
        }
        let class = labels[*item as usize];
        tally[0] += u32::from(guess as u32 == class && !row[guess].is_nan());
        tally[1 + class as usize] += 1;
    }
}
