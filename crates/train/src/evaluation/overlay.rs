//! Attention as a person sees it: heat over a picture, and pictures side by side in a strip.

use anchorhood_data::encode_png;
use image::imageops::{self, FilterType};
use image::{Rgb, RgbImage};

use crate::evaluation::HeatMap;

/// The shorter side of a tile is at least this many pixels: small pictures are enlarged by whole
/// numbers.
const LEAST_TILE: u32 = 128;
/// Around and between tiles.
const GAP: u32 = 6;
/// A tile's frame.
const FRAME: u32 = 4;
const PAPER: Rgb<u8> = Rgb([255, 255, 255]);

/// What a frame says of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing.
    Plain,
    /// The picture stood alone.
    Alone,
    /// All of its neighbours are of its class.
    Right,
    /// Some are not: a failure.
    Wrong,
}

impl Mark {
    fn colour(self) -> Rgb<u8> {
        match self {
            Mark::Plain => PAPER,
            Mark::Alone => Rgb([150, 150, 150]),
            Mark::Right => Rgb([26, 150, 65]),
            Mark::Wrong => Rgb([215, 25, 28]),
        }
    }
}

/// A picture in a strip.
#[derive(Clone, Debug)]
pub struct Tile {
    /// RGB, row after row.
    pub picture: RgbImage,
    /// Its frame.
    pub mark: Mark,
}

/// One picture's column: what is shown, and what it was matched with.
#[derive(Clone, Debug)]
pub struct Column {
    /// The upper tile.
    pub shown: Tile,
    /// The lower one, if any.
    pub neighbour: Option<Tile>,
}

/// A picture from its bytes, HWC. Panics unless there are as many as the size says.
pub fn picture(pixels: &[u8], height: usize, width: usize) -> RgbImage {
    let image = RgbImage::from_raw(width as u32, height as u32, pixels.to_vec());
    image.expect("three bytes for each pixel")
}

/// Lays heat over a picture: half the picture, half the colour of the map's value there, from blue
/// (nothing) over green and yellow to red (the map's largest value). A map of nothing is all blue.
pub fn overlay(picture: &RgbImage, map: &HeatMap) -> RgbImage {
    let largest = map.values.iter().fold(0.0_f32, |m, v| m.max(*v));
    let scale = if largest > 0.0 { 1.0 / largest } else { 0.0 };
    let mut out = picture.clone();
    let (width, height) = (picture.width() as f32, picture.height() as f32);
    for (x, y, pixel) in out.enumerate_pixels_mut() {
        let row = (y as f32 + 0.5) / height * map.height as f32 - 0.5;
        let column = (x as f32 + 0.5) / width * map.width as f32 - 0.5;
        let heat = heat_colour(between(map, row, column) * scale);
        for (p, h) in pixel.0.iter_mut().zip(heat) {
            *p = ((u16::from(*p) + u16::from(h)) / 2) as u8;
        }
    }
    out
}

/// The map between its places, bilinear; beyond the outermost ones it stays as it is there.
fn between(map: &HeatMap, row: f32, column: f32) -> f32 {
    let axis = |v: f32, len: usize| {
        let v = v.clamp(0.0, (len - 1) as f32);
        let low = (v as usize).min(len.saturating_sub(2));
        (low, (low + 1).min(len - 1), v - low as f32)
    };
    let (top, bottom, down) = axis(row, map.height);
    let (left, right, across) = axis(column, map.width);
    let at = |y: usize, x: usize| map.values[y * map.width + x];
    let mix = |a: f32, b: f32, share: f32| a + (b - a) * share;
    mix(
        mix(at(top, left), at(top, right), across),
        mix(at(bottom, left), at(bottom, right), across),
        down,
    )
}

/// Blue, cyan, green, yellow, red at quarters of the way from 0 to 1.
fn heat_colour(v: f32) -> [u8; 3] {
    const STOPS: [[f32; 3]; 5] = [
        [0.0, 0.0, 160.0],
        [0.0, 160.0, 255.0],
        [60.0, 220.0, 90.0],
        [255.0, 230.0, 0.0],
        [230.0, 0.0, 0.0],
    ];
    let v = v.clamp(0.0, 1.0) * 4.0;
    let low = (v as usize).min(3);
    let share = v - low as f32;
    let mixed = |c: usize| STOPS[low][c] + (STOPS[low + 1][c] - STOPS[low][c]) * share;
    [mixed(0), mixed(1), mixed(2)].map(|c| c.round() as u8)
}

