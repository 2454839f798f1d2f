//! Similarities between rows, as plain loops in f64: softmax loss and its gradient, blending of
//! rows, entropy and top-k.

use super::widen;
use crate::similarity::{Neighbours, Positives, Scan, ScanResult};

/// Inner product of two rows.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// ln Σ e^x.
pub(super) fn log_sum_exp(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = x.clone().fold(f64::NEG_INFINITY, f64::max);
    max + x.map(|x| (x - max).exp()).sum::<f64>().ln()
}

/// The loss −log Σ p over each query's positives, or the mean of −log p over them, where each key
/// counts as so many in the softmax (1, but for samples; 0 leaves it out), and the gradient of
/// weight · mean(losses) with respect to the queries.
///
/// With p the softmax over all keys k and p̃ the positives' share of it, Σ p̃ = 1, or the same for
/// each of them: gradient of query i = weight · (Σ p·k − Σ p̃·k) / (temperature · B).
pub fn softmax_loss(
    queries: &[f64],
    (keys, counts, dim): (&[f64], &[f64], usize),
    temperature: f64,
    positives: &Positives,
    weight: f64,
) -> [Vec<f64>; 2] {
    let scale = weight / (temperature * (queries.len() / dim) as f64);
    let (mut losses, mut gradient) = (vec![], vec![]);
    for (query, row) in queries.chunks(dim).enumerate() {
        let logits: Vec<f64> = keys.chunks(dim).map(|key| dot(row, key) / temperature).collect();
        let own = positives.of(query);
        let counted = logits.iter().zip(counts).map(|(l, n)| l + n.ln());
        let all = log_sum_exp(counted.clone());
        let of = own.iter().map(|p| logits[*p as usize]);
        let positive = match positives.count_each() {
            false => log_sum_exp(of),
            true => of.sum::<f64>() / own.len() as f64,
        };
        losses.push(all - positive);
        let mut weights: Vec<f64> = counted.map(|l| (l - all).exp()).collect();
        for p in own {
            weights[*p as usize] -= match positives.count_each() {
                false => (logits[*p as usize] - positive).exp(),
                true => 1.0 / own.len() as f64,
            };
        }
        gradient.extend((0..dim).map(|d| {
            scale * weights.iter().zip(keys.chunks(dim)).map(|(w, k)| w * k[d]).sum::<f64>()
        }));
    }
    [losses, gradient]
}

/// Rows `indices` of `keys` become normalise((1 − rate) · row + rate · query), one after the other.
pub fn blend_rows(keys: &mut [f64], dim: usize, indices: &[u32], queries: &[f64], rate: f64) {
    for (query, index) in queries.chunks(dim).zip(indices) {
        let row = &mut keys[*index as usize * dim..][..dim];
        row.iter_mut().zip(query).for_each(|(old, new)| *old = *old * (1.0 - rate) + new * rate);
        let norm = dot(row, row).sqrt().max(1e-12);
        row.iter_mut().for_each(|v| *v /= norm);
    }
}

/// Entropy and top-k of every query over all keys.
pub fn scan(queries: &[f32], keys: &[f32], scan: &Scan) -> ScanResult {
    let (dim, n) = (scan.dim, keys.len() / scan.dim);
    let (queries, keys) = (widen(queries), widen(keys));
    let mut result = ScanResult {
        entropy: vec![],
        log_sum: vec![],
        neighbours: Neighbours {
            k: scan.k.min(n.saturating_sub(usize::from(scan.same))),
            ..Neighbours::default()
        },
    };
    for (query, row) in queries.chunks(dim).enumerate() {
        let products: Vec<f64> = keys.chunks(dim).map(|key| dot(row, key)).collect();
        if let Some(temperature) = scan.entropy_temperature {
            let logits = products.iter().map(|p| p / f64::from(temperature));
            let all = log_sum_exp(logits.clone());
            let entropy: f64 = logits.map(|l| -(l - all).exp() * (l - all)).sum();
            result.entropy.push(entropy as f32);
            result.log_sum.push(all);
        }
        let mut found: Vec<(f32, u32)> = (0..n)
            .filter(|key| !(scan.same && *key == query))
            .map(|key| (products[key] as f32, key as u32))
            .collect();
        found.sort_by(|a, b| b.0.partial_cmp(&a.0).expect("finite").then(a.1.cmp(&b.1)));
        for (similarity, key) in found.into_iter().take(result.neighbours.k) {
            result.neighbours.indices.push(key);
            result.neighbours.similarities.push(similarity);
        }
    }
    result
}
