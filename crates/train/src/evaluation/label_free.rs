//! How good are features, where nobody knows what is on the pictures? Four figures of pictures and
//! two changed copies of each: whether copies agree on what is near them, whether they find their
//! original, and how the pictures fill the space.

use anchorhood_engine::vectors::dot_products;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::evaluation::Rows;

/// What can be said of features without labels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelFree {
    /// Pictures that were compared, each with two copies.
    pub pictures: usize,
    /// Share of copies that have their own original among the [`LabelFree::NEIGHBOURS`] nearest of
    /// all originals.
    pub found: f64,
    /// Share of the pictures nearest to one copy that are also nearest to the other, of
    /// [`LabelFree::NEIGHBOURS`], their own original left out. Chance is the share that so many
    /// neighbours are of all pictures.
    pub agreement: f64,
    /// One number to compare by, from 0 to 1: the geometric mean of `found` and `agreement`.
    /// Features that only tell pictures apart find originals and share no neighbours; those that
    /// only sort them coarsely, the other way round.
    pub score: f64,
    /// Directions in which pictures differ: (Σλ)² / Σλ² of the covariance's eigenvalues λ, its
    /// participation ratio. 1 where all pictures lie on a line, and where they are all the same.
    pub effective_rank: f64,
    /// log mean exp(−2‖x − y‖²) over pairs of pictures (Wang & Isola 2020): 0 where all are the
    /// same, −4 where they are at right angles.
    pub uniformity: f64,
}

impl LabelFree {
    /// Neighbours that are looked at; fewer where there are not so many pictures.
    pub const NEIGHBOURS: usize = 10;

    /// Compares each row, of unit length, with its copies'.
    pub fn of(originals: &Rows, copies: [&Rows; 2]) -> LabelFree {
        let n = originals.len();
        let alike = similarities(originals, originals);
        let of_copies = copies.map(|copies| similarities(copies, originals));
        let found = of_copies.each_ref().map(|of| found(of, n));
        let (found, agreement) = ((found[0] + found[1]) / 2.0, agreement(&of_copies, n));
        LabelFree {
            pictures: n,
            found,
            agreement,
            score: (found * agreement).sqrt(),
            effective_rank: effective_rank(&alike, n),
            uniformity: uniformity(&alike, n),
        }
    }
}

/// The cosine of every row of one with every row of the other.
fn similarities(of: &Rows, with: &Rows) -> Vec<f32> {
    let mut all = vec![0.0; of.len() * with.len()];
    let each = all.par_chunks_exact_mut(with.len().max(1)).enumerate();
    each.for_each(|(i, out)| dot_products(&with.values, with.dim, of.row(i), out));
    all
}

/// A picture that is as near to a copy as its original may stand before it.
fn found(of_copies: &[f32], n: usize) -> f64 {
    let k = neighbours_among(n);
    let own = |(i, row): &(usize, &[f32])| {
        let others = row.iter().enumerate().filter(|(j, _)| j != i);
        others.filter(|(_, s)| **s >= row[*i]).count() < k
    };
    let rows = of_copies.chunks_exact(n.max(1)).enumerate();
    rows.filter(own).count() as f64 / n.max(1) as f64
}

fn neighbours_among(n: usize) -> usize {
    LabelFree::NEIGHBOURS.min(n.saturating_sub(1))
}

fn agreement([one, other]: &[Vec<f32>; 2], n: usize) -> f64 {
    let k = neighbours_among(n);
    let rows = one.par_chunks_exact(n.max(1));
    let rows = rows.zip(other.par_chunks_exact(n.max(1))).enumerate();
    let both = rows.map(|(i, (one, other))| {
        let of_other = nearest_others(other, i, k);
        let of_one = nearest_others(one, i, k);
        of_one.iter().filter(|j| of_other.contains(j)).count()
    });
    both.sum::<usize>() as f64 / (n * k).max(1) as f64
}

