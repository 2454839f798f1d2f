//! A contact sheet: many pictures as one, in rows, each with a bar below it that is as long as it
//! is similar, its number and its name; groups apart from each other.

use std::path::Path;

use crate::lettering;
use anchorhood_data::{Picture, encode_png, name_of};
use anchorhood_storage::AtomicFile;
use image::{Rgb, RgbImage};
use rayon::prelude::*;

use anchorhood_index::{PictureIndex, SearchError};

const PAPER: Rgb<u8> = Rgb([250, 250, 248]);
const MISSING: Rgb<u8> = Rgb([225, 225, 222]);
const FRAME: Rgb<u8> = Rgb([214, 90, 49]);
const TRACK: Rgb<u8> = Rgb([230, 230, 226]);
const BAR: Rgb<u8> = Rgb([62, 126, 168]);
const INK: Rgb<u8> = Rgb([40, 44, 48]);
/// Pixels between pictures.
const GAP: u32 = 10;
/// Pixels of the bar below a picture, and above it.
const BAR_HEIGHT: u32 = 4;
const BAR_GAP: u32 = 3;
/// Letters of captions, and pixels of a line of them.
const EM: f32 = 10.0;
const LINE: u32 = 13;
/// Letters of a group's heading, and pixels of it with the space above.
const HEADING_EM: f32 = 13.0;
const HEADING: u32 = 34;
/// Smaller pictures have no captions: nobody could read them.
const LEAST_SIDE: u32 = 64;
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
    /// What is written after its number, where it is not the bar's length.
    pub note: String,
    /// Written below that; of one that is too long, the end.
    pub name: String,
}

/// A picture of an index, as it is to be shown.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Which.
    pub picture: usize,
    /// See [`Tile::bar`].
    pub bar: Option<f32>,
    /// See [`Tile::framed`].
    pub framed: bool,
    /// See [`Tile::note`].
    pub note: String,
}

impl Shown {
    /// A picture with its bar.
    pub fn with_bar(picture: usize, bar: impl Into<Option<f32>>) -> Shown {
        Shown { picture, bar: bar.into(), ..Shown::default() }
    }
}

/// Pictures in rows.
#[derive(Clone, Debug)]
pub struct Sheet {
    side: usize,
    columns: Option<usize>,
    tiles: Vec<Tile>,
    /// Headings, and the tile that each comes before.
    groups: Vec<(usize, String)>,
}

impl Sheet {
    /// An empty sheet for pictures of `side` pixels.
    pub fn new(side: usize) -> Sheet {
        Sheet { side, columns: None, tiles: vec![], groups: vec![] }
    }

    /// With so many pictures in a row; otherwise a sheet is a little wider than high.
    pub fn with_columns(mut self, columns: usize) -> Sheet {
        self.columns = Some(columns.max(1));
        self
    }

    /// Pictures that are added after this stand apart from those before, below a heading.
    pub fn begin_group(&mut self, heading: impl Into<String>) {
        if self.tiles.len() < MOST_TILES {
            self.groups.push((self.tiles.len(), heading.into()));
        }
    }

    /// Whether nothing more is shown.
    pub fn is_full(&self) -> bool {
        self.tiles.len() >= MOST_TILES
    }

