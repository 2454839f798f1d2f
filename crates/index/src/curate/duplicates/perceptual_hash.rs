//! 64 bits that change little where a picture is resized or compressed again (pHash): of the lowest
//! frequencies of its brightness, which are above their median.

use std::f32::consts::PI;
use std::sync::LazyLock;

use super::orientation::Orientation;
use crate::curate::luma::Luma;

/// Pixels a side that frequencies are taken of.
const SIDE: usize = 32;
/// Frequencies along each axis.
const FREQUENCIES: usize = 8;
/// Bits in which two hashes may differ: fewer than there are bands.
const MOST_BITS: u32 = 7;
/// Bands of eight bits. Two hashes that differ in fewer bits than there are bands agree in one of
/// them.
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
    /// Of an image and of what it is when it is mirrored and turned, in the order of
    /// [`Orientation::ALL`].
    pub fn all(luma: &Luma) -> [PerceptualHash; 8] {
        let low = frequencies(luma);
        Orientation::ALL.map(|orientation| PerceptualHash::above_median(&turned(&low, orientation)))
    }

    fn above_median(low: &Frequencies) -> PerceptualHash {
        let low = low.as_flattened();
        let mut sorted = low.to_vec();
        sorted.sort_by(f32::total_cmp);
        let median = (sorted[31] + sorted[32]) / 2.0;
        let bits = low.iter().enumerate();
        PerceptualHash(bits.map(|(i, v)| u64::from(*v > median) << i).sum())
    }

    fn band(self, band: usize) -> usize {
        (self.0 >> (8 * band) & 0xff) as usize
    }

    /// How many bits are others.
    fn distance(self, other: PerceptualHash) -> u32 {
        (self.0 ^ other.0).count_ones()
    }

    fn is_near(self, other: PerceptualHash) -> bool {
        self.distance(other) <= MOST_BITS
    }
}

/// By frequency across, then down.
type Frequencies = [[f32; FREQUENCIES]; FREQUENCIES];

fn frequencies(luma: &Luma) -> Frequencies {
    let pixels = luma.resized(SIDE, SIDE);
    let product =
        |row: &[f32], wave: &[f32; SIDE]| -> f32 { row.iter().zip(wave).map(|(v, w)| v * w).sum() };
    // By rows, then what came of that by columns.
    let mut across = [[0.0; SIDE]; FREQUENCIES];
    for (y, row) in pixels.chunks_exact(SIDE).enumerate() {
        for (u, wave) in COSINES.iter().enumerate() {
            across[u][y] = product(row, wave);
        }
    }
    across.map(|column| std::array::from_fn(|v| product(&column, &COSINES[v])))
}

/// Of a mirrored image the odd frequencies across have the other sign; a quarter clockwise is the
/// transposed image, mirrored.
fn turned(low: &Frequencies, orientation: Orientation) -> Frequencies {
    let mirrored = |low: &Frequencies| -> Frequencies {
        let sign = |u: usize| if u.is_multiple_of(2) { 1.0 } else { -1.0 };
        std::array::from_fn(|u| low[u].map(|v| v * sign(u)))
    };
    let mut low = if orientation.mirrored { mirrored(low) } else { *low };
    for _ in 0..orientation.quarters {
        let transposed = std::array::from_fn(|u| std::array::from_fn(|v| low[v][u]));
        low = mirrored(&transposed);
    }
    low
}

/// Hashes by which near ones are found.
pub(super) struct NearHashes {
    /// By band and its value: numbers in rising order, and hashes.
    buckets: Vec<Vec<(u32, PerceptualHash)>>,
}

impl NearHashes {
    /// Of hashes by their numbers, in rising order; a number may have several.
    pub fn new(keys: &[(u32, PerceptualHash)]) -> NearHashes {
        let mut buckets = vec![vec![]; BANDS * 256];
        for key in keys {
            for band in 0..BANDS {
                buckets[band * 256 + key.1.band(band)].push(*key);
            }
        }
        NearHashes { buckets }
    }

