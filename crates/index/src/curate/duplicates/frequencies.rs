//! How fine the detail of an image is, and what compression left of it: its frequencies.

use std::f32::consts::PI;
use std::sync::LazyLock;

use crate::curate::luma::Luma;

/// Pixels along a line of which frequencies are taken, and of images that have fewer.
const LINE: usize = 64;
const SHORT_LINE: usize = 32;
/// Pixels along each side of the middle of an image that are looked at.
const MOST: usize = 768;
/// How sharp the smaller of two images is at least (the share of what goes on in its middle
/// frequencies that goes on near its finest), and which share an enlarged one then has less of,
/// above what the smaller one can have, of what goes on below. Soft images have little there
/// themselves, so the sharper the smaller one is, the more is believed.
const SHARPNESSES: [(f32, f32); 2] = [(0.9, 0.5), (0.25, 0.3)];

/// Mean power of each frequency along rows and columns, from none to one in two pixels.
#[derive(Clone, Debug)]
pub(super) struct Spectrum(Vec<f32>);

/// Cosines and sines of each frequency, by Hann's window.
struct Waves {
    line: usize,
    waves: Vec<(Vec<f32>, Vec<f32>)>,
}

impl Waves {
    fn new(line: usize) -> Waves {
        let wave = |k: usize| {
            let at = |x: usize, f: fn(f32) -> f32| {
                let window = 0.5 - 0.5 * (2.0 * PI * (x as f32 + 0.5) / line as f32).cos();
                window * f(2.0 * PI * ((k * x) % line) as f32 / line as f32)
            };
            let of = |f: fn(f32) -> f32| (0..line).map(|x| at(x, f)).collect();
            (of(f32::cos), of(f32::sin))
        };
        Waves { line, waves: (0..=line / 2).map(wave).collect() }
    }

    fn add(&self, values: &[f32], to: &mut [f32]) {
        let mean = values.iter().sum::<f32>() / self.line as f32;
        let values: Vec<f32> = values.iter().map(|v| v - mean).collect();
        for (to, (cosine, sine)) in to.iter_mut().zip(&self.waves) {
            let product = |wave: &[f32]| values.iter().zip(wave).map(|(v, w)| v * w).sum::<f32>();
            *to += product(cosine).powi(2) + product(sine).powi(2);
        }
    }
}

static WAVES: LazyLock<[Waves; 2]> = LazyLock::new(|| [Waves::new(LINE), Waves::new(SHORT_LINE)]);

impl Spectrum {
    /// None for a very small image.
    pub fn of(luma: &Luma) -> Option<Spectrum> {
        let shorter = luma.rows.min(luma.columns);
        let waves = WAVES.iter().find(|waves| waves.line <= shorter)?;
        let line = waves.line;
        let range = |all: usize| {
            let count = (all.min(MOST) / line).max(1) * line;
            ((all - count) / 2, count)
        };
        let ((top, high), (left, wide)) = (range(luma.rows), range(luma.columns));
        let at = |y: usize, x: usize| f32::from(luma.pixels[(top + y) * luma.columns + left + x]);
        let mut power = vec![0.0; line / 2 + 1];
        let mut add = |values: &[f32]| waves.add(values, &mut power);
        for y in (0..high).step_by(2) {
            for x in (0..wide).step_by(line) {
                add(&(0..line).map(|i| at(y, x + i)).collect::<Vec<_>>());
            }
        }
        for x in (0..wide).step_by(2) {
            for y in (0..high).step_by(line) {
                add(&(0..line).map(|i| at(y + i, x)).collect::<Vec<_>>());
            }
        }
        Some(Spectrum(power))
    }

    /// Mean power between two frequencies, times the square of each: that of natural images falls
    /// so.
    fn mean(&self, from: f32, to: f32) -> f32 {
        let (from, to) = (from.round().max(1.0) as usize, to.round() as usize);
        let bins = &self.0[from.min(to)..=to.min(self.0.len() - 1)];
        let even = bins.iter().enumerate().map(|(i, v)| v * ((from + i) as f32).powi(2));
        even.sum::<f32>() / bins.len().max(1) as f32
    }

    /// Whether it has nothing that a smaller image could not have, `by` times as small along each
    /// side. That smaller one is sharp, else nothing can be said.
    pub fn is_enlarged(&self, by: f32, smaller: &Spectrum) -> bool {
        let most = (self.0.len() - 1) as f32;
        let cut = most / by;
        let above = self.mean((cut * 1.08).min(most), most);
        let below = self.mean(cut * 0.5, cut * 0.8);
        let its_most = (smaller.0.len() - 1) as f32;
        let its_fine = smaller.mean(its_most * 0.6, its_most * 0.9);
        let its_middle = smaller.mean(its_most * 0.2, its_most * 0.5);
        let sharp = SHARPNESSES.iter().find(|(sharp, _)| its_fine >= sharp * its_middle);
        sharp.is_some_and(|(_, share)| above < share * below)
    }
}

