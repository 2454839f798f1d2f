//! What is kept of an image to compare it with others: some five kilobytes of its pixels, ten where
//! it has a flat border, and what its file says of it.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anchorhood_data::{ImageMetadata, Picture, about_picture};
use anchorhood_storage::Checksum;

use super::colours::histogram;
use super::orientation::Part;
use super::perceptual_hash::PerceptualHash;
use crate::curate::luma::{Luma, mean_and_deviation};

/// Pixels of the longer side of what is compared.
pub(super) const SIDE: usize = 64;
/// Pixels of the longer side by which a flat border is found.
const BORDER_SIDE: usize = 256;
/// Images whose brightness deviates less from its mean (of 255) have too little in them to be told
/// apart.
const FLAT: f32 = 4.0;
/// Values in a border differ at most so much from its colour, but for a share of the pixels of a
/// row.
const SAME_COLOUR: u8 = 10;
const OTHER_SHARE: f32 = 0.02;
/// A border takes at least this share of a side; within it there is at least so much of the image.
const LEAST_BORDER: f32 = 0.02;
const LEAST_INSIDE: f32 = 0.2;

/// An image, as it is compared.
#[derive(Clone, Debug)]
pub struct Look {
    /// Rows and columns of the whole image.
    pub height_and_width: [u32; 2],
    /// When the file was last written to.
    pub written: Option<SystemTime>,
    /// Camera, times, program and quantisation, as the file says them.
    pub metadata: ImageMetadata,
    /// Its file, where it has one.
    pub(super) path: Option<PathBuf>,
    /// Of the pixels that were read, which are all of them where `whole`.
    pub(super) pixels: Checksum,
    pub(super) whole: bool,
    pub(super) view: View,
    /// What lies within a flat border, and where; none without such a border.
    pub(super) inside: Option<(Part, View)>,
    /// Mean distance of the red, green and blue of a pixel: 0 for a grey image.
    pub(super) chroma: f32,
    /// Whether nothing but equal pixels would tell that it is another image.
    pub(super) flat: bool,
}

/// An image or a part of one, as it is proposed and compared.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub luma: Luma,
    pub hashes: [PerceptualHash; 8],
    pub colours: Vec<f32>,
}

impl View {
    fn new(luma: Luma, rgb: &[u8]) -> View {
        View { hashes: PerceptualHash::all(&luma), colours: histogram(rgb), luma }
    }
}

impl Look {
    /// Reads a file once.
    pub fn at(path: &Path) -> Result<Look, String> {
        let (_, written) = about_picture(path).ok_or("there is no such file")?;
        let look = Picture::read_for(path, BORDER_SIDE, Look::of)?;
        let metadata = ImageMetadata::of_file(path);
        Ok(Look { path: Some(path.into()), written, metadata, ..look })
    }

    /// Reads a file that is open, or a member of an archive that is; `path` is where it is read
    /// again where it looks like another.
    pub fn of_open(
        path: &Path,
        file: File,
        part: Range<u64>,
        written: Option<SystemTime>,
    ) -> Result<Look, String> {
        let metadata = ImageMetadata::of_part(&file, part.clone());
        let look = Picture::read_part_for(file, part, BORDER_SIDE, Look::of)?;
        Ok(Look { path: Some(path.into()), written, metadata, ..look })
    }

    /// Of an image that is at hand, without a file.
    pub fn of(picture: &Picture) -> Result<Look, String> {
        let ([rows, columns], rgb) = picture.within(SIDE)?;
        let luma = Luma::of_rgb(rows, columns, &rgb);
        let all = luma.resized(32, 32);
        let (larger, pixels) = picture.within(BORDER_SIDE)?;
        Ok(Look {
            height_and_width: picture.height_and_width(),
            path: None,
            written: None,
            metadata: ImageMetadata::default(),
            pixels: picture.checksum(),
            whole: picture.is_whole(),
            inside: inside(larger, &pixels),
            chroma: chroma(&rgb),
            flat: mean_and_deviation(&all).1 < FLAT,
            view: View::new(luma, &rgb),
        })
    }

    /// Whether it has as many pixels as the camera says that it wrote.
    pub(super) fn has_size_of_camera(&self) -> bool {
        let mut here = self.height_and_width;
        here.sort_unstable();
        self.metadata.pixels.is_some_and(|mut pixels| {
            pixels.sort_unstable();
            pixels == here
        })
    }

    /// Its views, the whole one first.
    pub(super) fn views(&self) -> impl Iterator<Item = &View> {
        std::iter::once(&self.view).chain(self.inside.as_ref().map(|(_, view)| view))
    }

    /// Pixels of the whole image.
    pub(super) fn area(&self) -> u64 {
        let [height, width] = self.height_and_width.map(u64::from);
        height * width
    }
}

