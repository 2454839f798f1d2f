//! Dot products of many vectors with one, by whatever vector instructions the machine has; and
//! vectors of unit length, whose dot products are cosines.

use std::iter::Sum;
use std::ops::{AddAssign, Mul};

use pulp::Arch;
use rayon::prelude::*;

/// Sums kept side by side, so that a sum need not wait for the one before.
pub(crate) const LANES: usize = 32;

/// The dot product of every row of `dim` values with the query (`out`, `=`).
pub fn dot_products(rows: &[f32], dim: usize, query: &[f32], out: &mut [f32]) {
    Arch::new().dispatch(|| {
        for (row, out) in rows.chunks_exact(dim).zip(out) {
            *out = dot(row, query);
        }
    });
}

/// The dot product of two vectors. Inlined into whatever instructions the caller was dispatched
/// for.
#[inline(always)]
pub fn dot<T: Copy + Default + Mul<Output = T> + AddAssign + Sum>(a: &[T], b: &[T]) -> T {
    let (a, rest_a) = a.as_chunks::<LANES>();
    let (b, rest_b) = b.as_chunks::<LANES>();
    let mut sums = [T::default(); LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let mut sum: T = sums.into_iter().sum();
    sum += rest_a.iter().zip(rest_b).map(|(a, b)| *a * *b).sum();
    sum
}

/// Scales each row of `dim` values to unit length, so that inner products are cosines; a row of
/// zeros stays.
pub fn to_unit_length(rows: &mut [f32], dim: usize) {
    rows.par_chunks_exact_mut(dim).for_each(|row| {
        let square: f64 = row.iter().map(|v| f64::from(*v).powi(2)).sum();
        if square > 0.0 {
            let scale = (1.0 / square.sqrt()) as f32;
            row.iter_mut().for_each(|v| *v *= scale);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::random::{Draws, Stream};

    #[test]
    fn as_plain_sums() {
        for dim in [1, 31, 32, 100] {
            let mut values = vec![0.0; 4 * dim];
            Draws::new(2, Stream::Test, 0, dim as u64).fill_symmetric(&mut values, 1.0);
            let (rows, query) = values.split_at(3 * dim);
            let mut got = [f32::NAN; 3];
            dot_products(rows, dim, query, &mut got);
            for (row, got) in rows.chunks_exact(dim).zip(got) {
                let products = row.iter().zip(query).map(|(a, b)| f64::from(a * b));
                let expected: f64 = products.sum();
                assert!((f64::from(got) - expected).abs() < 1e-5, "{got} {expected}");
            }
        }
    }
}