/// The numbers of the `k` greatest similarities but its own. Where the next is as near as some of
/// them, those are not known to be nearest, and left out: among features that are all the same
/// nobody is near.
fn nearest_others(similarities: &[f32], own: usize, k: usize) -> Vec<usize> {
    let mut others: Vec<usize> = (0..similarities.len()).filter(|j| *j != own).collect();
    if k < others.len() {
        let nearer = |a: &usize, b: &usize| similarities[*b].total_cmp(&similarities[*a]);
        let (_, next, _) = others.select_nth_unstable_by(k, nearer);
        let next = similarities[*next];
        others.truncate(k);
        others.retain(|j| similarities[*j] > next);
    }
    others
}

/// The covariance's eigenvalues are those of the pictures' centred inner products: their sum is the
/// trace, and the sum of their squares that of all entries squared.
fn effective_rank(alike: &[f32], n: usize) -> f64 {
    let means: Vec<f64> = alike.par_chunks_exact(n.max(1)).map(mean).collect();
    let whole = means.iter().sum::<f64>() / n.max(1) as f64;
    let of_row = |(i, row): (usize, &[f32])| {
        let centred = |(j, s): (usize, &f32)| f64::from(*s) - means[i] - means[j] + whole;
        let squares: f64 = row.iter().enumerate().map(|s| centred(s).powi(2)).sum();
        (centred((i, &row[i])), squares)
    };
    let rows: Vec<(f64, f64)> = alike.par_chunks_exact(n.max(1)).enumerate().map(of_row).collect();
    let trace: f64 = rows.iter().map(|r| r.0).sum();
    let squares: f64 = rows.iter().map(|r| r.1).sum();
    // Pictures that differ by less than the numbers' own noise do not differ.
    if trace > 1e-5 * n as f64 { trace * trace / squares } else { 1.0 }
}

fn mean(row: &[f32]) -> f64 {
    row.iter().map(|s| f64::from(*s)).sum::<f64>() / row.len() as f64
}