    /// Adds a picture.
    pub fn push(&mut self, tile: Tile) {
        if !self.is_full() {
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
            name: name_of(path.file_name().unwrap_or_default()),
            ..Tile::default()
        });
    }

    /// Adds pictures of an index: from their files, or where these are gone from the index's
    /// thumbnails. Gives the names of those that are nowhere.
    pub fn push_shown(&mut self, index: &PictureIndex, pictures: &[Shown]) -> Vec<String> {
        let side = self.side;
        let room = MOST_TILES.saturating_sub(self.tiles.len());
        let pictures = &pictures[..pictures.len().min(room)];
        let tile = |shown: &Shown| {
            let i = shown.picture;
            let file = Picture::read_for(index.picture(i), side, |p| Ok(square(p, side)));
            let kept = || {
                let thumbnails = index.parts().thumbnails.as_ref()?;
                let picture = Picture::from_bytes(thumbnails.get(i).ok()?).ok()?;
                square(&picture, side)
            };
            Tile {
                pixels: file.ok().flatten().or_else(kept).unwrap_or_default(),
                bar: shown.bar,
                framed: shown.framed,
                note: shown.note.clone(),
                name: index.name(i).into(),
            }
        };
        let tiles: Vec<Tile> = pictures.par_iter().map(tile).collect();
        let gone = tiles.iter().filter(|tile| tile.pixels.is_empty());
        let gone = gone.map(|tile| tile.name.clone()).collect();
        self.tiles.extend(tiles);
        gone
    }

    /// Draws it.
    pub fn draw(&self) -> RgbImage {
        let side = self.side as u32;
        let columns = self.columns();
        let (places, end) = self.places(columns);
        let mut sheet = RgbImage::from_pixel(columns * (side + GAP) + GAP, end, PAPER);
        for (start, heading) in &self.groups {
            if let Some([x, y]) = places.get(*start) {
                let room = (sheet.width() - 2 * GAP) as f32;
                let heading = lettering::shortened(heading, HEADING_EM, room);
                lettering::draw(&mut sheet, &heading, HEADING_EM, [*x, y - GAP], INK);
            }
        }
        for ((number, tile), place) in (1..).zip(&self.tiles).zip(places) {
            self.draw_tile(&mut sheet, tile, number, place);
        }
        sheet
    }

    fn columns(&self) -> u32 {
        let count = self.tiles.len().max(1) as f64;
        let columns = (count * 1.5).sqrt().ceil().min(count) as u32;
        self.columns.map_or(columns, |c| c as u32)
    }

    /// Rows of captions.
    fn lines(&self) -> u32 {
        if self.side as u32 >= LEAST_SIDE { 2 } else { 0 }
    }

    /// The upper left corner of each tile, and where the sheet ends.
    fn places(&self, columns: u32) -> (Vec<[u32; 2]>, u32) {
        let side = self.side as u32;
        let high = side + GAP + BAR_GAP + BAR_HEIGHT + self.lines() * LINE;
        let (mut y, mut column) = (GAP, 0);
        let mut places = vec![];
        let mut groups = self.groups.iter().map(|(start, _)| *start).peekable();
        for number in 0..self.tiles.len() {
            let begins = groups.next_if_eq(&number).is_some();
            while groups.next_if_eq(&number).is_some() {} // empty ones
            if column == columns || (begins && column > 0) {
                (column, y) = (0, y + high);
            }
            y += if begins { HEADING } else { 0 };
            places.push([GAP + column * (side + GAP), y]);
            column += 1;
        }
        (places, y + high)
    }

    fn draw_tile(&self, sheet: &mut RgbImage, tile: &Tile, number: usize, [x, y]: [u32; 2]) {
        let side = self.side as u32;
        if tile.framed {
            fill(sheet, [x - 4, y - 4], [side + 8, side + 8], FRAME);
        }
        match RgbImage::from_raw(side, side, tile.pixels.clone()) {
            Some(picture) => image::imageops::replace(sheet, &picture, x.into(), y.into()),
            None => fill(sheet, [x, y], [side, side], MISSING),
        }
        let below = y + side + BAR_GAP;
        if let Some(share) = tile.bar {
            let long = (share.clamp(0.0, 1.0) * side as f32).round() as u32;
            fill(sheet, [x, below], [side, BAR_HEIGHT], TRACK);
            fill(sheet, [x, below], [long, BAR_HEIGHT], BAR);
        }
        if self.lines() > 0 {
            let note = match (&tile.note, tile.bar) {
                (note, Some(bar)) if note.is_empty() => format!("{bar:.3}"),
                (note, _) => note.clone(),
            };
            let texts = [format!("{number}  {note}"), tile.name.clone()];
            for (line, text) in (1..).zip(texts) {
                let text = lettering::shortened(&text, EM, side as f32);
                let baseline = below + BAR_HEIGHT + line * LINE - 2;
                lettering::draw(sheet, &text, EM, [x, baseline], INK);
            }
        }
    }

    /// Draws it as the bytes of a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, SearchError> {
        let sheet = self.draw();
        let png = encode_png(sheet.width(), sheet.height(), &sheet);
        png.map_err(SearchError::Impossible)
    }

    /// Draws it into a PNG file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), SearchError> {
        let saved = AtomicFile::write(path, &self.png()?);
        saved.map_err(SearchError::io(path))
    }
}

fn square(picture: &Picture, side: usize) -> Option<Vec<u8>> {
    let mut pixels = vec![0; side * side * 3];
    picture.square(side, &mut pixels).ok()?;
    Some(pixels)
}

fn fill(sheet: &mut RgbImage, [x, y]: [u32; 2], [width, height]: [u32; 2], colour: Rgb<u8>) {
    let filled = RgbImage::from_pixel(width, height, colour);
    image::imageops::replace(sheet, &filled, x.into(), y.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(side: usize) -> Tile {
        Tile { pixels: [200, 0, 0].repeat(side * side), framed: true, ..Tile::default() }
    }

    #[test]
    fn tiles_frames_bars_and_empty_places() {
        let mut sheet = Sheet::new(8);
        sheet.push(red(8));
        sheet.push(Tile { bar: Some(0.5), ..Tile::default() });
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
    fn groups_stand_apart_and_begin_rows() {
        let mut sheet = Sheet::new(64).with_columns(3);
        sheet.begin_group("1: two");
        sheet.push(red(64));
        sheet.push(red(64));
        sheet.begin_group("nothing in it");
        sheet.begin_group("2: four");
        (0..4).for_each(|_| sheet.push(red(64)));
        let row = 64 + GAP + BAR_GAP + BAR_HEIGHT + 2 * LINE;
        let (places, end) = sheet.places(3);
        let (first, second) = (GAP + HEADING, GAP + 2 * HEADING + row);
        let tops: Vec<u32> = places.iter().map(|p| p[1]).collect();
        assert_eq!(tops, [first, first, second, second, second, second + row]);
        assert_eq!(places[5], [GAP, second + row]);
        assert_eq!(end, second + 2 * row);
        let picture = sheet.draw();
        let dark = |from: u32, to: u32| {
            (from..to).any(|y| (0..150).any(|x| picture.get_pixel(x, y).0 < [90, 90, 90]))
        };
        assert!(dark(GAP, first - 4), "the heading");
        assert!(dark(first + 64 + 8, first + row - GAP), "a caption");
    }

    #[test]
    fn no_more_than_anyone_looks_at() {
        let mut sheet = Sheet::new(1);
        (0..3000).for_each(|_| sheet.push(Tile::default()));
        assert_eq!(sheet.tiles.len(), MOST_TILES);
    }
}
