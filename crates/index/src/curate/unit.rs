//! Vectors of unit length: made, and told from others.

/// How far the square of a vector's length may be from 1; that of zeros stays 0.
const TOLERANCE: f32 = 1e-3;

/// Appends a vector at unit length; zeros stay zeros.
pub fn extend_unit(to: &mut Vec<f32>, vector: &[f32]) {
    let square: f64 = vector.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    let scale = (1.0 / square.sqrt().max(1e-12)) as f32;
    to.extend(vector.iter().map(|v| v * scale));
}

/// The first of some vectors (rows of `dim` values) that is neither of unit length nor all zeros,
/// and its length.
pub fn first_not_unit(values: &[f32], dim: usize) -> Option<(usize, f32)> {
    let mut vectors = values.chunks_exact(dim.max(1));
    // Also where it is no number.
    let is_unit = |v: &[f32]| (square(v) - 1.0).abs() <= TOLERANCE;
    let wrong = |v: &[f32]| !(is_unit(v) || v.iter().all(|x| *x == 0.0));
    let i = vectors.clone().position(wrong)?;
    let vector = vectors.nth(i).unwrap_or_default();
    let squares = vector.iter().map(|v| f64::from(*v) * f64::from(*v));
    Some((i, squares.sum::<f64>().sqrt() as f32))
}

/// The sum of squares, in lanes that the processor adds at once.
fn square(vector: &[f32]) -> f32 {
    let (lanes, rest) = vector.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for lane in lanes {
        sums.iter_mut().zip(lane).for_each(|(s, v)| *s += v * v);
    }
    sums.iter().sum::<f32>() + rest.iter().map(|v| v * v).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_not_of_unit_length() {
        let mut rows = vec![];
        extend_unit(&mut rows, &[3.0, 4.0]);
        extend_unit(&mut rows, &[0.0, 0.0]);
        assert_eq!(rows, [0.6, 0.8, 0.0, 0.0]);
        assert_eq!(first_not_unit(&rows, 2), None);
        rows.extend([3.0, 4.0, f32::NAN, 0.0]);
        assert_eq!(first_not_unit(&rows, 2), Some((2, 5.0)));
        assert!(first_not_unit(&rows[6..], 2).is_some_and(|(_, length)| length.is_nan()));
    }
}