/// Columns side by side, framed, on white: a row of what is shown, and below it, where any column
/// has one, a row of neighbours. All tiles have the size of the first. Panics without a column.
pub fn strip(columns: &[Column]) -> RgbImage {
    let first = &columns[0].shown.picture;
    let side = first.width().min(first.height()).max(1);
    let times = LEAST_TILE.div_ceil(side);
    let (width, height) = (first.width() * times, first.height() * times);
    let (step_x, step_y) = (width + 2 * FRAME + GAP, height + 2 * FRAME + GAP);
    let rows = 1 + u32::from(columns.iter().any(|c| c.neighbour.is_some()));
    let mut out =
        RgbImage::from_pixel(GAP + columns.len() as u32 * step_x, GAP + rows * step_y, PAPER);
    for (i, column) in (0..).zip(columns) {
        let tiles = [Some(&column.shown), column.neighbour.as_ref()];
        for (row, tile) in (0..).zip(tiles) {
            let Some(tile) = tile else { continue };
            let (x, y) = (GAP + i * step_x, GAP + row * step_y);
            let frame =
                RgbImage::from_pixel(width + 2 * FRAME, height + 2 * FRAME, tile.mark.colour());
            imageops::replace(&mut out, &frame, i64::from(x), i64::from(y));
            let large = imageops::resize(&tile.picture, width, height, FilterType::Nearest);
            let inside = (i64::from(x + FRAME), i64::from(y + FRAME));
            imageops::replace(&mut out, &large, inside.0, inside.1);
        }
    }
    out
}

/// The bytes of a PNG file.
pub fn png(image: &RgbImage) -> Vec<u8> {
    encode_png(image.width(), image.height(), image).expect("memory takes any picture")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_lies_where_the_map_is_high() {
        let grey = RgbImage::from_pixel(8, 8, Rgb([100; 3]));
        let map = HeatMap { height: 2, width: 2, values: vec![0.0, 0.0, 0.0, 5.0] };
        let out = overlay(&grey, &map);
        assert_eq!(out.get_pixel(0, 0).0, [50, 50, 130]);
        assert_eq!(out.get_pixel(7, 7).0, [165, 50, 50]);
        let nothing = HeatMap { values: vec![0.0; 4], ..map };
        let out = overlay(&grey, &nothing);
        assert!(out.pixels().all(|p| p.0 == [50, 50, 130]));
    }

    #[test]
    fn maps_of_one_place_and_one_row() {
        let grey = RgbImage::from_pixel(5, 3, Rgb([0; 3]));
        for (height, width) in [(1, 1), (1, 4)] {
            let values = vec![1.0; height * width];
            let map = HeatMap { height, width, values };
            let out = overlay(&grey, &map);
            assert!(out.pixels().all(|p| p.0 == [115, 0, 0]));
        }
    }

    #[test]
    fn strips_have_a_tile_and_a_frame_for_each() {
        let tile = |mark| Tile { picture: RgbImage::from_pixel(32, 32, Rgb([1, 2, 3])), mark };
        let columns = [
            Column { shown: tile(Mark::Plain), neighbour: None },
            Column { shown: tile(Mark::Wrong), neighbour: Some(tile(Mark::Wrong)) },
        ];
        let out = strip(&columns);
        assert_eq!(out.dimensions(), (6 + 2 * 142, 6 + 2 * 142));
        assert_eq!(out.get_pixel(6 + 142, 6), &Mark::Wrong.colour());
        assert_eq!(out.get_pixel(6 + 142 + 4, 6 + 4).0, [1, 2, 3]);
        assert_eq!(out.get_pixel(10, 6 + 142 + 10), &PAPER);
        assert_eq!(strip(&columns[..1]).height(), 6 + 142);
        assert_eq!(&png(&out)[1..4], b"PNG");
    }
}
