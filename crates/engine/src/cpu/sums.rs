//! Sums of products in f64, in an order that depends on nothing but the length.

/// Sums that grow side by side, so that the compiler can keep them in vectors.
const LANES: usize = 8;

/// Σ a·b, to be called from code compiled for vector instructions.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (a_runs, b_runs) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_runs.remainder().iter().zip(b_runs.remainder());
    for (a, b) in a_runs.zip(b_runs) {
        for i in 0..LANES {
            lanes[i] += f64::from(a[i]) * f64::from(b[i]);
        }
    }
    let rest: f64 = rest.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    lanes.iter().sum::<f64>() + rest
}
