//! Mean and standard deviation of each channel, of values in [0, 1].

use rayon::prelude::*;

use crate::Pictures;

/// A channel that never changes is divided by this instead of by zero.
const LEAST_STD: f32 = 1.0 / 255.0;

/// Mean and standard deviation of each channel over all pixels of all pictures; (0.5, 0.25) of no pictures.
///
/// Sums are of whole numbers, hence exact and the same on any number of threads.
pub fn measure(pictures: &Pictures) -> ([f32; 3], [f32; 3]) {
    if pictures.is_empty() {
        return ([0.5; 3], [0.25; 3]);
    }
    let sums = pictures
        .raw()
        .par_chunks(pictures.picture_len())
        .map(sums_of)
        .reduce(|| [[0; 2]; 3], add);
    let n = (pictures.raw().len() / 3) as f64;
    let mean = sums.map(|[s, _]| s as f64 / n);
    let std = [0, 1, 2].map(|c| (sums[c][1] as f64 / n - mean[c] * mean[c]).max(0.0).sqrt());
    (
        mean.map(|m| (m / 255.0) as f32),
        std.map(|s| ((s / 255.0) as f32).max(LEAST_STD)),
    )
}

/// Sum and sum of squares of each channel.
fn sums_of(picture: &[u8]) -> [[u64; 2]; 3] {
    let mut sums = [[0; 2]; 3];
    for pixel in picture.chunks_exact(3) {
        for (sum, &v) in sums.iter_mut().zip(pixel) {
            sum[0] += u64::from(v);
            sum[1] += u64::from(v) * u64::from(v);
        }
    }
    sums
}

fn add(a: [[u64; 2]; 3], b: [[u64; 2]; 3]) -> [[u64; 2]; 3] {
    [0, 1, 2].map(|c| [a[c][0] + b[c][0], a[c][1] + b[c][1]])
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
