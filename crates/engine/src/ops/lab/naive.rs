//! Colours of all places, as plain loops in f64.

/// X, Y and Z of red, green and blue, each divided by white's: rows add up to 1.
const M: [[f64; 3]; 3] = [
    [0.412_456_4 / 0.950_47, 0.357_576_1 / 0.950_47, 0.180_437_5 / 0.950_47],
    [0.212_672_9, 0.715_152_2, 0.072_175],
    [0.019_333_9 / 1.088_83, 0.119_192 / 1.088_83, 0.950_304_1 / 1.088_83],
];

/// The result as a linear map of f(X), f(Y), f(Z), but for the constant −16 / 50 − 1 of L.
const OF_F: [[f64; 3]; 3] = [
    [0.0, 116.0 / 50.0, 0.0],
    [500.0 / 110.0, -500.0 / 110.0, 0.0],
    [0.0, 200.0 / 110.0, -200.0 / 110.0],
];

/// What is added to L.
const OF_L: f64 = -16.0 / 50.0 - 1.0;

const DELTA: f64 = 6.0 / 29.0;

/// The colours of all places.
pub fn forward(x: &[f64], mean: &[f64], std: &[f64]) -> Vec<f64> {
    let place = |x: &[f64]| {
        let (t, _) = xyz(x, mean, std);
        let f = t.map(|t| f(t).0);
        let lab = OF_F.map(|row| (0..3).map(|k| row[k] * f[k]).sum::<f64>());
        [lab[0] + OF_L, lab[1], lab[2]]
    };
    x.chunks(3).flat_map(place).collect()
}

/// The gradient of the input.
pub fn backward(x: &[f64], mean: &[f64], std: &[f64], dy: &[f64]) -> Vec<f64> {
    let place = |(x, dy): (&[f64], &[f64])| {
        let (t, slopes) = xyz(x, mean, std);
        let dt: [f64; 3] =
            std::array::from_fn(|k| f(t[k]).1 * (0..3).map(|o| OF_F[o][k] * dy[o]).sum::<f64>());
        let of = |c: usize| slopes[c] * (0..3).map(|k| M[k][c] * dt[k]).sum::<f64>();
        [of(0), of(1), of(2)]
    };
    x.chunks(3).zip(dy.chunks(3)).flat_map(place).collect()
}

/// X, Y and Z of a place, and how fast each channel's linear value grows with its input.
fn xyz(x: &[f64], mean: &[f64], std: &[f64]) -> ([f64; 3], [f64; 3]) {
    let mut linear = [0.0; 3];
    let mut slopes = [0.0; 3];
    for c in 0..3 {
        let v = x[c] * std[c] + mean[c];
        let inside = v > 0.0 && v < 1.0;
        let v = v.clamp(0.0, 1.0);
        let (value, slope) = match v <= 0.04045 {
            true => (v / 12.92, 1.0 / 12.92),
            false => {
                let base = (v + 0.055) / 1.055;
                (base.powf(2.4), 2.4 / 1.055 * base.powf(1.4))
            }
        };
        linear[c] = value;
        slopes[c] = if inside { slope * std[c] } else { 0.0 };
    }
    let t = M.map(|row| (0..3).map(|c| row[c] * linear[c]).sum());
    (t, slopes)
}

/// f and its slope.
fn f(t: f64) -> (f64, f64) {
    match t > DELTA.powi(3) {
        true => (t.cbrt(), 1.0 / (3.0 * t.cbrt().powi(2))),
        false => {
            let slope = 1.0 / (3.0 * DELTA * DELTA);
            (t * slope + 4.0 / 29.0, slope)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        let y = forward(&rgb, &[0.0; 3], &[1.0; 3]);
        [50.0 * (y[0] + 1.0), 110.0 * y[1], 110.0 * y[2]]
    }

    /// Published values of the corners of sRGB's cube.
    #[test]
    fn known_colours() {
        let known = [
            ([1.0, 1.0, 1.0], [100.0, 0.0, 0.0]),
            ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
            ([1.0, 0.0, 0.0], [53.24, 80.09, 67.20]),
            ([0.0, 1.0, 0.0], [87.74, -86.18, 83.18]),
            ([0.0, 0.0, 1.0], [32.30, 79.19, -107.86]),
        ];
        for (rgb, expected) in known {
            for (got, expected) in lab(rgb).iter().zip(expected) {
                assert!((got - expected).abs() < 0.02, "{rgb:?}: {got} {expected}");
            }
        }
    }
}
