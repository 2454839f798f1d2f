//! Eigenvalues and eigenvectors of a symmetric matrix: Householder's reflections to a tridiagonal
//! one, then the implicit QL method (Golub & Van Loan, *Matrix Computations*, 8.3).
//!
//! By hand, since it is two short functions and the only linear algebra here: faer would bring some
//! thirty crates, and the largest matrix there is takes seconds.

use pulp::Arch;
use rayon::prelude::*;

use crate::vectors::dot::{LANES, dot};

/// Rows that are worth a thread's while.
const ROWS: usize = 64;
/// Rows that go through all reflections together: as many as a core's cache holds.
const TOGETHER: usize = 8;
/// Steps that an eigenvalue is given, at most; two are usual.
const MOST_STEPS: usize = 60;

/// A symmetric matrix taken apart.
pub(crate) struct Eigen {
    /// In no order.
    pub values: Vec<f64>,
    /// One after the other, of unit length, each as long as there are values.
    pub vectors: Vec<f64>,
}

impl Eigen {
    /// Takes apart an `n`×`n` matrix; none where it holds what is no number.
    pub(crate) fn of(mut matrix: Vec<f64>, n: usize) -> Option<Eigen> {
        let reflections = to_tridiagonal(&mut matrix, n);
        let mut values: Vec<f64> = (0..n).map(|i| matrix[i * n + i]).collect();
        let mut beside: Vec<f64> = (1..n).map(|i| matrix[i * n + i - 1]).collect();
        beside.push(0.0);
        let mut vectors = vec![0.0; n * n];
        vectors.iter_mut().step_by(n + 1).for_each(|v| *v = 1.0);
        vectors.par_chunks_mut(TOGETHER * n.max(1)).for_each(|rows| {
            Arch::new().dispatch(|| {
                for v in reflections.iter().rev() {
                    rows.chunks_exact_mut(n).for_each(|row| reflect(&mut row[n - v.len()..], v));
                }
            });
        });
        let finite = values.iter().chain(&beside).all(|v| v.is_finite());
        (finite && implicit_ql(&mut values, &mut beside, &mut vectors))
            .then_some(Eigen { values, vectors })
    }
}

/// A matrix H₀ … M … H₀ that has values beside its diagonal only; the reflections' vectors, of unit
/// length or zero, without most of the zeros that each begins with.
fn to_tridiagonal(matrix: &mut [f64], n: usize) -> Vec<Vec<f64>> {
    let mut reflections = vec![];
    for k in 0..n.saturating_sub(2) {
        let start = k / LANES * LANES;
        let mut v = vec![0.0; n - start];
        for i in k + 1..n {
            v[i - start] = matrix[i * n + k];
        }
        let length = dot(&v, &v).sqrt();
        v[k + 1 - start] += length.copysign(v[k + 1 - start]);
        let length = dot(&v, &v).sqrt();
        if length > 0.0 {
            v.iter_mut().for_each(|v| *v /= length);
            reflect_both_sides(matrix, n, &v);
        }
        reflections.push(v);
    }
    reflections
}

/// M ← H M H with H = I − 2vvᵀ, which is M − 2(vwᵀ + wvᵀ) with p = Mv and w = p − (v·p)v; as much
/// of M as v is long, its end.
fn reflect_both_sides(matrix: &mut [f64], n: usize, v: &[f64]) {
    let (arch, start) = (Arch::new(), n - v.len());
    let matrix = &mut matrix[start * n..];
    let rows = matrix.par_chunks_exact(n).with_min_len(ROWS);
    let mut w: Vec<f64> = rows.map(|row| arch.dispatch(|| dot(&row[start..], v))).collect();
    let along = dot(v, &w);
    w.iter_mut().zip(v).for_each(|(w, v)| *w -= along * v);
    let rows = matrix.par_chunks_exact_mut(n).with_min_len(ROWS).enumerate();
    rows.for_each(|(i, row)| {
        let (vi, wi) = (2.0 * v[i], 2.0 * w[i]);
        arch.dispatch(|| {
            for ((m, v), w) in row[start..].iter_mut().zip(v).zip(&w) {
                *m -= vi * w + wi * v;
            }
        });
    });
}

#[inline(always)]
fn reflect(row: &mut [f64], v: &[f64]) {
    let twice = 2.0 * dot(row, v);
    row.iter_mut().zip(v).for_each(|(r, v)| *r -= twice * v);
}

