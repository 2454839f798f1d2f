//! A contact sheet: many pictures as one, in rows, each with a bar below it that is as long as it is similar.

use std::path::Path;

use anchorhood_data::{Picture, encode_png};
use anchorhood_files::AtomicFile;
use image::{Rgb, RgbImage};
use rayon::prelude::*;

use crate::{PictureIndex, SearchError};

const PAPER: Rgb<u8> = Rgb([250, 250, 248]);
const MISSING: Rgb<u8> = Rgb([225, 225, 222]);
const FRAME: Rgb<u8> = Rgb([214, 90, 49]);
const TRACK: Rgb<u8> = Rgb([230, 230, 226]);
const BAR: Rgb<u8> = Rgb([62, 126, 168]);
/// Pixels between pictures.
const GAP: u32 = 10;
/// Pixels of the bar below a picture, and above it.
const BAR_HEIGHT: u32 = 4;
const BAR_GAP: u32 = 3;
/// More pictures than this make a sheet nobody looks at, and a file nobody can open.
const MOST_TILES: usize = 2000;

/// One picture of a sheet.
#[derive(Clone, Debug, Default)]
pub struct Tile {
    /// `side`×`side`×3 bytes; empty for a picture that is gone.
    pub pixels: Vec<u8>,
    /// How long its bar is, from 0 to 1; without one there is no bar.
    pub bar: Option<f32>,
    /// Whether it is framed: the picture that was asked about.
    pub framed: bool,
}

/// Pictures in rows.
#[derive(Clone, Debug)]
pub struct Sheet {
    side: usize,
    columns: Option<usize>,
    tiles: Vec<Tile>,
}

impl Sheet {
    /// An empty sheet for pictures of `side` pixels.
    pub fn new(side: usize) -> Sheet {
        Sheet {
            side,
            columns: None,
            tiles: vec![],
        }
    }

    /// With so many pictures in a row; otherwise a sheet is a little wider than high.
    pub fn with_columns(mut self, columns: usize) -> Sheet {
        self.columns = Some(columns.max(1));
        self
    }

    /// Adds a picture.
    pub fn push(&mut self, tile: Tile) {
        if self.tiles.len() < MOST_TILES {
            self.tiles.push(tile);
        }
    }

    /// Adds a picture from its file; one that cannot be read is an empty place.
    pub fn push_file(&mut self, path: &Path, bar: Option<f32>, framed: bool) {
        let pixels = Picture::read_for(path, self.side, |p| Ok(square(p, self.side)));
        let pixels = pixels.ok().flatten().unwrap_or_default();
        self.push(Tile {
            pixels,
            bar,
            framed,
        });
    }

    /// Adds pictures of an index, each with its bar: from their files, or where these are gone from the index's thumbnails.
    /// Gives the names of those that are nowhere.
    pub fn push_indexed(
        &mut self,
        index: &PictureIndex,
        pictures: &[(usize, Option<f32>)],
    ) -> Vec<String> {
        let side = self.side;
        let room = MOST_TILES.saturating_sub(self.tiles.len());
        let pictures = &pictures[..pictures.len().min(room)];
        let tile = |(i, bar): &(usize, Option<f32>)| {
            let file = Picture::read_for(index.picture(*i), side, |p| Ok(square(p, side)));
            let kept = || {
                let thumbnails = index.parts().thumbnails.as_ref()?;
                let picture = Picture::from_bytes(thumbnails.get(*i).ok()?).ok()?;
                square(&picture, side)
            };
            Tile {
                pixels: file.ok().flatten().or_else(kept).unwrap_or_default(),
                bar: *bar,
                framed: false,
            }
        };
        let tiles: Vec<Tile> = pictures.par_iter().map(tile).collect();
        let gone = pictures.iter().zip(&tiles);
        let gone = gone.filter(|(_, tile)| tile.pixels.is_empty());
        let gone = gone.map(|((i, _), _)| index.name(*i).to_string()).collect();
        self.tiles.extend(tiles);
        gone
    }

    /// Draws it.
    pub fn draw(&self) -> RgbImage {
        let count = self.tiles.len().max(1) as f64;
        let columns = (count * 1.5).sqrt().ceil().min(count) as u32;
        let columns = self.columns.map_or(columns, |c| c as u32);
        let rows = (self.tiles.len() as u32).div_ceil(columns).max(1);
        let side = self.side as u32;
        let (wide, high) = (side + GAP, side + GAP + BAR_GAP + BAR_HEIGHT);
        let mut sheet = RgbImage::from_pixel(columns * wide + GAP, rows * high + GAP, PAPER);
        for (number, tile) in self.tiles.iter().enumerate() {
            let (column, row) = (number as u32 % columns, number as u32 / columns);
            let (x, y) = (GAP + column * wide, GAP + row * high);
            if tile.framed {
                fill(&mut sheet, [x - 4, y - 4], [side + 8, side + 8], FRAME);
            }
            match RgbImage::from_raw(side, side, tile.pixels.clone()) {
                Some(picture) => {
                    image::imageops::replace(&mut sheet, &picture, x.into(), y.into());
                }
                None => fill(&mut sheet, [x, y], [side, side], MISSING),
            }
            if let Some(share) = tile.bar {
                let y = y + side + BAR_GAP;
                let long = (share.clamp(0.0, 1.0) * side as f32).round() as u32;
                fill(&mut sheet, [x, y], [side, BAR_HEIGHT], TRACK);
                fill(&mut sheet, [x, y], [long, BAR_HEIGHT], BAR);
            }
        }
        sheet
    }

    /// Draws it into a PNG file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), SearchError> {
        let sheet = self.draw();
        let png = encode_png(sheet.width(), sheet.height(), &sheet);
        let png = png.map_err(std::io::Error::other);
        let saved = png.and_then(|png| AtomicFile::write(path, &png));
        saved.map_err(SearchError::io(path))
    }
}

fn square(picture: &Picture, side: usize) -> Option<Vec<u8>> {
    let mut pixels = vec![0; side * side * 3];
    picture.square(side, &mut pixels).ok()?;
    Some(pixels)
}

fn fill(sheet: &mut RgbImage, [x, y]: [u32; 2], [width, height]: [u32; 2], colour: Rgb<u8>) {
    for row in y..y + height {
        for column in x..x + width {
            sheet.put_pixel(column, row, colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_frames_bars_and_empty_places() {
        let mut sheet = Sheet::new(8);
        let red = [200, 0, 0].repeat(64);
        sheet.push(Tile {
            pixels: red,
            bar: None,
            framed: true,
        });
        sheet.push(Tile {
            pixels: vec![],
            bar: Some(0.5),
            framed: false,
        });
        let picture = sheet.draw();
        assert_eq!(picture.dimensions(), (2 * 18 + 10, 25 + 10));
        assert_eq!(*picture.get_pixel(10, 10), Rgb([200, 0, 0]));
        assert_eq!(*picture.get_pixel(7, 7), FRAME);
        assert_eq!(*picture.get_pixel(28, 10), MISSING);
        assert_eq!(*picture.get_pixel(31, 22), BAR);
        assert_eq!(*picture.get_pixel(32, 22), TRACK);
        Sheet::new(8).draw();
    }

    #[test]
    fn no_more_than_anyone_looks_at() {
        let mut sheet = Sheet::new(1);
        (0..3000).for_each(|_| sheet.push(Tile::default()));
        assert_eq!(sheet.tiles.len(), MOST_TILES);
    }
}
