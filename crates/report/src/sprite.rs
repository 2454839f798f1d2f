//! Many small pictures as one: a page embeds one file, not hundreds.

use std::collections::HashMap;

use anchorhood_data::{Pictures, encode_jpeg};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::{RgbImage, imageops};
use rayon::prelude::*;

use crate::ReportError;

/// JPEG's blocks: tiles of whole ones do not bleed into each other.
const BLOCK: usize = 16;
/// Pixels a side, at most.
const LARGEST: usize = 64;
const QUALITY: u8 = 88;

/// A sheet of equal squares, and which picture is where.
#[derive(Clone, Debug, Default)]
pub struct Sprite {
    /// Squares in a row.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
    /// Pixels a side of a square.
    pub side: usize,
    places: HashMap<u32, usize>,
    jpeg: Vec<u8>,
}

impl Sprite {
    /// The pictures numbered so, each once, at most `largest` pixels a side.
    pub fn of(pictures: &Pictures, chosen: &[u32], largest: usize) -> Result<Sprite, ReportError> {
        let mut unique: Vec<u32> = chosen.to_vec();
        unique.sort_unstable();
        unique.dedup();
        let largest = largest.min(LARGEST);
        let side = (pictures.height().div_ceil(BLOCK) * BLOCK).clamp(BLOCK, largest);
        let columns = ((unique.len() as f64).sqrt().ceil() as usize).max(1);
        let rows = unique.len().div_ceil(columns).max(1);
        let tiles: Vec<RgbImage> = unique
            .par_iter()
            .map_init(Vec::new, |scratch, i| {
                tile(pictures, *i as usize, side, scratch)
            })
            .collect();
        let mut sheet = RgbImage::new((columns * side) as u32, (rows * side) as u32);
        for (place, tile) in tiles.iter().enumerate() {
            let (x, y) = (place % columns * side, place / columns * side);
            imageops::replace(&mut sheet, tile, x as i64, y as i64);
        }
        let jpeg = encode_jpeg(sheet.width(), sheet.height(), &sheet, QUALITY);
        let jpeg = jpeg.map_err(ReportError::Drawing)?;
        Ok(Sprite {
            columns,
            rows,
            side,
            places: unique.iter().enumerate().map(|(p, i)| (*i, p)).collect(),
            jpeg,
        })
    }

    /// Where a picture is, counted along the rows.
    pub fn place(&self, picture: u32) -> Option<usize> {
        self.places.get(&picture).copied()
    }

    /// The sheet, as a page embeds it.
    pub fn data_uri(&self) -> String {
        format!("data:image/jpeg;base64,{}", STANDARD.encode(&self.jpeg))
    }
}

fn tile(pictures: &Pictures, i: usize, side: usize, scratch: &mut Vec<u8>) -> RgbImage {
    let (width, height) = (pictures.width() as u32, pictures.height() as u32);
    let bytes = pictures.picture_in(i, scratch).to_vec();
    let side = side as u32;
    match RgbImage::from_raw(width, height, bytes) {
        Some(whole) if (width, height) == (side, side) => whole,
        Some(whole) => imageops::resize(&whole, side, side, imageops::FilterType::Triangle),
        None => RgbImage::new(side, side),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_once_and_in_its_place() {
        let bytes: Vec<u8> = (0..5u8).flat_map(|i| vec![i * 50; 16 * 16 * 3]).collect();
        let pictures = Pictures::new(16, 16, bytes).unwrap();
        let sprite = Sprite::of(&pictures, &[4, 1, 4, 3], 48).unwrap();
        assert_eq!((sprite.columns, sprite.rows, sprite.side), (2, 2, 16));
        assert_eq!(sprite.place(0), None);
        let sheet = image::load_from_memory(&sprite.jpeg).unwrap().into_rgb8();
        for i in [1, 3, 4u32] {
            let place = sprite.place(i).unwrap() as u32;
            let pixel = sheet.get_pixel(place % 2 * 16 + 8, place / 2 * 16 + 8);
            assert!(pixel[0].abs_diff(i as u8 * 50) < 4, "{i}: {pixel:?}");
        }
    }
}
