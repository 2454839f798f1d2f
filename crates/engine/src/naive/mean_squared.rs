//! The mean squared error of rows, as plain loops in f64.

/// `losses[r]` = the mean over row r of (a − b)², and the gradient of weight · mean(losses) with
/// respect to a alone: weight / R · 2·(a − b) / dim. Both are written (`=`).
pub fn mean_squared(
    a: &[f64],
    b: &[f64],
    dim: usize,
    weight: f64,
    losses: &mut [f64],
    gradient: &mut [f64],
) {
    let scale = weight / (losses.len() * dim) as f64;
    losses.fill(0.0);
    for i in 0..a.len() {
        let difference = a[i] - b[i];
        losses[i / dim] += difference * difference / dim as f64;
        gradient[i] = scale * 2.0 * difference;
    }
}
