//! Pictures unlike all others: those that are far from their nearest.

use anchorhood_engine::{Device, Scan};

use crate::SearchError;

/// For each vector of unit length (rows of `dim` values) how unlike the others it is: 1 less its
/// mean similarity to the `k` nearest of them; 0 for copies of one picture, about 1 for what has
/// nothing in common with anything. `progress` is told how many are done.
pub fn outlier_scores(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    k: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<f32>, SearchError> {
    let n = vectors.len() / dim;
    let scan = Scan { dim, entropy_temperature: None, k: k.min(n.saturating_sub(1)), same: true };
    if scan.k == 0 {
        return Err(SearchError::Impossible(format!(
            "{n} pictures and {k} neighbours: an outlier takes at least 2 and 1"
        )));
    }
    let rows = device.upload(vectors)?;
    let found = device.scan(&rows, &rows, &scan, progress)?.neighbours;
    let score = |i: usize| {
        let similar = found.similarities_of(i);
        1.0 - similar.iter().sum::<f32>() / similar.len() as f32
    };
    Ok((0..n).map(score).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lonely_one_has_the_highest_score() {
        let angles = [0.0_f32, 0.1, 0.2, 3.0, 0.15];
        let vectors: Vec<f32> = angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect();
        let scores = outlier_scores(&Device::cpu(1), &vectors, 2, 2, &|_| {}).unwrap();
        let most = (0..5).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        assert_eq!(most, Some(3));
        let expected = 1.0 - (2.8_f32.cos() + 2.85_f32.cos()) / 2.0;
        assert!((scores[3] - expected).abs() < 1e-5, "{scores:?}");
        let all = outlier_scores(&Device::cpu(1), &vectors, 2, 50, &|_| {}).unwrap();
        assert_eq!(all.len(), 5, "as many neighbours as there are");
        let alone = outlier_scores(&Device::cpu(1), &vectors[..2], 2, 5, &|_| {});
        assert!(alone.unwrap_err().to_string().contains("at least 2"));
    }
}
