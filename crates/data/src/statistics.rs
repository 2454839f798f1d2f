//! Mean and standard deviation of each channel, of values in [0, 1].

use std::ops::Add;

use rayon::prelude::*;

use crate::Pictures;

/// A channel that never changes is divided by this instead of by zero.
const LEAST_STD: f32 = 1.0 / 255.0;

/// Mean and standard deviation of each channel over all pixels of all pictures; (0.5, 0.25) of no
/// pictures.
///
/// Sums are of whole numbers, hence exact and the same on any number of threads.
pub fn measure(pictures: &Pictures) -> ([f32; 3], [f32; 3]) {
    let sums = (0..pictures.len())
        .into_par_iter()
        .map_init(Vec::new, |scratch, i| Sums::of(pictures.picture_in(i, scratch)));
    sums.reduce(Sums::default, Sums::add).mean_and_std()
}

/// What mean and standard deviation are made of; those of parts add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// How many pixels.
    pub pixels: u64,
    /// Sum of each channel.
    pub sum: [u64; 3],
    /// Sum of the squares of each channel.
    pub squares: [u64; 3],
}

impl Sums {
    /// Of one picture's RGB bytes.
    pub fn of(picture: &[u8]) -> Self {
        let mut sums = Sums { pixels: (picture.len() / 3) as u64, ..Sums::default() };
        for pixel in picture.chunks_exact(3) {
            for (c, &v) in pixel.iter().enumerate() {
                sums.sum[c] += u64::from(v);
                sums.squares[c] += u64::from(v) * u64::from(v);
            }
        }
        sums
    }

    /// Mean and standard deviation of each channel; (0.5, 0.25) of no pixels.
    pub fn mean_and_std(self) -> ([f32; 3], [f32; 3]) {
        if self.pixels == 0 {
            return ([0.5; 3], [0.25; 3]);
        }
        let n = self.pixels as f64;
        let mean = self.sum.map(|s| s as f64 / n);
        let std = [0, 1, 2].map(|c| {
            let variance = self.squares[c] as f64 / n - mean[c] * mean[c];
            variance.max(0.0).sqrt()
        });
        (mean.map(|m| (m / 255.0) as f32), std.map(|s| ((s / 255.0) as f32).max(LEAST_STD)))
    }
}

impl Add for Sums {
    type Output = Sums;

    fn add(self, other: Sums) -> Sums {
        let add = |a: [u64; 3], b: [u64; 3]| [0, 1, 2].map(|c| a[c].saturating_add(b[c]));
        Sums {
            pixels: self.pixels.saturating_add(other.pixels),
            sum: add(self.sum, other.sum),
            squares: add(self.squares, other.squares),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_pixels() {
        let p = Pictures::new(1, 1, vec![0, 255, 7, 255, 255, 7]).unwrap();
        let (mean, std) = measure(&p);
        assert_eq!(mean, [0.5, 1.0, 7.0 / 255.0]);
        assert_eq!(std, [0.5, LEAST_STD, LEAST_STD]);
    }
}
