//! Features whose directions count alike.
//!
//! What a network makes of pictures differs much along a few directions and little along the
//! others, and cosines hear the loud ones alone. With μ the mean and V diag(λ) Vᵀ the covariance of
//! features, their scale along each direction is divided by a power of its deviation:
//!
//! ```text
//! y = diag((λ + ε)^(−p/2)) Vᵀ (x − μ)
//! ```
//!
//! With p = 1 all directions count the same, and noise as much as what matters; with p = 0 nothing
//! is changed but the mean. It is a linear map, so a network carries it as its last layer. Values
//! come in the order of how much pictures differ in them.

use crate::{Communicator, Result};
use rayon::prelude::*;

use crate::vectors::dot::dot_products;
use crate::vectors::eigen::Eigen;
use crate::vectors::shared_rows::SharedRows;

/// The variance that no direction has less than, as a share of their mean.
const LEAST: f64 = 0.01;
/// Rows that it is found from, at most.
const ROWS: usize = 4096;
/// Rows whose products are summed in single precision.
const CHUNK: usize = 1024;

/// A linear map, y = Wx + b.
#[derive(Clone, Debug, PartialEq)]
pub struct Whitening {
    /// W: a row for each value of the result.
    pub weight: Vec<f32>,
    /// b.
    pub bias: Vec<f32>,
}

impl Whitening {
    /// Values of a feature, at most: as many as ResNet50's, whose eigenvectors take 15 s of a
    /// core's time. It grows as their cube, and beyond this is longer than a judgement should take.
    pub const MOST: usize = 2048;

    /// Which of `n` rows it is found from: all, or some of many, as far from each other as can be.
    /// More change it little.
    pub fn sample(n: usize) -> impl Iterator<Item = usize> {
        let count = n.min(ROWS);
        (0..count).map(move |i| i * n / count)
    }

    /// What features, rows of `dim` values, ask for, to the power `power`. None where nothing can
    /// be said of them: fewer than two, more values than [`Whitening::MOST`], all the same, or no
    /// numbers.
    pub fn of(features: &[f32], dim: usize, power: f64) -> Option<Whitening> {
        let n = features.len() / dim.max(1);
        if n < 2 || dim == 0 || dim > Whitening::MOST {
            return None;
        }
        let rows = Whitening::sample(n).flat_map(|i| &features[i * dim..(i + 1) * dim]);
        Whitening::of_sample(rows.copied().collect(), dim, power)
    }

    /// The same of features of which each process has its own: the same map for all, and the one
    /// that a process with all of them would find.
    pub fn of_all(
        together: &Communicator,
        own: &[f32],
        dim: usize,
        power: f64,
    ) -> Result<Option<Whitening>> {
        let all = SharedRows::new(together, own, dim.max(1))?;
        if all.len() < 2 || dim == 0 || dim > Whitening::MOST {
            return Ok(None);
        }
        let sample = all.some(Whitening::sample(all.len()))?;
        let first = together.is_first().then_some(sample);
        let found = first.and_then(|sample| Whitening::of_sample(sample, dim, power));
        Whitening::of_first(found, dim, together)
    }

    fn of_sample(features: Vec<f32>, dim: usize, power: f64) -> Option<Whitening> {
        let mean = mean(&features, dim);
        let Eigen { values, vectors } = Eigen::of(covariance(&features, &mean), dim)?;
        let least = LEAST * values.iter().sum::<f64>() / dim as f64;
        if least <= 0.0 {
            return None;
        }
        let mut order: Vec<usize> = (0..dim).collect();
        order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        let (mut weight, mut bias) = (Vec::with_capacity(dim * dim), Vec::with_capacity(dim));
        for i in order {
            let vector = &vectors[i * dim..(i + 1) * dim];
            let scale = (values[i].max(0.0) + least).powf(-power / 2.0);
            weight.extend(vector.iter().map(|v| (scale * v) as f32));
            let along: f64 = vector.iter().zip(&mean).map(|(v, m)| v * m).sum();
            bias.push((-scale * along) as f32);
        }
        Some(Whitening { weight, bias })
    }

