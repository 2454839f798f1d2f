//! Logistic regression on vectors: a line between classes where there are few labels, in place of a
//! vote.
//!
//! Multinomial, with an L2 penalty: the weights W (classes × dim) and biases b that minimise
//! C Σᵢ −log softmax(W xᵢ + b)[yᵢ] + ½ ‖W‖² over the labelled pictures. As x a vector counts less
//! the mean of all vectors, labelled or not, and divided by the root of their mean squared length,
//! times √[`SQUARE`], so that one C suits all models. The loss is convex: full-batch steps by
//! Nesterov's rule, restarted where they overshoot (O'Donoghue & Candès, 2015), with a rate from
//! the largest curvature that there can be: half the largest eigenvalue of Σ xᵢ xᵢᵀ, found by power
//! iteration.

use rayon::prelude::*;

use crate::curate::Guess;

/// How much a labelled picture counts against the penalty: higher fits the labels closer.
const C: f64 = 1.0;
/// Mean squared length of a vector as the regression sees it.
const SQUARE: f64 = 10.0;
/// Steps, at most.
const STEPS: usize = 1000;
/// Done where no number of the gradient is larger, relative to C and the number of pictures.
const ENOUGH: f64 = 1e-5;
/// Parts into which labelled pictures are divided to be guessed by the others.
const FOLDS: usize = 5;
/// Rounds of power iteration, and by how much more what they find is taken for.
const POWER: usize = 30;
const ABOVE: f64 = 1.2;
/// Rows a thread works through before it takes more; fixed, so that sums do not depend on threads.
const BLOCK: usize = 64;

/// Guesses the class of every vector from those that are labelled, in place of a vote: `votes` are
/// [`classify`](crate::curate::classify)'s, whose similarities to the nearest labelled picture stay.
/// Labelled pictures are guessed by a regression without them (five parts in turn).
pub fn classify_logistic(
    vectors: &[f32],
    dim: usize,
    labels: &[Option<u32>],
    votes: &[Guess],
) -> Vec<Guess> {
    let rows = Centred::new(vectors, dim);
    let labelled: Vec<(usize, u32)> =
        (0..labels.len()).filter_map(|i| Some((i, labels[i]?))).collect();
    let all = Regression::fit(&rows, &labelled, None);
    let mut guesses: Vec<Guess> =
        (0..labels.len()).into_par_iter().map(|i| all.guess(&rows, i, votes[i].nearest)).collect();
    let fold = folds(&labelled);
    for part in 0..FOLDS {
        let (out, others): (Vec<_>, Vec<_>) = (0..labelled.len()).partition(|at| fold[*at] == part);
        if out.is_empty() || others.is_empty() {
            continue;
        }
        let others: Vec<(usize, u32)> = others.iter().map(|at| labelled[*at]).collect();
        let without = Regression::fit(&rows, &others, Some(&all));
        for at in out {
            let i = labelled[at].0;
            guesses[i] = without.guess(&rows, i, votes[i].nearest);
        }
    }
    guesses
}

/// Which part each belongs to: of each class as many in every part as can be.
fn folds(labelled: &[(usize, u32)]) -> Vec<usize> {
    let mut counts = std::collections::HashMap::new();
    let next = |(_, class): &(usize, u32)| {
        let count: &mut usize = counts.entry(*class).or_default();
        *count += 1;
        (*count - 1) % FOLDS
    };
    labelled.iter().map(next).collect()
}

/// Vectors about their mean, all by one scale.
struct Centred<'a> {
    vectors: &'a [f32],
    dim: usize,
    mean: Vec<f64>,
    scale: f64,
}

impl<'a> Centred<'a> {
    fn new(vectors: &'a [f32], dim: usize) -> Centred<'a> {
        let n = (vectors.len() / dim).max(1) as f64;
        let mut mean = vec![0.0; dim];
        let mut squares = 0.0;
        for row in vectors.chunks_exact(dim) {
            for (m, v) in mean.iter_mut().zip(row) {
                let v = f64::from(*v);
                *m += v / n;
                squares += v * v / n;
            }
        }
        let about_mean = squares - mean.iter().map(|m| m * m).sum::<f64>();
        let scale = (SQUARE / about_mean.max(1e-9)).sqrt();
        Centred { vectors, dim, mean, scale }
    }

    fn row(&self, i: usize) -> Vec<f64> {
        let row = &self.vectors[i * self.dim..][..self.dim];
        let about = row.iter().zip(&self.mean);
        about.map(|(v, m)| (f64::from(*v) - m) * self.scale).collect()
    }
}

/// Weights of each class, the bias last.
struct Regression {
    classes: Vec<u32>,
    weights: Vec<Vec<f64>>,
}

impl Regression {
    /// Begins from another one of the same classes, where there is one: the result is the same,
    /// sooner.
    fn fit(rows: &Centred, labelled: &[(usize, u32)], near: Option<&Regression>) -> Regression {
        let mut classes: Vec<u32> = labelled.iter().map(|(_, class)| *class).collect();
        classes.sort_unstable();
        classes.dedup();
        let examples: Vec<(Vec<f64>, usize)> = labelled
            .iter()
            .map(|(i, class)| {
                let mut row = rows.row(*i);
                row.push(1.0);
                (row, classes.binary_search(class).unwrap_or_default())
            })
            .collect();
        let begin = match near.filter(|near| near.classes == classes) {
            Some(near) => near.weights.clone(),
            None => vec![vec![0.0; rows.dim + 1]; classes.len()],
        };
        let weights = minimise(&examples, begin, C);
        Regression { classes, weights }
    }

