//! Many small pictures as one: a page embeds one file, not hundreds.

use std::collections::HashMap;

use anchorhood_data::{Picture, Pictures, Split, encode_jpeg, picture_named};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::{RgbImage, imageops};
use maud::{Markup, PreEscaped, html};
use rayon::prelude::*;

use crate::ReportError;

/// JPEG's blocks: tiles of whole ones do not bleed into each other.
const BLOCK: usize = 16;
/// Pixels a side, at most.
const LARGEST: usize = 64;
const QUALITY: u8 = 88;

/// A sheet of equal squares, and which picture is where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sprite {
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
        let unique = unique(chosen);
        let largest = largest.min(LARGEST);
        let side = (pictures.height().div_ceil(BLOCK) * BLOCK).clamp(BLOCK, largest);
        let tiles = unique
            .par_iter()
            .map_init(Vec::new, |scratch, i| resized(stored(pictures, *i as usize, scratch), side));
        Sprite::of_tiles(&unique, side, &tiles.collect::<Vec<_>>())
    }

    /// The same from the pictures' own files where these can be read, as large as the largest of
    /// them, up to `largest`.
    pub fn of_files(train: &Split, chosen: &[u32], largest: usize) -> Result<Sprite, ReportError> {
        let unique = unique(chosen);
        let tiles: Vec<RgbImage> = unique
            .par_iter()
            .map_init(Vec::new, |scratch, i| {
                let i = *i as usize;
                file(train, i, largest).unwrap_or_else(|| stored(&train.pictures, i, scratch))
            })
            .collect();
        let most = tiles.iter().map(|t| t.width() as usize).max().unwrap_or(0);
        let side = (most.div_ceil(BLOCK) * BLOCK).clamp(BLOCK, largest.next_multiple_of(BLOCK));
        let tiles: Vec<RgbImage> = tiles.into_iter().map(|t| resized(t, side)).collect();
        Sprite::of_tiles(&unique, side, &tiles)
    }

    fn of_tiles(unique: &[u32], side: usize, tiles: &[RgbImage]) -> Result<Sprite, ReportError> {
        let columns = ((unique.len() as f64).sqrt().ceil() as usize).max(1);
        let rows = unique.len().div_ceil(columns).max(1);
        let mut sheet = RgbImage::new((columns * side) as u32, (rows * side) as u32);
        for (place, tile) in tiles.iter().enumerate() {
            let (x, y) = (place % columns * side, place / columns * side);
            imageops::replace(&mut sheet, tile, x as i64, y as i64);
        }
        let jpeg = encode_jpeg(sheet.width(), sheet.height(), &sheet, QUALITY);
        let jpeg = jpeg.map_err(ReportError::drawing)?;
        Ok(Sprite {
            columns,
            rows,
            side,
            places: unique.iter().enumerate().map(|(p, i)| (*i, p)).collect(),
            jpeg,
        })
    }

    /// What shows the sheet in all elements of a kind.
    pub(crate) fn style(&self, of: &str, more: &str) -> Markup {
        let (sheet, across, down) = (self.data_uri(), 100 * self.columns, 100 * self.rows);
        let style = format!(
            "{of}{{background-image:url({sheet});background-size:{across}% {down}%{more}}}"
        );
        html! { style { (PreEscaped(style)) } }
    }

    /// A picture, where the sheet is shown.
    pub(crate) fn tile(&self, picture: u32, class: &str, title: &str) -> Markup {
        let place = self.places.get(&picture).copied().unwrap_or(0);
        let across = |i: usize, n: usize| match n {
            0 | 1 => 0.0,
            _ => 100.0 * i as f64 / (n - 1) as f64,
        };
        let x = across(place % self.columns, self.columns);
        let y = across(place / self.columns, self.rows);
        let position = format!("background-position:{x:.3}% {y:.3}%");
        html! {
            div class={ "tile " (class) } role="img" aria-label=(title) title=(title)
                style=(position) {}
        }
    }

    /// The sheet, as a page embeds it.
    pub fn data_uri(&self) -> String {
        format!("data:image/jpeg;base64,{}", STANDARD.encode(&self.jpeg))
    }
}

fn unique(chosen: &[u32]) -> Vec<u32> {
    let mut unique = chosen.to_vec();
    unique.sort_unstable();
    unique.dedup();
    unique
}

/// A picture as the data set has it.
fn stored(pictures: &Pictures, i: usize, scratch: &mut Vec<u8>) -> RgbImage {
    let (width, height) = (pictures.width() as u32, pictures.height() as u32);
    let bytes = pictures.picture_in(i, scratch).to_vec();
    RgbImage::from_raw(width, height, bytes).unwrap_or_else(|| RgbImage::new(width, height))
}

/// The square in the middle of a picture's file, `largest` pixels a side or as many as it has.
fn file(train: &Split, i: usize, largest: usize) -> Option<RgbImage> {
    let path = picture_named(train.pictures.folder()?, train.names.get(i)?);
    let read = Picture::read_for(path, largest, |picture| {
        let [height, width] = picture.height_and_width();
        let side = largest.min(height.min(width) as usize);
        let mut rgb = vec![0; side * side * 3];
        picture.square(side, &mut rgb)?;
        Ok((side as u32, rgb))
    });
    let (side, rgb) = read.ok()?;
    RgbImage::from_raw(side, side, rgb)
}

fn resized(tile: RgbImage, side: usize) -> RgbImage {
    let side = side as u32;
    match tile.dimensions() == (side, side) {
        true => tile,
        false => imageops::resize(&tile, side, side, imageops::FilterType::Triangle),
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
        assert!(!sprite.places.contains_key(&0));
        let sheet = image::load_from_memory(&sprite.jpeg).unwrap().into_rgb8();
        for i in [1, 3, 4u32] {
            let place = sprite.places[&i] as u32;
            let pixel = sheet.get_pixel(place % 2 * 16 + 8, place / 2 * 16 + 8);
            assert!(pixel[0].abs_diff(i as u8 * 50) < 4, "{i}: {pixel:?}");
        }
    }

    #[test]
    fn files_are_shown_larger_than_the_set_has_them() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..4u8 {
            let picture = RgbImage::from_pixel(90, 60, image::Rgb([i * 60; 3]));
            picture.save(folder.path().join(format!("{i}.png"))).unwrap();
        }
        let options = anchorhood_data::LoadOptions { size: Some(16), ..Default::default() };
        let place = folder.path().to_str().unwrap();
        let train = anchorhood_data::open(place, &options).unwrap().train;
        let sprite = Sprite::of_files(&train, &[0, 2, 3], 160).unwrap();
        assert_eq!((sprite.side, sprite.places[&3]), (64, 2));
        // A file that is gone is shown as the set has it.
        std::fs::remove_file(folder.path().join("2.png")).unwrap();
        let sprite = Sprite::of_files(&train, &[0, 2, 3], 48).unwrap();
        assert_eq!(sprite.side, 48);
        let sheet = image::load_from_memory(&sprite.jpeg).unwrap().into_rgb8();
        for (place, level) in [(0, 0), (1, 120), (2, 180u8)] {
            let pixel = sheet.get_pixel(place % 2 * 48 + 24, place / 2 * 48 + 24);
            assert!(pixel[0].abs_diff(level) < 5, "{place}: {pixel:?}");
        }
    }
}