    /// What the first of several processes found, for all of them.
    pub fn of_first(
        found: Option<Whitening>,
        dim: usize,
        together: &Communicator,
    ) -> Result<Option<Whitening>> {
        if together.is_single() {
            return Ok(found);
        }
        let mut all = match found {
            Some(found) => [found.weight, found.bias, vec![1.0]].concat(),
            None => vec![0.0; dim * dim + dim + 1],
        };
        together.broadcast(&mut all, 0)?;
        let there = all.pop() == Some(1.0);
        let bias = all.split_off(dim * dim);
        Ok(there.then_some(Whitening { weight: all, bias }))
    }

    /// Values of a feature.
    pub fn dim(&self) -> usize {
        self.bias.len()
    }

    /// Rows, each mapped.
    pub fn apply(&self, features: &[f32]) -> Vec<f32> {
        let mut mapped = vec![0.0; features.len()];
        let rows = mapped.par_chunks_exact_mut(self.dim());
        rows.zip(features.par_chunks_exact(self.dim())).for_each(|(out, row)| {
            dot_products(&self.weight, self.dim(), row, out);
            out.iter_mut().zip(&self.bias).for_each(|(y, b)| *y += b);
        });
        mapped
    }
}

fn mean(features: &[f32], dim: usize) -> Vec<f64> {
    let mut mean = vec![0.0; dim];
    for row in features.chunks_exact(dim) {
        mean.iter_mut().zip(row).for_each(|(m, v)| *m += f64::from(*v));
    }
    let n = (features.len() / dim) as f64;
    mean.iter_mut().for_each(|m| *m /= n);
    mean
}

fn covariance(features: &[f32], mean: &[f64]) -> Vec<f64> {
    let (dim, n) = (mean.len(), features.len() / mean.len());
    let mut sums = vec![0.0; dim * dim];
    for chunk in features.chunks(CHUNK * dim) {
        let columns = centred_columns(chunk, mean);
        let count = chunk.len() / dim;
        sums.par_chunks_exact_mut(dim).zip(columns.par_chunks_exact(count)).for_each_init(
            || vec![0.0; dim],
            |products, (sums, column)| {
                dot_products(&columns, count, column, products);
                sums.iter_mut().zip(products).for_each(|(s, p)| *s += f64::from(*p));
            },
        );
    }
    sums.iter_mut().for_each(|s| *s /= n as f64);
    sums
}