    /// The numbers above `after` that pass, of hashes near to one of these: the `most` nearest,
    /// each once, in order.
    pub fn near(
        &self,
        hashes: &[PerceptualHash],
        after: u32,
        most: usize,
        passes: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let mut found = vec![];
        for hash in hashes {
            for band in 0..BANDS {
                let bucket = &self.buckets[band * 256 + hash.band(band)];
                let later = &bucket[bucket.partition_point(|(key, _)| *key <= after)..];
                let met_before = |other: PerceptualHash| {
                    (0..band).any(|earlier| hash.band(earlier) == other.band(earlier))
                };
                let near = later.iter();
                let near = near.filter(|(_, other)| hash.is_near(*other) && !met_before(*other));
                let near = near.filter(|(key, _)| passes(*key));
                found.extend(near.map(|(key, other)| (*key, hash.distance(*other))));
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|(key, _)| *key); // the nearest of its hashes comes first
        if found.len() > most {
            found.select_nth_unstable_by_key(most, |(key, distance)| (*distance, *key));
            found.truncate(most);
            found.sort_unstable();
        }
        found.into_iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::random::{Draws, Stream};

    #[test]
    fn no_near_pair_is_missed() {
        let draws = Draws::new(1, Stream::Test, 0, 0);
        let mut values = vec![0.0; 400 * 64];
        draws.fill_symmetric(&mut values, 1.0);
        let mut hashes: Vec<u64> = values
            .chunks(64)
            .map(|v| v.iter().enumerate().map(|(i, v)| u64::from(*v > 0.0) << i).sum())
            .collect();
        for i in 0..100 {
            // As many flipped bits as may be, and one more.
            hashes[300 + i] =
                (0..7 + i % 2).fold(hashes[i], |h, bit| h ^ 1 << ((bit * 9 + i) % 64));
        }
        let all: Vec<_> = (0..).zip(hashes.iter().map(|h| PerceptualHash(*h))).collect();
        let keys = NearHashes::new(&all);
        let mut found = vec![];
        for (i, hash) in &all {
            let near = keys.near(&[*hash], *i, 400, |_| true);
            assert!(keys.near(&[*hash], *i, 400, |_| false).is_empty());
            found.extend(near.into_iter().map(|j| (*i, j)));
        }
        let mut expected = vec![];
        for (i, a) in &all {
            let near = all.iter().filter(|(j, b)| j > i && a.is_near(*b));
            expected.extend(near.map(|(j, _)| (*i, *j)));
        }
        assert_eq!(found, expected);
        assert_eq!(found.len(), 50);
    }

    #[test]
    fn the_nearest_are_found_where_too_many_are_near() {
        let far = |bits: u32| PerceptualHash((1 << bits) - 1);
        let keys: Vec<_> = [5, 3, 0, 1, 3].into_iter().map(far).enumerate().collect();
        let keys: Vec<_> = keys.into_iter().map(|(i, hash)| (i as u32 + 1, hash)).collect();
        let near = |most| NearHashes::new(&keys).near(&[far(0)], 0, most, |_| true);
        assert_eq!(near(5), [1, 2, 3, 4, 5]);
        assert_eq!(near(3), [2, 3, 4]);
    }

    #[test]
    fn hashes_of_a_turned_image_are_those_of_its_frequencies() {
        let pixel = |i: usize| {
            let (x, y) = ((i % 48) as f32 / 48.0, (i / 48) as f32 / 32.0);
            (128.0 + 90.0 * (9.0 * x + 4.0 * y * y).sin() * (6.0 * y + x).cos()) as u8
        };
        let luma = Luma { rows: 32, columns: 48, pixels: (0..32 * 48).map(pixel).collect() };
        let hashes = PerceptualHash::all(&luma);
        for (orientation, hash) in Orientation::ALL.into_iter().zip(hashes) {
            let turned = PerceptualHash::all(&orientation.of(&luma))[0];
            assert!((hash.0 ^ turned.0).count_ones() <= 1, "{orientation:?}");
            let others =
                Orientation::ALL.into_iter().zip(hashes).filter(|(o, _)| *o != orientation);
            assert!(others.into_iter().all(|(_, other)| !turned.is_near(other)), "{orientation:?}");
        }
    }

    #[test]
    fn a_picture_half_as_large_has_nearly_the_same_hash() {
        let luma = |side: usize| {
            let pixel = |i: usize| {
                let (x, y) = ((i % side) as f32 / side as f32, (i / side) as f32 / side as f32);
                (128.0 + 100.0 * (7.0 * x + 3.0 * y * y).sin() * (5.0 * y).cos()) as u8
            };
            Luma { rows: side, columns: side, pixels: (0..side * side).map(pixel).collect() }
        };
        let (large, small) = (PerceptualHash::all(&luma(64))[0], PerceptualHash::all(&luma(32))[0]);
        assert!(large.is_near(small));
        assert!(!large.is_near(PerceptualHash::all(&luma(64))[1]));
    }
}
