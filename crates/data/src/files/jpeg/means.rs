//! Means of parts of an 8×8 block, straight from its coefficients.
//!
//! A block is a sum of 64 waves, each times its coefficient. The mean of a part of a wave is a
//! number that is known beforehand, so the means of a block's parts are a sum over those
//! coefficients that are not zero: few, in a photograph. The whole block's mean needs the first
//! coefficient alone.

use std::f64::consts::PI;

/// The means of the `A` parts (1, 2×2 or 4×4) of each wave, times its step of quantisation, in the
/// order of the file.
pub(super) struct Waves<const A: usize>([[f32; A]; 64]);

impl<const A: usize> Waves<A> {
    /// With steps of quantisation in the order of the file.
    pub fn new(steps: &[u16; 64]) -> Self {
        let side = A.isqrt();
        let mut waves = [[0.0; A]; 64];
        for ((wave, step), place) in waves.iter_mut().zip(steps).zip(ZIGZAG) {
            let (v, u) = (place / 8, place % 8);
            for (part, mean) in wave.iter_mut().enumerate() {
                let product =
                    mean_of_wave(v, part / side, side) * mean_of_wave(u, part % side, side);
                *mean = (product * f64::from(*step)) as f32;
            }
        }
        Waves(waves)
    }

    /// Adds coefficient `k`.
    #[inline(always)]
    pub fn add(&self, k: usize, value: i32, means: &mut [f32; A]) {
        let value = value as f32;
        for (mean, wave) in means.iter_mut().zip(&self.0[k]) {
            *mean += value * wave;
        }
    }
}

/// Of `parts` equal parts of the wave that has `frequency`: its mean in one.
fn mean_of_wave(frequency: usize, part: usize, parts: usize) -> f64 {
    let long = 8 / parts;
    let height = match frequency {
        0 => 0.125_f64.sqrt(),
        _ => 0.5,
    };
    let at = |x: usize| ((2 * x + 1) as f64 * frequency as f64 * PI / 16.0).cos();
    let sum: f64 = (part * long..(part + 1) * long).map(at).sum();
    height * sum / long as f64
}

/// The order of coefficients in a file.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Coefficients of a block by the definition of the transform, added up again.
    fn means<const A: usize>(block: &[f64; 64]) -> [f32; A] {
        let waves = Waves::<A>::new(&[1; 64]);
        let mut means = [0.0; A];
        for (k, place) in ZIGZAG.into_iter().enumerate() {
            let wave = |f: usize, x: usize| mean_of_wave(f, x, 8);
            let product = |i: usize| block[i] * wave(place / 8, i / 8) * wave(place % 8, i % 8);
            let coefficient: f64 = (0..64).map(product).sum();
            // Thousandths, since coefficients are whole numbers.
            waves.add(k, (coefficient * 1000.0).round() as i32, &mut means);
        }
        means.map(|m| m / 1000.0)
    }

    #[test]
    fn means_are_those_of_the_pixels() {
        let block: [f64; 64] = std::array::from_fn(|i| ((i * i * 37 + i * 11) % 256) as f64);
        let mean = |y0: usize, x0: usize, side: usize| {
            let pixels = (0..side * side).map(|i| block[(y0 + i / side) * 8 + x0 + i % side]);
            (pixels.sum::<f64>() / (side * side) as f64) as f32
        };
        let near = |a: f32, b: f32| (a - b).abs() < 0.02;
        assert!(near(means::<1>(&block)[0], mean(0, 0, 8)));
        for (i, m) in means::<4>(&block).into_iter().enumerate() {
            assert!(near(m, mean(i / 2 * 4, i % 2 * 4, 4)), "{i}");
        }
        for (i, m) in means::<16>(&block).into_iter().enumerate() {
            assert!(near(m, mean(i / 4 * 2, i % 4 * 2, 2)), "{i}");
        }
    }
}