    fn guess(&self, rows: &Centred, i: usize, nearest: f32) -> Guess {
        let mut row = rows.row(i);
        row.push(1.0);
        Guess::of(&softmax(&self.weights, &row), |at| self.classes[at], nearest)
    }
}

/// In eight sums, so that they can be made side by side.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, last_a), (b, last_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let last: f64 = last_a.iter().zip(last_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + last
}

fn softmax(weights: &[Vec<f64>], row: &[f64]) -> Vec<f64> {
    let mut shares: Vec<f64> = weights.iter().map(|w| dot(w, row)).collect();
    let most = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    shares.iter_mut().for_each(|s| *s = (*s - most).exp());
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|s| *s /= sum);
    shares
}

/// The gradient at some weights.
fn gradient(examples: &[(Vec<f64>, usize)], weights: &[Vec<f64>], c: f64) -> Vec<Vec<f64>> {
    let width = weights[0].len();
    let part = |block: &[(Vec<f64>, usize)]| {
        let mut sum = vec![vec![0.0; width]; weights.len()];
        for (row, class) in block {
            let mut shares = softmax(weights, row);
            shares[*class] -= 1.0;
            for (sum, share) in sum.iter_mut().zip(shares) {
                sum.iter_mut().zip(row).for_each(|(s, v)| *s += c * share * v);
            }
        }
        sum
    };
    let parts: Vec<Vec<Vec<f64>>> = examples.par_chunks(BLOCK).map(part).collect();
    // The penalty, which spares the bias.
    let mut all: Vec<Vec<f64>> = weights.to_vec();
    all.iter_mut().for_each(|row| row[width - 1] = 0.0);
    for part in parts {
        for (all, part) in all.iter_mut().zip(part) {
            all.iter_mut().zip(part).for_each(|(a, p)| *a += p);
        }
    }
    all
}

/// The largest eigenvalue of Σ x xᵀ, from above: power iteration comes to it from below, and never
/// to more than the trace.
fn largest_eigenvalue(examples: &[(Vec<f64>, usize)]) -> f64 {
    let trace: f64 = examples.iter().map(|(row, _)| dot(row, row)).sum();
    let width = examples.first().map_or(0, |(row, _)| row.len());
    let mut direction = vec![1.0; width];
    let mut found = trace;
    for _ in 0..POWER {
        let mut next = vec![0.0; width];
        for (row, _) in examples {
            let along = dot(row, &direction);
            next.iter_mut().zip(row).for_each(|(n, v)| *n += along * v);
        }
        let (length, before) = (dot(&next, &next).sqrt(), dot(&direction, &direction).sqrt());
        found = length / before.max(f64::MIN_POSITIVE);
        if length < f64::MIN_POSITIVE {
            return trace; // the first direction was none of theirs
        }
        next.iter_mut().for_each(|n| *n /= length);
        direction = next;
    }
    (ABOVE * found).min(trace)
}

fn minimise(examples: &[(Vec<f64>, usize)], begin: Vec<Vec<f64>>, c: f64) -> Vec<Vec<f64>> {
    // The softmax curves by at most a half along any direction.
    let rate = 1.0 / (0.5 * c * largest_eigenvalue(examples) + 1.0);
    let mut weights = begin;
    let mut ahead = weights.clone();
    let mut momentum = 1.0_f64;
    for _ in 0..STEPS {
        let slope = gradient(examples, &ahead, c);
        let steepest = slope.iter().flatten().fold(0.0_f64, |a, b| a.max(b.abs()));
        if steepest <= ENOUGH * c * examples.len() as f64 {
            break;
        }
        let next: Vec<Vec<f64>> = combined(&ahead, &slope, -rate);
        let moved = combined(&next, &weights, -1.0);
        let products = slope.iter().flatten().zip(moved.iter().flatten());
        let uphill = products.map(|(a, b)| a * b).sum::<f64>() > 0.0;
        let later = match uphill {
            true => 1.0,
            false => (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) / 2.0,
        };
        let keep = if uphill { 0.0 } else { (momentum - 1.0) / later };
        ahead = combined(&next, &moved, keep);
        (weights, momentum) = (next, later);
    }
    weights
}

