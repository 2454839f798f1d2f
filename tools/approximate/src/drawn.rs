//! Vectors of unit length around 1,000 centres, which indices are measured with: here, and by the workspace's `search_speed`.

use rayon::prelude::*;

/// Values of each.
pub const DIM: usize = 128;
const CENTRES: usize = 1000;

/// A plain generator (SplitMix64): figures must not depend on a crate's version.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    /// Nearly normal: the sum of twelve uniforms.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.uniform()).sum::<f32>() - 6.0
    }
}

fn unit(mut v: Vec<f32>) -> Vec<f32> {
    let norm = v.iter().map(|x| x * x).sum::<f32>().sqrt();
    v.iter_mut().for_each(|x| *x /= norm);
    v
}

/// `n` of them; another seed gives others around the same centres.
pub fn vectors(n: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut draws = Draws(7);
    let centres: Vec<Vec<f32>> = (0..CENTRES)
        .map(|_| unit((0..DIM).map(|_| draws.normal()).collect()))
        .collect();
    let one = |i: usize| {
        let mut draws = Draws(seed.wrapping_mul(1 << 40).wrapping_add(i as u64 * 1000));
        let centre = &centres[draws.next() as usize % CENTRES];
        unit(centre.iter().map(|c| c + 0.08 * draws.normal()).collect())
    };
    (0..n).into_par_iter().map(one).collect()
}