// ---- what compression leaves ----

/// Frequencies of a block in which noise is looked for, in zigzag order; and the least mean square
/// of it: rounding alone leaves a tenth.
const FIRST_FINE: usize = 15;
const FINE: usize = 40;
const LEAST_NOISE: f32 = 1.0;

/// cos(π (2x + 1) u / 16), so scaled that the transform keeps lengths, as a JPEG's.
static COSINES: LazyLock<[[f32; 8]; 8]> = LazyLock::new(|| {
    std::array::from_fn(|u| {
        let scale = if u == 0 { (1.0_f32 / 8.0).sqrt() } else { 0.5 };
        std::array::from_fn(|x| scale * (PI * ((2 * x + 1) * u) as f32 / 16.0).cos())
    })
});

/// Places of a block's frequencies, in the order in which a JPEG writes them.
static ZIGZAG: LazyLock<[usize; 64]> = LazyLock::new(|| {
    let mut places: Vec<usize> = (0..64).collect();
    // Along diagonals, up and down by turns.
    places.sort_by_key(|place| {
        let (v, u) = (place / 8, place % 8);
        (u + v, if (u + v) % 2 == 0 { u } else { v })
    });
    std::array::from_fn(|i| places[i])
});

/// Calls with the frequencies of each block of 8×8 pixels.
fn each_block(luma: &Luma, mut of: impl FnMut(&[[f32; 8]; 8])) {
    for top in (0..luma.rows / 8).map(|y| y * 8) {
        for left in (0..luma.columns / 8).map(|x| x * 8) {
            let mut across = [[0.0; 8]; 8];
            for (y, across) in across.iter_mut().enumerate() {
                let row = &luma.pixels[(top + y) * luma.columns + left..][..8];
                for (u, wave) in COSINES.iter().enumerate() {
                    across[u] =
                        row.iter().zip(wave).map(|(v, w)| (f32::from(*v) - 128.0) * w).sum();
                }
            }
            let mut block = [[0.0; 8]; 8];
            for (v, wave) in COSINES.iter().enumerate() {
                for u in 0..8 {
                    block[v][u] = (0..8).map(|y| across[y][u] * wave[y]).sum();
                }
            }
            of(&block);
        }
    }
}

/// The share of frequencies that are nearly nothing: more of them where more was thrown away.
pub(super) fn still_frequencies(luma: &Luma) -> f32 {
    let (mut all, mut still) = (0_usize, 0_usize);
    each_block(luma, |block| {
        let values = block.as_flattened();
        all += 63;
        still += values[1..].iter().filter(|v| v.abs() < 1.0).count();
    });
    still as f32 / all.max(1) as f32
}

/// Whether the frequencies of an image are multiples of the steps by which another file is
/// quantised, and not because its own are so large: it was made from that file.
pub(super) fn quantised_by(luma: &Luma, steps: &[u16; 64], own: Option<&[u16; 64]>) -> bool {
    let (mut sum, mut count) = (0.0, 0_usize);
    let tell = |i: &usize| {
        let own = own.map_or(0, |own| own[*i]);
        steps[*i] >= 5 && own * 2 <= steps[*i]
    };
    let told: Vec<usize> = (1..32).filter(tell).collect();
    each_block(luma, |block| {
        for i in &told {
            let step = f32::from(steps[*i]);
            let value = block.as_flattened()[ZIGZAG[*i]] / step;
            if value.abs() >= 0.6 {
                sum += (value - value.round()).abs();
                count += 1;
            }
        }
    });
    // By chance a quarter of a step.
    count >= 100 && sum / (count as f32) < 0.17
}