/// Makes a tridiagonal matrix diagonal: `values` on it, `beside` it; rows of `vectors` are turned
/// with it. Whether it ended.
fn implicit_ql(values: &mut [f64], beside: &mut [f64], vectors: &mut [f64]) -> bool {
    let n = values.len();
    for l in 0..n {
        let mut steps = 0;
        loop {
            let m = (l..n - 1).find(|m| is_nothing(beside[*m], values[*m], values[m + 1]));
            let m = m.unwrap_or(n - 1);
            if m == l {
                break;
            }
            steps += 1;
            if steps > MOST_STEPS {
                return false;
            }
            ql_step(values, beside, vectors, l..m);
        }
    }
    true
}

fn is_nothing(value: f64, one: f64, other: f64) -> bool {
    value.abs() <= f64::EPSILON * (one.abs() + other.abs())
}

/// One step on the rows and columns of a range and the next, which hang together.
fn ql_step(
    values: &mut [f64],
    beside: &mut [f64],
    vectors: &mut [f64],
    range: std::ops::Range<usize>,
) {
    let (l, m, n) = (range.start, range.end, values.len());
    let shift = (values[l + 1] - values[l]) / (2.0 * beside[l]);
    let root = shift.hypot(1.0).copysign(shift);
    let mut g = values[m] - values[l] + beside[l] / (shift + root);
    let (mut sine, mut cosine, mut moved) = (1.0, 1.0, 0.0);
    let arch = Arch::new();
    for i in range.rev() {
        let (f, b) = (sine * beside[i], cosine * beside[i]);
        let r = f.hypot(g);
        beside[i + 1] = r;
        if r == 0.0 {
            values[i + 1] -= moved;
            beside[m] = 0.0;
            return;
        }
        (sine, cosine) = (f / r, g / r);
        g = values[i + 1] - moved;
        let turned = (values[i] - g) * sine + 2.0 * cosine * b;
        moved = sine * turned;
        values[i + 1] = g + moved;
        g = cosine * turned - b;
        let (one, other) = vectors[i * n..(i + 2) * n].split_at_mut(n);
        arch.dispatch(|| {
            for (a, b) in one.iter_mut().zip(other) {
                (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
            }
        });
    }
    values[l] -= moved;
    beside[l] = g;
    beside[m] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::random::{Draws, Stream};

    /// A vector times the matrix is the vector times its value, and vectors are at right angles.
    fn check(matrix: &[f64], n: usize) {
        let eigen = Eigen::of(matrix.to_vec(), n).unwrap();
        let largest = eigen.values.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
        for (i, value) in eigen.values.iter().enumerate() {
            let vector = &eigen.vectors[i * n..(i + 1) * n];
            for (row, v) in matrix.chunks_exact(n).zip(vector) {
                assert!((dot(row, vector) - value * v).abs() <= 1e-12 * largest * n as f64);
            }
            for j in 0..n {
                let other = &eigen.vectors[j * n..(j + 1) * n];
                let expected = f64::from(u8::from(i == j));
                assert!((dot(vector, other) - expected).abs() < 1e-12 * n as f64);
            }
        }
    }

    #[test]
    fn matrices_are_taken_apart() {
        let draws = Draws::new(0, Stream::Test, 0, 0);
        for n in [1, 2, 3, 7, 40, 100] {
            let random: Vec<f64> =
                (0..n * n).map(|i| f64::from(draws.word(i as u64)) / 2e9 - 1.0).collect();
            let symmetric = |i: usize| random[i] + random[(i % n) * n + i / n];
            let matrix: Vec<f64> = (0..n * n).map(symmetric).collect();
            check(&matrix, n);
            // Of rank 1, with n − 1 values that are 0.
            let outer = |i: usize| random[i / n] * random[i % n];
            check(&(0..n * n).map(outer).collect::<Vec<_>>(), n);
        }
    }

    #[test]
    fn diagonal_matrices_are_as_they_are_and_no_numbers_are_refused() {
        let mut diagonal = vec![0.0; 25];
        (0..5).for_each(|i| diagonal[6 * i] = i as f64 - 2.0);
        check(&diagonal, 5);
        check(&[0.0; 16], 4);
        assert_eq!(Eigen::of(diagonal.clone(), 5).unwrap().values, [-2.0, -1.0, 0.0, 1.0, 2.0]);
        for (place, value) in [(6, f64::NAN), (1, f64::INFINITY)] {
            diagonal[place] = value;
            assert!(Eigen::of(diagonal.clone(), 5).is_none());
        }
        assert!(Eigen::of(vec![], 0).unwrap().values.is_empty());
    }
}