/// a + factor · b.
fn combined(a: &[Vec<f64>], b: &[Vec<f64>], factor: f64) -> Vec<Vec<f64>> {
    let row =
        |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a + factor * b).collect();
    a.iter().zip(b).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(n: usize) -> Vec<Guess> {
        let guess = Guess { class: 0, confidence: 1.0, second: None, nearest: 0.5 };
        vec![guess; n]
    }

    /// The loss whose gradient is followed.
    fn loss(examples: &[(Vec<f64>, usize)], weights: &[Vec<f64>], c: f64) -> f64 {
        let fit = examples.iter().map(|(row, class)| -softmax(weights, row)[*class].ln());
        let squares = weights.iter().flat_map(|w| &w[..w.len() - 1]).map(|w| w * w);
        c * fit.sum::<f64>() + squares.sum::<f64>() / 2.0
    }

    fn examples() -> Vec<(Vec<f64>, usize)> {
        let rows = [[0.5, 1.0], [1.5, -1.0], [-1.0, 0.3], [-0.7, -2.0], [0.1, 0.2]];
        let rows = rows.map(|[a, b]| vec![a, b, 1.0]);
        rows.into_iter().zip([0, 0, 1, 2, 1]).collect()
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let weights = vec![vec![0.3, -0.2, 0.1], vec![-0.5, 0.4, 0.0], vec![0.2, 0.1, -0.3]];
        let slope = gradient(&examples(), &weights, 0.7);
        for class in 0..3 {
            for at in 0..3 {
                let moved = |by: f64| {
                    let mut weights = weights.clone();
                    weights[class][at] += by;
                    loss(&examples(), &weights, 0.7)
                };
                let finite = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope[class][at] - finite).abs() < 1e-7, "{class} {at}");
            }
        }
    }

    #[test]
    fn the_end_is_the_lowest_point() {
        let weights = minimise(&examples(), vec![vec![0.0; 3]; 3], 2.0);
        let again = minimise(&examples(), vec![vec![0.5, -1.0, 2.0]; 3], 2.0);
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-3;
        let without_bias =
            |w: &[Vec<f64>]| -> Vec<f64> { w.iter().flat_map(|w| w[..2].to_vec()).collect() };
        let (ours, other) = (without_bias(&weights), without_bias(&again));
        assert!(ours.iter().zip(&other).all(near), "from anywhere: {ours:?} {other:?}");
        let slope = gradient(&examples(), &weights, 2.0);
        assert!(slope.iter().flatten().all(|s| s.abs() < 1e-3), "{slope:?}");
        let least = loss(&examples(), &weights, 2.0);
        for class in 0..3 {
            for by in [-0.01, 0.01] {
                let mut other = weights.clone();
                other[class][0] += by;
                assert!(loss(&examples(), &other, 2.0) > least);
            }
        }
    }

    #[test]
    fn the_largest_eigenvalue_is_met_from_above() {
        let of = |rows: &[[f64; 2]]| {
            let rows: Vec<_> = rows.iter().map(|row| (row.to_vec(), 0)).collect();
            largest_eigenvalue(&rows)
        };
        // 9 along (1, 1)/√2, 1 across it: together at most 10.
        let (a, b) = (3.0 / 2.0_f64.sqrt(), 1.0 / 2.0_f64.sqrt());
        let found = of(&[[a, a], [b, -b]]);
        assert!((9.0..=10.0).contains(&found), "{found}");
        assert_eq!(of(&[[1.0, -1.0]]), 2.0, "across the first direction");
        let many: Vec<[f64; 2]> =
            (0..40).map(|i| [f64::from(i).sin(), f64::from(i).cos()]).collect();
        let found = of(&many);
        assert!((20.0..25.0).contains(&found), "half of the trace: {found}");
    }

    #[test]
    fn labels_spread_along_what_tells_classes_apart() {
        // The second value is noise as large as the first; the first tells.
        let rows = [[0.6, 0.8], [0.6, -0.8], [-0.6, 0.8], [-0.6, -0.8], [0.8, 0.6], [-0.8, -0.6]];
        let vectors: Vec<f32> = rows.concat();
        let labels = [Some(3), Some(3), Some(7), Some(7), None, None];
        let guesses = classify_logistic(&vectors, 2, &labels, &votes(6));
        assert_eq!((guesses[4].class, guesses[5].class), (3, 7));
        assert!(guesses[4].confidence > 0.7);
        assert_eq!(guesses[4].second.unwrap().0, 7);
        assert_eq!(guesses[4].nearest, 0.5);
    }
}
