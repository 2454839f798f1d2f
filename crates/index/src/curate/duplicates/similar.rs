//! What vectors alone say: every pair of pictures above a similarity.
//!
//! Each picture's nearest are asked for, and of those that are all above the similarity more, until
//! one is not: no pair is missed, and the matrix of all pairs never exists.

use anchorhood_engine::{Device, Scan};

use crate::SearchError;

/// Neighbours asked for at first: few pictures have more copies.
const FIRST: usize = 8;

/// Two pictures whose vectors are nearly the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The picture with the lower index.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// How similar they are.
    pub similarity: f32,
}

/// Every pair of vectors of unit length whose similarity is at least `above`, the most similar
/// first. `progress` is told how many vectors have been looked at.
pub fn similar_pairs(
    device: &Device,
    vectors: &[f32],
    dim: usize,
    above: f32,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Pair>, SearchError> {
    let n = vectors.len() / dim;
    let keys = device.upload(vectors)?;
    let mut pairs = vec![];
    let mut scan =
        Scan { dim, entropy_temperature: None, k: FIRST.min(n.saturating_sub(1)), same: true };
    if scan.k == 0 {
        return Ok(pairs);
    }
    let found = device.scan(&keys, &keys, &scan, progress)?.neighbours;
    let mut open: Vec<usize> = vec![];
    for i in 0..n {
        let similar = found.similarities_of(i);
        if similar.last().is_some_and(|s| *s >= above) && found.k + 1 < n {
            open.push(i);
        } else {
            add(&mut pairs, i, found.of(i), similar, above);
        }
    }
    scan.same = false; // from here on some ask, and each finds itself
    while !open.is_empty() {
        scan.k = (scan.k * 4).min(n);
        let mut still = vec![];
        // In parts, so that what is found never takes more memory than the vectors do.
        for part in open.chunks((n * dim / (2 * scan.k)).max(1)) {
            let rows: Vec<f32> =
                part.iter().flat_map(|i| vectors[i * dim..][..dim].iter().copied()).collect();
            let found = device.scan(&device.upload(&rows)?, &keys, &scan, &|_| {})?;
            let found = found.neighbours;
            for (row, i) in part.iter().enumerate() {
                let similar = found.similarities_of(row);
                if similar.last().is_some_and(|s| *s >= above) && found.k < n {
                    still.push(*i);
                } else {
                    add(&mut pairs, *i, found.of(row), similar, above);
                }
            }
        }
        open = still;
    }
    pairs.sort_by(|a, b| {
        let similar = b.similarity.total_cmp(&a.similarity);
        similar.then((a.first, a.second).cmp(&(b.first, b.second)))
    });
    Ok(pairs)
}

/// A pair is added by its lower member alone: both report it, up to rounding.
fn add(pairs: &mut Vec<Pair>, i: usize, others: &[u32], similar: &[f32], above: f32) {
    for (j, similarity) in others.iter().zip(similar) {
        let j = *j as usize;
        if i < j && *similarity >= above {
            pairs.push(Pair { first: i, second: j, similarity: *similarity });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::vectors::to_unit_length;
    use anchorhood_storage::random::{Draws, Stream};

    /// 300 vectors of which 60 are near copies of the first and some of others, against plain
    /// loops.
    #[test]
    fn no_pair_is_missed() {
        let draws = Draws::new(1, Stream::Test, 0, 0);
        let dim = 16;
        let mut noise = vec![0.0; 300 * dim];
        draws.fill_symmetric(&mut noise, 1.0);
        to_unit_length(&mut noise, dim);
        let mut rows: Vec<Vec<f32>> = noise.chunks(dim).map(<[f32]>::to_vec).collect();
        for i in 0..90 {
            let like = if i < 60 { 0 } else { 1 + i % 7 };
            let near = rows[like].iter().zip(&rows[200 + i]);
            rows[100 + i] = near.map(|(a, b)| a + 0.03 * b).collect();
            to_unit_length(&mut rows[100 + i], dim);
        }
        let vectors: Vec<f32> = rows.concat();
        let found = similar_pairs(&Device::cpu(1), &vectors, dim, 0.98, &|_| {}).unwrap();
        let mut expected = 0;
        for i in 0..300 {
            for j in i + 1..300 {
                let s: f32 = rows[i].iter().zip(&rows[j]).map(|(a, b)| a * b).sum();
                let has = found.iter().any(|p| (p.first, p.second) == (i, j));
                assert_eq!(has, s >= 0.98, "{i} {j}: {s}");
                expected += usize::from(has);
            }
        }
        assert_eq!(found.len(), expected);
        assert!(expected > 61 * 60 / 2);
    }

    #[test]
    fn one_picture_has_no_duplicate_and_two_may() {
        let device = Device::cpu(1);
        assert_eq!(similar_pairs(&device, &[1.0, 0.0], 2, 0.9, &|_| {}).unwrap(), []);
        let both = similar_pairs(&device, &[1.0, 0.0, 1.0, 0.0], 2, 0.9, &|_| {}).unwrap();
        assert_eq!(both.len(), 1);
    }
}
