//! How a picture looks, whatever it shows: sharp or blurry, dark or bright, with contrast or
//! without.
//!
//! All of it is told of the whole picture with 256 pixels along its longer side, so that pictures
//! of all sizes can be compared; one that has fewer is grown, and counts as blurry beside one that
//! has more.

use std::path::{Path, PathBuf};

use anchorhood_data::Picture;

use crate::curate::each::each;
use crate::curate::luma::{Luma, mean_and_deviation};

/// How a picture looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Appearance {
    /// Standard deviation of the Laplacian of its brightness, which is from 0 to 255: low for a
    /// blurry picture.
    pub sharpness: f32,
    /// Mean brightness, from 0 for black to 1 for white.
    pub brightness: f32,
    /// Standard deviation of the brightness, from 0 for one grey to 0.5.
    pub contrast: f32,
}

impl Appearance {
    /// Pixels along the longer side of what is looked at.
    pub(crate) const SIDE: usize = 256;

    /// Of a picture.
    pub fn of(picture: &Picture) -> Result<Appearance, String> {
        let luma = Luma::of(picture, Self::SIDE)?;
        let values: Vec<f32> = luma.pixels.iter().map(|p| f32::from(*p)).collect();
        let (mean, deviation) = mean_and_deviation(&values);
        Ok(Appearance {
            sharpness: mean_and_deviation(&laplacian(&values, luma.columns)).1,
            brightness: mean / 255.0,
            contrast: deviation / 255.0,
        })
    }

    /// Of a file.
    pub fn of_file(path: &Path) -> Result<Appearance, String> {
        Picture::read_for(path, Self::SIDE, Appearance::of)
    }

    /// Of many files, or why one has none. `progress` is told how many are done.
    pub fn of_files(
        paths: &[PathBuf],
        progress: &(dyn Fn(usize) + Sync),
    ) -> Vec<Result<Appearance, String>> {
        each(paths.len(), progress, |i| Appearance::of_file(&paths[i]))
    }
}

/// Four times each inner pixel less its four neighbours.
fn laplacian(values: &[f32], columns: usize) -> Vec<f32> {
    let rows: Vec<&[f32]> = values.chunks_exact(columns).collect();
    let mut out = vec![];
    for around in rows.windows(3) {
        let [above, row, below] = [around[0], around[1], around[2]];
        for x in 1..columns - 1 {
            out.push(4.0 * row[x] - row[x - 1] - row[x + 1] - above[x] - below[x]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pixel: impl Fn(u32, u32) -> u8) -> Appearance {
        let place = |i: u32| [pixel(i % 256, i / 256); 3];
        let rgb: Vec<u8> = (0..256 * 256).flat_map(place).collect();
        Appearance::of(&Picture::from_rgb(256, 256, rgb).unwrap()).unwrap()
    }

    #[test]
    fn sharp_dark_and_flat() {
        let board = of(|x, y| if (x + y) % 2 == 0 { 0 } else { 255 });
        assert!((board.sharpness - 1020.0).abs() < 1.0, "{board:?}");
        assert!((board.brightness - 0.5).abs() < 1e-3 && (board.contrast - 0.5).abs() < 1e-3);
        let ramp = of(|x, _| x as u8);
        assert!(ramp.sharpness < 1.0, "{ramp:?}");
        let night = of(|_, _| 3);
        assert_eq!((night.sharpness, night.contrast), (0.0, 0.0));
        assert!(night.brightness < 0.02);
    }
}
