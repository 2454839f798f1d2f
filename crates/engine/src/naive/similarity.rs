//! Similarities between rows, as plain loops in f64: softmax loss and its gradient, blending of
//! rows, entropy and top-k.

use crate::similarity::{Neighbours, Positives, Scan, ScanResult};

/// Inner product of row `i` of `a` and row `j` of `b`.
fn dot(a: &[f32], i: usize, b: &[f32], j: usize, dim: usize) -> f64 {
    (0..dim).map(|d| f64::from(a[i * dim + d]) * f64::from(b[j * dim + d])).sum()
}

/// One query's similarities over all keys, divided by the temperature.
fn logits(queries: &[f32], query: usize, keys: &[f32], dim: usize, temperature: f32) -> Vec<f64> {
    (0..keys.len() / dim)
        .map(|key| dot(queries, query, keys, key, dim) / f64::from(temperature))
        .collect()
}

/// ln Σ e^x.
pub(super) fn log_sum_exp(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = x.clone().fold(f64::NEG_INFINITY, f64::max);
    max + x.map(|x| (x - max).exp()).sum::<f64>().ln()
}

/// The loss −log Σ p over each query's positives, or the mean of −log p over them, and the gradient
/// of its mean with respect to the queries.
///
/// With p the softmax over all keys k and p̃ the positives' share of it, Σ p̃ = 1, or the same for
/// each of them: gradient of query i = (Σ p·k − Σ p̃·k) / (temperature · B). Both outputs are
/// written (`=`).
pub fn softmax_loss(
    queries: &[f32],
    keys: &[f32],
    dim: usize,
    temperature: f32,
    positives: &Positives,
    losses: &mut [f32],
    gradient: &mut [f32],
) {
    let counts = vec![1.0; keys.len() / dim];
    let over = (keys, &counts[..], dim, temperature);
    counted_softmax_loss(queries, over, positives, losses, gradient);
}

/// The same where each key counts as so many in the softmax (given beside the keys, before the
/// length of a row and the temperature); 0 leaves it out.
pub fn counted_softmax_loss(
    queries: &[f32],
    (keys, counts, dim, temperature): (&[f32], &[f64], usize, f32),
    positives: &Positives,
    losses: &mut [f32],
    gradient: &mut [f32],
) {
    let batch = queries.len() / dim;
    for query in 0..batch {
        let logits = logits(queries, query, keys, dim, temperature);
        let own = positives.of(query);
        let counted = logits.iter().zip(counts).map(|(l, n)| l + n.ln());
        let all = log_sum_exp(counted.clone());
        let of = own.iter().map(|p| logits[*p as usize]);
        let positive = match positives.count_each() {
            false => log_sum_exp(of),
            true => of.sum::<f64>() / own.len() as f64,
        };
        losses[query] = (all - positive) as f32;
        let mut weights: Vec<f64> = counted.map(|l| (l - all).exp()).collect();
        for p in own {
            weights[*p as usize] -= match positives.count_each() {
                false => (logits[*p as usize] - positive).exp(),
                true => 1.0 / own.len() as f64,
            };
        }
        for d in 0..dim {
            let sum: f64 =
                weights.iter().enumerate().map(|(key, w)| w * f64::from(keys[key * dim + d])).sum();
            gradient[query * dim + d] = (sum / (f64::from(temperature) * batch as f64)) as f32;
        }
    }
}

/// Rows `indices` of `keys` become normalise((1 − rate) · row + rate · query), one after the other.
pub fn blend_rows(keys: &mut [f32], dim: usize, indices: &[u32], queries: &[f32], rate: f32) {
    for (query, index) in indices.iter().enumerate() {
        let row = &mut keys[*index as usize * dim..][..dim];
        let blended: Vec<f64> = (0..dim)
            .map(|d| {
                let new = f64::from(queries[query * dim + d]);
                f64::from(row[d]) * (1.0 - f64::from(rate)) + new * f64::from(rate)
            })
            .collect();
        let norm = blended.iter().map(|b| b * b).sum::<f64>().sqrt().max(1e-12);
        for (value, b) in row.iter_mut().zip(blended) {
            *value = (b / norm) as f32;
        }
    }
}

/// Entropy and top-k of every query over all keys.
pub fn scan(queries: &[f32], keys: &[f32], scan: &Scan) -> ScanResult {
    let (dim, n) = (scan.dim, keys.len() / scan.dim);
    let mut result = ScanResult {
        entropy: vec![],
        log_sum: vec![],
        neighbours: Neighbours {
            k: scan.k.min(n.saturating_sub(usize::from(scan.same))),
            ..Neighbours::default()
        },
    };
    for query in 0..queries.len() / dim {
        if let Some(temperature) = scan.entropy_temperature {
            let logits = logits(queries, query, keys, dim, temperature);
            let all = log_sum_exp(logits.iter().copied());
            let entropy: f64 = (logits.iter()).map(|l| -(l - all).exp() * (l - all)).sum();
            result.entropy.push(entropy as f32);
            result.log_sum.push(all);
        }
        let mut found: Vec<(f32, u32)> = (0..n)
            .filter(|key| !(scan.same && *key == query))
            .map(|key| (dot(queries, query, keys, key, dim) as f32, key as u32))
            .collect();
        found.sort_by(|a, b| b.0.partial_cmp(&a.0).expect("finite").then(a.1.cmp(&b.1)));
        for (similarity, key) in found.into_iter().take(result.neighbours.k) {
            result.neighbours.indices.push(key);
            result.neighbours.similarities.push(similarity);
        }
    }
    result
}
