//! Pictures that stand for all: diverse ones to label first, by the greedy k-centre
//! (farthest-first) rule.
//!
//! The first is the medoid, the picture most like all others; each next one is the picture farthest
//! from those chosen. No picture is then farther from a chosen one than twice what the best choice
//! of as many could do (Gonzalez, 1985). The same vectors give the same choice.

use anchorhood_engine::vectors::dot_products;
use rayon::prelude::*;

/// Vectors a thread compares before it takes more.
const BLOCK: usize = 2048;

/// A picture that was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// Which.
    pub index: usize,
    /// Similarity to the most similar of those chosen before; none for the first.
    pub similarity: Option<f32>,
}

/// Up to `count` of some vectors of unit length (rows of `dim` values), the first to label first.
/// `already` are chosen before, and not given again. `progress` is told how many are chosen.
pub fn select(
    vectors: &[f32],
    dim: usize,
    count: usize,
    already: &[usize],
    progress: &mut dyn FnMut(usize),
) -> Vec<Chosen> {
    let n = vectors.len() / dim;
    // Similarity to the most similar chosen one; above all others for those chosen.
    let mut nearest = vec![f32::NEG_INFINITY; n];
    for i in already {
        choose(vectors, dim, *i, &mut nearest);
    }
    let mut chosen = vec![];
    while chosen.len() < count {
        let first = already.is_empty() && chosen.is_empty();
        let next = if first { medoid(vectors, dim) } else { farthest(&nearest) };
        let Some(index) = next else { break };
        let similarity = (!first).then_some(nearest[index]);
        chosen.push(Chosen { index, similarity });
        choose(vectors, dim, index, &mut nearest);
        progress(chosen.len());
    }
    chosen
}

/// Takes a picture: all others are no farther from the chosen than from it.
fn choose(vectors: &[f32], dim: usize, i: usize, nearest: &mut [f32]) {
    let row = &vectors[i * dim..][..dim];
    let blocks = vectors.par_chunks(BLOCK * dim);
    blocks.zip(nearest.par_chunks_mut(BLOCK)).for_each(|(rows, nearest)| {
        let mut similar = vec![0.0; nearest.len()];
        dot_products(rows, dim, row, &mut similar);
        for (nearest, similar) in nearest.iter_mut().zip(similar) {
            *nearest = nearest.max(similar);
        }
    });
    nearest[i] = f32::INFINITY;
}

/// The one that is least like its most similar chosen one; of equal ones the first. None where all
/// are chosen.
fn farthest(nearest: &[f32]) -> Option<usize> {
    let open = (0..nearest.len()).filter(|i| nearest[*i] < f32::INFINITY);
    open.min_by(|a, b| nearest[*a].total_cmp(&nearest[*b]).then(a.cmp(b)))
}

/// The one with the greatest sum of similarities, which is its product with the sum of all.
fn medoid(vectors: &[f32], dim: usize) -> Option<usize> {
    let mut sum = vec![0.0_f64; dim];
    for row in vectors.chunks_exact(dim) {
        sum.iter_mut().zip(row).for_each(|(s, v)| *s += f64::from(*v));
    }
    let product =
        |row: &[f32]| -> f64 { row.iter().zip(&sum).map(|(v, s)| f64::from(*v) * s).sum() };
    let products: Vec<f64> = vectors.chunks_exact(dim).map(product).collect();
    (0..products.len()).max_by(|a, b| products[*a].total_cmp(&products[*b]).then(b.cmp(a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(angles: &[f32]) -> Vec<f32> {
        angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect()
    }

    fn chosen(angles: &[f32], count: usize, already: &[usize]) -> Vec<usize> {
        let chosen = select(&at(angles), 2, count, already, &mut |_| {});
        chosen.iter().map(|c| c.index).collect()
    }

    #[test]
    fn the_medoid_then_the_farthest() {
        let angles = [0.0, 0.1, 0.2, 0.3, 1.5, 2.5];
        assert_eq!(chosen(&angles, 4, &[]), [3, 5, 4, 0]);
        assert_eq!(chosen(&angles, 9, &[]).len(), 6, "no more than there are");
        assert_eq!(chosen(&angles, 1, &[5]), [0]);
        assert_eq!(chosen(&angles, 2, &[0, 5]), [4, 3]);
        assert!(chosen(&[], 3, &[]).is_empty());
        let similar = select(&at(&angles), 2, 2, &[], &mut |_| {});
        assert_eq!(similar[0].similarity, None);
        assert!((similar[1].similarity.unwrap() - 2.2_f32.cos()).abs() < 1e-5);
    }

    #[test]
    fn copies_come_last() {
        let angles = [0.5, 0.5, 0.5, 0.9, 0.1];
        let all = chosen(&angles, 5, &[]);
        assert_eq!(all[..3], [0, 3, 4]);
    }
}
