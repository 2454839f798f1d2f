//! What the parts of a picture add up to, and what another picture must not, as plain loops in f64.

/// With φ(v, i) the row of view v of picture i of n, rows view after view, and S(i) = Σ_{v ≥ 1}
/// φ(v, i):
///
/// ```text
/// losses[i] = |S(i) − φ(0, i)|² + max(0, margin − |S(i) − φ(0, i + 1 mod n)|²)
/// ```
///
/// Losses and the gradient of weight · mean(losses) are written (`=`).
pub fn counting(
    rows: &[f64],
    dim: usize,
    views: usize,
    margin: f64,
    weight: f64,
    losses: &mut [f64],
    gradient: &mut [f64],
) {
    let n = losses.len();
    let place = |view: usize, i: usize, d: usize| (view * n + i) * dim + d;
    let apart = |i: usize, whole: usize, d: usize| {
        let parts: f64 = (1..views).map(|v| rows[place(v, i, d)]).sum();
        parts - rows[place(0, whole, d)]
    };
    gradient.fill(0.0);
    for i in 0..n {
        let other = (i + 1) % n;
        let distance = |whole| (0..dim).map(|d| apart(i, whole, d).powi(2)).sum::<f64>();
        let asked = distance(other) < margin;
        losses[i] = distance(i) + if asked { margin - distance(other) } else { 0.0 };
        for (whole, sign) in [(i, 1.0), (other, -1.0)] {
            if sign < 0.0 && !asked {
                continue;
            }
            for d in 0..dim {
                let slope = sign * 2.0 * weight / n as f64 * apart(i, whole, d);
                gradient[place(0, whole, d)] -= slope;
                for v in 1..views {
                    gradient[place(v, i, d)] += slope;
                }
            }
        }
    }
}