fn uniformity(alike: &[f32], n: usize) -> f64 {
    let near = |s: &f32| (-4.0 * (1.0 - f64::from(*s))).exp(); // ‖x − y‖² is 2 − 2 cos
    let of_row = |(i, row): (usize, &[f32])| {
        let others = row.iter().enumerate().filter(|(j, _)| *j != i);
        others.map(|(_, s)| near(s)).sum::<f64>()
    };
    let rows: Vec<f64> = alike.par_chunks_exact(n.max(1)).enumerate().map(of_row).collect();
    let pairs = (n * n.saturating_sub(1)).max(1) as f64;
    (rows.iter().sum::<f64>() / pairs).max(f64::MIN_POSITIVE).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::random::{Draws, Stream};

    fn rows(dim: usize, values: Vec<f32>) -> Rows {
        let mut rows = Rows::new(values, dim);
        rows.to_unit_length();
        rows
    }

    fn drawn(n: usize, dim: usize, item: u64) -> Vec<f32> {
        let mut values = vec![0.0; n * dim];
        Draws::new(1, Stream::Test, 0, item).fill_symmetric(&mut values, 1.0);
        values
    }

    /// Rows, and copies that differ from them by so much noise.
    fn noisy(n: usize, dim: usize, noise: f32) -> (Rows, [Rows; 2]) {
        let own = drawn(n, dim, 0);
        let copies = [1, 2].map(|item| {
            let other = drawn(n, dim, item);
            let copies = own.iter().zip(&other).map(|(a, b)| a + noise * b);
            rows(dim, copies.collect())
        });
        (rows(dim, own), copies)
    }

    fn distance(a: &[f32], b: &[f32]) -> f64 {
        let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
        squares.sum::<f64>()
    }

    /// By distances, sorted lists and a covariance matrix, in f64.
    fn naive(originals: &Rows, copies: &[Rows; 2]) -> LabelFree {
        let (n, dim) = (originals.len(), originals.dim);
        let nearest = |from: &[f32], but: Option<usize>| {
            let mut all: Vec<usize> = (0..n).filter(|j| Some(*j) != but).collect();
            all.sort_by(|a, b| {
                let [a, b] = [a, b].map(|j| distance(from, originals.row(*j)));
                a.total_cmp(&b)
            });
            all
        };
        let all = copies.iter().flat_map(|c| (0..n).map(|i| (i, c.row(i))));
        let k = 10.min(n - 1);
        let among = |(i, row): &(usize, &[f32])| nearest(row, None)[..k].contains(i);
        let found = all.filter(among).count();
        let shared = |i: usize| {
            let [a, b] = [0, 1].map(|c: usize| nearest(copies[c].row(i), Some(i))[..k].to_vec());
            a.iter().filter(|j| b.contains(j)).count()
        };
        let column = |c: usize| (0..n).map(move |i| f64::from(originals.row(i)[c]));
        let mean: Vec<f64> = (0..dim).map(|c| column(c).sum::<f64>() / n as f64).collect();
        let covariance = |a: usize, b: usize| {
            let pairs = column(a).zip(column(b));
            pairs.map(|(x, y)| (x - mean[a]) * (y - mean[b])).sum::<f64>()
        };
        let trace: f64 = (0..dim).map(|c| covariance(c, c)).sum();
        let entries = (0..dim * dim).map(|i| covariance(i / dim, i % dim));
        let pairs = (0..n).flat_map(|i| (0..n).filter(move |j| *j != i).map(move |j| (i, j)));
        let near = pairs.map(|(i, j)| (-2.0 * distance(originals.row(i), originals.row(j))).exp());
        let found = found as f64 / (2 * n) as f64;
        let agreement = (0..n).map(shared).sum::<usize>() as f64 / (n * k) as f64;
        LabelFree {
            pictures: n,
            found,
            agreement,
            score: (found * agreement).sqrt(),
            effective_rank: trace * trace / entries.map(|v| v * v).sum::<f64>(),
            uniformity: (near.sum::<f64>() / (n * (n - 1)) as f64).ln(),
        }
    }

    #[test]
    fn as_plain_sums() {
        for (n, dim, noise) in [(40, 5, 0.3), (8, 33, 1.0), (60, 3, 0.05), (2, 4, 0.1)] {
            let (originals, copies) = noisy(n, dim, noise);
            let ours = LabelFree::of(&originals, copies.each_ref());
            let right = naive(&originals, &copies);
            assert_eq!(ours.pictures, n);
            for (ours, right) in [
                (ours.agreement, right.agreement),
                (ours.found, right.found),
                (ours.score, right.score),
                (ours.effective_rank, right.effective_rank),
                (ours.uniformity, right.uniformity),
            ] {
                assert!((ours - right).abs() < 1e-3 * right.abs().max(0.1), "{ours} {right}");
            }
        }
    }

    #[test]
    fn copies_that_are_the_same_find_everything_and_those_of_nothing_nothing() {
        let (originals, _) = noisy(200, 8, 0.0);
        let figures = LabelFree::of(&originals, [&originals; 2]);
        assert_eq!(figures.score, 1.0);
        assert!(figures.effective_rank > 6.0 && figures.effective_rank <= 8.0);
        let others = [1, 2].map(|item| rows(8, drawn(200, 8, item)));
        let figures = LabelFree::of(&originals, others.each_ref());
        let chance = 10.0 / 199.0;
        assert!((figures.agreement - chance).abs() < 0.3 * chance);
        assert!((figures.found - chance).abs() < 0.8 * chance);
    }

    #[test]
    fn a_collapsed_network_finds_nothing() {
        let same = rows(4, [1.0, 2.0, 3.0, 4.0].repeat(50));
        let figures = LabelFree::of(&same, [&same; 2]);
        assert_eq!((figures.found, figures.agreement), (0.0, 0.0));
        assert_eq!(figures.effective_rank, 1.0);
        assert!(figures.uniformity.abs() < 1e-5);
        // Two ends of a line.
        let line = rows(2, [1.0, 0.0, -1.0, 0.0].repeat(25));
        let figures = LabelFree::of(&line, [&line; 2]);
        assert!((figures.effective_rank - 1.0).abs() < 1e-6);
        assert_eq!((figures.found, figures.agreement), (0.0, 0.0));
    }

    #[test]
    fn none_and_one_are_no_reason_to_fail() {
        for n in [0, 1] {
            let few = rows(2, [1.0, 0.0].repeat(n));
            let figures = LabelFree::of(&few, [&few; 2]);
            assert_eq!((figures.pictures, figures.agreement), (n, 0.0));
            assert!(figures.effective_rank.is_finite() && figures.uniformity.is_finite());
        }
    }
}