/// Whether two images of the same size have noise as strong as each other's that is not the same:
/// each was taken by itself. In a copy it is the same, or compression took it away.
pub(super) fn has_own_noise(a: &Luma, b: &Luma) -> bool {
    // Products of fine frequencies, block by block, and how much there is in the block.
    let mut fine: [Vec<[f32; FINE]>; 2] = [vec![], vec![]];
    for (fine, luma) in fine.iter_mut().zip([a, b]) {
        each_block(luma, |block| {
            let values = block.as_flattened();
            fine.push(std::array::from_fn(|i| values[ZIGZAG[FIRST_FINE + i]]));
        });
    }
    let energy = |of: &[f32; FINE]| of.iter().map(|v| v * v).sum::<f32>();
    let pairs = fine[0].iter().zip(&fine[1]);
    let mut blocks: Vec<[f32; 3]> = pairs
        .map(|(a, b)| {
            let product = a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            [energy(a), energy(b), product]
        })
        .collect();
    // Where the scene itself has no fine detail.
    blocks.sort_by(|x, y| (x[0] + x[1]).total_cmp(&(y[0] + y[1])));
    blocks.truncate(blocks.len() / 2);
    let sum = |i: usize| blocks.iter().map(|block| block[i]).sum::<f32>();
    let [a, b, product] = [sum(0), sum(1), sum(2)];
    let count = (blocks.len() * FINE) as f32;
    let strong = a.min(b) > count * LEAST_NOISE;
    strong && a.min(b) > 0.4 * a.max(b) && product < 0.3 * (a * b).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::{ImageMetadata, Picture, encode_jpeg};
    use anchorhood_storage::random::{Draws, Stream};
    use image::imageops;

    fn noise(number: u64, side: usize, by: f32) -> Vec<f32> {
        let mut noise = vec![0.0; side * side];
        Draws::new(number, Stream::Test, 0, 0).fill_symmetric(&mut noise, by);
        noise
    }

    #[test]
    fn zigzag_is_that_of_the_standard() {
        assert_eq!(ZIGZAG[..10], [0, 1, 8, 16, 9, 2, 3, 10, 17, 24]);
        assert_eq!(ZIGZAG[60..], [47, 55, 62, 63]);
    }

    #[test]
    fn an_enlarged_image_is_told_from_one_that_large() {
        let noise = noise(1, 128, 60.0);
        let luma = |rows: usize, values: &[f32]| Luma {
            rows,
            columns: rows,
            pixels: values.iter().map(|v| (128.0 + v).clamp(0.0, 255.0) as u8).collect(),
        };
        let large = luma(128, &noise);
        let twice = |i: usize| noise[i / 256 / 2 * 128 + i % 256 / 2];
        let blocky: Vec<f32> = (0..256 * 256).map(twice).collect();
        let around = [0, 1, 2, 256, 257, 258, 512, 513, 514];
        let mean =
            |i: usize| around.iter().map(|by| blocky[i.saturating_sub(*by)]).sum::<f32>() / 9.0;
        let smooth: Vec<f32> = (0..blocky.len()).map(mean).collect();
        let sharp = Spectrum::of(&large).unwrap();
        let smooth = Spectrum::of(&luma(256, &smooth)).unwrap();
        assert!(smooth.is_enlarged(2.0, &sharp));
        assert!(!smooth.is_enlarged(2.0, &smooth), "both are soft");
        assert!(!sharp.is_enlarged(2.0, &sharp));
        assert!(Spectrum::of(&luma(16, &noise[..256])).is_none());
        // Of an image that is sharp to its finest detail, also one that is hardly larger.
        let pixels = image::GrayImage::from_raw(128, 128, large.pixels.clone()).unwrap();
        let (side, by) = (150, 150.0 / 128.0);
        let slightly = imageops::resize(&pixels, side, side, imageops::FilterType::Lanczos3);
        let slightly = Luma { rows: 150, columns: 150, pixels: slightly.into_raw() };
        assert!(Spectrum::of(&slightly).unwrap().is_enlarged(by, &sharp));
    }

    #[test]
    fn noise_is_an_images_own_or_another_ones() {
        let taken = |number: u64, by: f32| Luma {
            rows: 64,
            columns: 64,
            pixels: noise(number, 64, 6.0)
                .iter()
                .enumerate()
                .map(|(i, v)| (60.0 + (i / 64) as f32 + v * by).round() as u8)
                .collect(),
        };
        let first = taken(1, 1.0);
        assert!(has_own_noise(&first, &taken(2, 1.0)), "another photograph of the scene");
        assert!(!has_own_noise(&first, &taken(1, 0.9)));
        assert!(!has_own_noise(&first, &taken(2, 0.0)), "compressed until there was none");
    }

    #[test]
    fn steps_of_a_file_are_found_in_what_was_made_of_it() {
        let noise = noise(3, 64, 90.0);
        let rgb: Vec<u8> = noise.iter().flat_map(|v| [(128.0 + v) as u8; 3]).collect();
        let luma = |jpeg: &[u8]| {
            let image = Picture::from_bytes(jpeg).unwrap();
            let ([rows, columns], rgb) = image.fitted(64).unwrap();
            (Luma::of_rgb(rows, columns, &rgb), rgb)
        };
        let steps = |jpeg: &[u8]| ImageMetadata::of_bytes(jpeg).quantisation.unwrap();
        let original = encode_jpeg(64, 64, &rgb, 70).unwrap();
        let (read, pixels) = luma(&original);
        let again = encode_jpeg(64, 64, &pixels, 95).unwrap();
        let made = luma(&again).0;
        assert!(quantised_by(&made, &steps(&original), Some(&steps(&again))));
        assert!(!quantised_by(&read, &steps(&again), Some(&steps(&original))));
        let plain = Luma::of_rgb(64, 64, &rgb);
        assert!(!quantised_by(&plain, &steps(&original), None));
        assert!(still_frequencies(&read) > still_frequencies(&plain));
    }
}