fn chroma(rgb: &[u8]) -> f32 {
    let (pixels, _) = rgb.as_chunks::<3>();
    let distance = |c: &[u8; 3]| {
        let most = c.iter().max().copied().unwrap_or(0);
        let least = c.iter().min().copied().unwrap_or(0);
        f32::from(most - least)
    };
    pixels.iter().map(distance).sum::<f32>() / pixels.len().max(1) as f32
}

/// What lies within rows and columns of one colour along the edges.
fn inside([rows, columns]: [usize; 2], rgb: &[u8]) -> Option<(Part, View)> {
    let (pixels, _) = rgb.as_chunks::<3>();
    let at = |y: usize, x: usize| pixels[y * columns + x];
    let row = |y: usize| (0..columns).map(|x| at(y, x)).collect::<Vec<_>>();
    let top = flat_lines((0..rows).map(row));
    let bottom = flat_lines((0..rows).rev().map(row));
    if top + bottom >= rows {
        return None;
    }
    let column = |x: usize| (top..rows - bottom).map(|y| at(y, x)).collect::<Vec<_>>();
    let left = flat_lines((0..columns).map(column));
    let right = flat_lines((0..columns).rev().map(column));
    // The last line of a border is mixed with the first one of the image.
    let beyond = |lines: usize| if lines > 0 { lines + 1 } else { 0 };
    let [top, bottom, left, right] = [top, bottom, left, right].map(beyond);
    let high = rows.checked_sub(top + bottom)?;
    let wide = columns.checked_sub(left + right)?;
    let share = |part: usize, of: usize| part as f32 / of as f32;
    let (height, width) = (share(high, rows), share(wide, columns));
    let has_border = height.min(width) <= 1.0 - LEAST_BORDER;
    if !has_border || height.min(width) < LEAST_INSIDE || high.min(wide) < 8 {
        return None;
    }
    let lines = (top..top + high).map(|y| &pixels[y * columns + left..][..wide]);
    let rgb: Vec<u8> = lines.flatten().flatten().copied().collect();
    let luma = Luma::of_rgb(high, wide, &rgb);
    let scale = SIDE as f32 / high.max(wide) as f32;
    let side = |pixels: usize| ((pixels as f32 * scale).round() as usize).max(SIDE / 8);
    let (small_rows, small_columns) = (side(high), side(wide));
    let small = luma.resized(small_rows, small_columns);
    if mean_and_deviation(&small).1 < FLAT {
        return None;
    }
    let small = Luma {
        rows: small_rows,
        columns: small_columns,
        pixels: small.iter().map(|v| v.round() as u8).collect(),
    };
    let part = Part { top: share(top, rows), left: share(left, columns), height, width };
    Some((part, View::new(small, &rgb)))
}

/// How many of the first lines have nearly nothing but one colour, that of the first.
fn flat_lines(mut lines: impl Iterator<Item = Vec<[u8; 3]>>) -> usize {
    let Some(first) = lines.next() else { return 0 };
    let colour: [u8; 3] = std::array::from_fn(|channel| {
        let mut values: Vec<u8> = first.iter().map(|c| c[channel]).collect();
        let middle = values.len() / 2;
        *values.select_nth_unstable(middle).1
    });
    let is_other = |c: &&[u8; 3]| c.iter().zip(colour).any(|(a, b)| a.abs_diff(b) > SAME_COLOUR);
    let is_flat = |line: &Vec<[u8; 3]>| {
        let others = line.iter().filter(is_other).count();
        others as f32 <= OTHER_SHARE * line.len() as f32
    };
    if is_flat(&first) { 1 + lines.take_while(is_flat).count() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(pixel: impl Fn(u32, u32) -> u8) -> Look {
        let rgb: Vec<u8> = (0..200 * 100).flat_map(|i| [pixel(i % 200, i / 200); 3]).collect();
        Look::of(&Picture::from_rgb(200, 100, rgb).unwrap()).unwrap()
    }

    fn busy(x: u32, y: u32) -> u8 {
        (128.0 + 100.0 * ((x * x) as f32 * 0.01 + y as f32).sin()) as u8
    }

    #[test]
    fn a_flat_border_is_found_and_none_where_there_is_none() {
        let framed = look(|x, y| match (20..180).contains(&x) && (20..80).contains(&y) {
            true => busy(x, y),
            false => 255,
        });
        let (part, _) = framed.inside.unwrap();
        let sides = [part.top - 0.2, part.left - 0.1, part.height - 0.6, part.width - 0.8];
        assert!(sides.iter().all(|off| off.abs() < 0.03), "{part:?}");
        assert!(look(busy).inside.is_none());
        assert!(look(|_, _| 255).inside.is_none());
        assert_eq!(framed.chroma, 0.0);
    }
}