/// The rows' values less their mean, those of one place of all rows side by side.
fn centred_columns(rows: &[f32], mean: &[f64]) -> Vec<f32> {
    let dim = mean.len();
    let column = |i: usize| {
        let values = rows.iter().skip(i).step_by(dim);
        values.map(move |v| (f64::from(*v) - mean[i]) as f32)
    };
    (0..dim).flat_map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::random::{Draws, Stream};

    /// Features with directions of their own, off the mean.
    fn features(n: usize, dim: usize) -> Vec<f32> {
        let draws = Draws::new(1, Stream::Test, 0, 0);
        let mut noise = vec![0.0; n * dim + dim * dim];
        draws.fill_symmetric(&mut noise, 1.0);
        let (rows, mix) = noise.split_at(n * dim);
        let row = |row: &[f32]| {
            let mixed = mix.chunks_exact(dim).enumerate().map(|(i, m)| {
                let sum: f32 = m.iter().zip(row).map(|(a, b)| a * b).sum();
                sum / (i + 1) as f32 + 0.5
            });
            mixed.collect::<Vec<f32>>()
        };
        rows.chunks_exact(dim).flat_map(row).collect()
    }

    fn variances(rows: &[f32], dim: usize) -> (Vec<f64>, f64) {
        let all = covariance(rows, &mean(rows, dim));
        let beside = (0..dim * dim).filter(|i| i / dim != i % dim);
        let largest = beside.map(|i| all[i].abs()).fold(0.0, f64::max);
        ((0..dim).map(|i| all[i * dim + i]).collect(), largest)
    }

    #[test]
    fn variances_are_their_own_to_the_power_that_is_left() {
        let (n, dim) = (3000, 6);
        let rows = features(n, dim);
        let unchanged = Whitening::of(&rows, dim, 0.0).unwrap().apply(&rows);
        let (before, _) = variances(&unchanged, dim);
        assert!(before.is_sorted_by(|a, b| a >= b), "{before:?}");
        let least = LEAST * before.iter().sum::<f64>() / dim as f64;
        for power in [0.25, 0.5, 1.0] {
            let mapped = Whitening::of(&rows, dim, power).unwrap().apply(&rows);
            assert!(mean(&mapped, dim).iter().all(|m| m.abs() < 1e-5));
            let (after, beside) = variances(&mapped, dim);
            assert!(beside < 1e-5, "{beside}");
            for (after, before) in after.iter().zip(&before) {
                let expected = before * (before + least).powf(-power);
                assert!((after / expected - 1.0).abs() < 1e-4);
            }
        }
    }

    /// Rotations keep distances.
    #[test]
    fn without_power_distances_stay() {
        let (n, dim) = (50, 5);
        let rows = features(n, dim);
        let mapped = Whitening::of(&rows, dim, 0.0).unwrap().apply(&rows);
        let distance = |rows: &[f32], i: usize| -> f32 {
            let (a, b) = (&rows[..dim], &rows[i * dim..(i + 1) * dim]);
            a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
        };
        for i in 1..n {
            let (before, after) = (distance(&rows, i), distance(&mapped, i));
            assert!((before - after).abs() < 1e-5 * before.max(1.0));
        }
    }

    #[test]
    fn what_says_nothing_is_left_alone() {
        assert_eq!(Whitening::of(&[], 4, 0.5), None);
        assert_eq!(Whitening::of(&[1.0; 4], 4, 0.5), None); // one row
        assert_eq!(Whitening::of(&[1.0; 400], 4, 0.5), None); // all the same
        let mut rows = features(20, 4);
        rows[7] = f32::NAN;
        assert_eq!(Whitening::of(&rows, 4, 0.5), None);
        let wide = vec![1.0; 2 * (Whitening::MOST + 1)];
        assert_eq!(Whitening::of(&wide, Whitening::MOST + 1, 0.5), None);
    }

    #[test]
    fn many_rows_are_stood_for_by_some() {
        assert_eq!(Whitening::sample(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(Whitening::sample(0).count(), 0);
        let of_many: Vec<usize> = Whitening::sample(3 * ROWS).collect();
        assert_eq!((of_many.len(), of_many[1], of_many[ROWS - 1]), (ROWS, 3, 3 * (ROWS - 1)));
    }

    mod long {
        use super::*;

        /// Of fewer rows than values: these differ in fewer directions than there are.
        #[test]
        #[ignore = "long: the eigenvectors of 2,048 values take 15 s of a core's time"]
        fn as_many_values_as_resnet50_has() {
            let (n, dim) = (64, Whitening::MOST);
            let mut rows = vec![0.0; n * dim];
            Draws::new(2, Stream::Test, 0, 0).fill_symmetric(&mut rows, 1.0);
            let mapped = Whitening::of(&rows, dim, 1.0).unwrap().apply(&rows);
            let (variances, beside) = variances(&mapped, dim);
            assert!(beside < 1e-3, "{beside}");
            assert!(variances[..n - 1].iter().all(|v| (v - 1.0).abs() < 0.01), "{variances:?}");
            assert!(variances[n - 1..].iter().all(|v| *v < 1e-3), "{variances:?}");
        }
    }

    /// Dead directions are not made loud.
    #[test]
    fn directions_without_difference_stay_quiet() {
        let mut rows = features(500, 4);
        rows.chunks_exact_mut(4).for_each(|row| row[2] = 3.0);
        let whitening = Whitening::of(&rows, 4, 1.0).unwrap();
        assert!(whitening.weight.iter().all(|w| w.is_finite()));
        let (variances, _) = variances(&whitening.apply(&rows), 4);
        assert!(variances[3] < 1e-6, "{variances:?}");
    }
}
