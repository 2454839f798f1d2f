//! On a CPU, place by place.

use rayon::prelude::*;

/// Values a task works on: whole places.
const TASK: usize = 3 * 4096;

const DELTA: f32 = 6.0 / 29.0;

/// X, Y and Z of red, green and blue, each divided by white's.
const M: [[f32; 3]; 3] = [
    [0.412_456_4 / 0.950_47, 0.357_576_1 / 0.950_47, 0.180_437_5 / 0.950_47],
    [0.212_672_9, 0.715_152_2, 0.072_175],
    [0.019_333_9 / 1.088_83, 0.119_192 / 1.088_83, 0.950_304_1 / 1.088_83],
];

/// Lab of f(X), f(Y), f(Z), but for what is added to L.
const OF_F: [[f32; 3]; 3] = [
    [0.0, 116.0 / 50.0, 0.0],
    [500.0 / 110.0, -500.0 / 110.0, 0.0],
    [0.0, 200.0 / 110.0, -200.0 / 110.0],
];
const OF_L: f32 = -16.0 / 50.0 - 1.0;

/// How pictures were normalised.
pub(super) struct Normalised {
    pub(super) mean: [f32; 3],
    pub(super) std: [f32; 3],
}

impl Normalised {
    /// y = Lab of x.
    pub(super) fn to_lab(&self, x: &[f32], y: &mut [f32]) {
        let tasks = y.par_chunks_mut(TASK).zip(x.par_chunks(TASK));
        tasks.for_each(|(y, x)| {
            for (y, x) in y.chunks_exact_mut(3).zip(x.chunks_exact(3)) {
                let (t, _) = self.xyz(x);
                let f = t.map(|t| f(t).0);
                y.copy_from_slice(&times(&OF_F, f));
                y[0] += OF_L;
            }
        });
    }

    /// dx (+)= the gradient of x.
    pub(super) fn lab_backward(&self, x: &[f32], dy: &[f32], accumulate: bool, dx: &mut [f32]) {
        let tasks = dx.par_chunks_mut(TASK).zip(x.par_chunks(TASK));
        tasks.zip(dy.par_chunks(TASK)).for_each(|((dx, x), dy)| {
            let places = dx.chunks_exact_mut(3).zip(x.chunks_exact(3));
            for ((dx, x), dy) in places.zip(dy.chunks_exact(3)) {
                let (t, slopes) = self.xyz(x);
                let df = transposed_times(&OF_F, [dy[0], dy[1], dy[2]]);
                let dt = std::array::from_fn(|k| f(t[k]).1 * df[k]);
                let linear = transposed_times(&M, dt);
                for c in 0..3 {
                    let value = slopes[c] * linear[c];
                    dx[c] = if accumulate { dx[c] + value } else { value };
                }
            }
        });
    }

    /// X, Y and Z of a place, and how fast each channel's linear value grows with its input.
    fn xyz(&self, x: &[f32]) -> ([f32; 3], [f32; 3]) {
        let (mut linear, mut slopes) = ([0.0; 3], [0.0; 3]);
        for c in 0..3 {
            let v = x[c] * self.std[c] + self.mean[c];
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
            slopes[c] = if inside { slope * self.std[c] } else { 0.0 };
        }
        (times(&M, linear), slopes)
    }
}

/// f and its slope.
fn f(t: f32) -> (f32, f32) {
    match t > DELTA * DELTA * DELTA {
        true => {
            let root = t.cbrt();
            (root, 1.0 / (3.0 * root * root))
        }
        false => {
            let slope = 1.0 / (3.0 * DELTA * DELTA);
            (t * slope + 4.0 / 29.0, slope)
        }
    }
}

fn times(matrix: &[[f32; 3]; 3], v: [f32; 3]) -> [f32; 3] {
    matrix.map(|row| (0..3).map(|k| row[k] * v[k]).sum())
}

fn transposed_times(matrix: &[[f32; 3]; 3], v: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|c| (0..3).map(|k| matrix[k][c] * v[k]).sum())
}
