//! 64 bits that change little where a picture is resized or compressed again (pHash): of the lowest frequencies of its brightness,
//! which are above their median.

use std::f32::consts::PI;
use std::sync::LazyLock;

use crate::luma::Luma;

/// Pixels a side that frequencies are taken of.
const SIDE: usize = 32;
/// Frequencies along each axis.
const FREQUENCIES: usize = 8;
/// Bits in which two hashes may differ: fewer than there are bands.
const MOST_BITS: u32 = 7;
/// Bands of eight bits. Two hashes that differ in fewer bits than there are bands agree in one of them.
const BANDS: usize = 8;

/// The hash of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PerceptualHash(u64);

/// cos(π (2x + 1) u / 2n), frequency after frequency (DCT-II).
static COSINES: LazyLock<Vec<[f32; SIDE]>> = LazyLock::new(|| {
    let wave = |u: usize| {
        std::array::from_fn(|x| (PI * (2 * x + 1) as f32 * u as f32 / (2 * SIDE) as f32).cos())
    };
    (0..FREQUENCIES).map(wave).collect()
});

impl PerceptualHash {
    pub fn of(luma: &Luma) -> PerceptualHash {
        let pixels = luma.resized(SIDE, SIDE);
        let product = |row: &[f32], wave: &[f32; SIDE]| -> f32 {
            row.iter().zip(wave).map(|(v, w)| v * w).sum()
        };
        // By rows, then what came of that by columns.
        let mut across = [[0.0; SIDE]; FREQUENCIES];
        for (y, row) in pixels.chunks_exact(SIDE).enumerate() {
            for (u, wave) in COSINES.iter().enumerate() {
                across[u][y] = product(row, wave);
            }
        }
        let low = across
            .iter()
            .flat_map(|column| COSINES.iter().map(|wave| product(column, wave)));
        let low: Vec<f32> = low.collect();
        let mut sorted = low.clone();
        sorted.sort_by(f32::total_cmp);
        let median = (sorted[31] + sorted[32]) / 2.0;
        let bits = low
            .iter()
            .enumerate()
            .map(|(i, v)| u64::from(*v > median) << i);
        PerceptualHash(bits.sum())
    }

    fn band(self, band: usize) -> usize {
        (self.0 >> (8 * band) & 0xff) as usize
    }

    fn is_near(self, other: PerceptualHash) -> bool {
        (self.0 ^ other.0).count_ones() <= MOST_BITS
    }
}

/// Every pair of a query and a key whose hashes are near, by their numbers; none is missed.
pub(super) fn near_pairs(
    queries: &[(u32, PerceptualHash)],
    keys: &[(u32, PerceptualHash)],
) -> Vec<(u32, u32)> {
    let mut found = vec![];
    for band in 0..BANDS {
        let mut buckets: Vec<Vec<(u32, PerceptualHash)>> = vec![vec![]; 256];
        for key in keys {
            buckets[key.1.band(band)].push(*key);
        }
        for (query, hash) in queries {
            let met_before = |other: PerceptualHash| {
                (0..band).any(|earlier| hash.band(earlier) == other.band(earlier))
            };
            let near = buckets[hash.band(band)].iter();
            let near = near.filter(|(_, other)| hash.is_near(*other) && !met_before(*other));
            found.extend(near.map(|(key, _)| (*query, *key)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_random::{Draws, Stream};

    #[test]
    fn no_near_pair_is_missed() {
        let draws = Draws::new(1, Stream::Test, 0, 0);
        let mut values = vec![0.0; 400 * 64];
        draws.fill_symmetric(&mut values, 1.0);
        let mut hashes: Vec<u64> = values
            .chunks(64)
            .map(|v| {
                v.iter()
                    .enumerate()
                    .map(|(i, v)| u64::from(*v > 0.0) << i)
                    .sum()
            })
            .collect();
        for i in 0..100 {
            // As many flipped bits as may be, and one more.
            hashes[300 + i] =
                (0..7 + i % 2).fold(hashes[i], |h, bit| h ^ 1 << ((bit * 9 + i) % 64));
        }
        let all: Vec<_> = (0..)
            .zip(hashes.iter().map(|h| PerceptualHash(*h)))
            .collect();
        let mut found = near_pairs(&all, &all);
        found.sort_unstable();
        let mut expected = vec![];
        for (i, a) in &all {
            expected.extend(
                all.iter()
                    .filter(|(_, b)| a.is_near(*b))
                    .map(|(j, _)| (*i, *j)),
            );
        }
        assert_eq!(found, expected);
        assert_eq!(found.len(), 400 + 2 * 50);
    }

    #[test]
    fn a_picture_half_as_large_has_nearly_the_same_hash() {
        let luma = |side: usize| {
            let pixel = |i: usize| {
                let (x, y) = (
                    (i % side) as f32 / side as f32,
                    (i / side) as f32 / side as f32,
                );
                (128.0 + 100.0 * (7.0 * x + 3.0 * y * y).sin() * (5.0 * y).cos()) as u8
            };
            Luma {
                rows: side,
                columns: side,
                pixels: (0..side * side).map(pixel).collect(),
            }
        };
        let (large, small) = (PerceptualHash::of(&luma(64)), PerceptualHash::of(&luma(32)));
        assert!(large.is_near(small));
        assert!(!large.is_near(PerceptualHash::of(&luma(64).mirrored())));
    }
}
