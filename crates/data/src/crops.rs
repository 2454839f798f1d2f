//! What crops are cut from: the whole picture, where it is larger than the square that a network
//! sees.
//!
//! Evaluation looks at squares of the network's size. Crops of them would be stretched, and would
//! never show what lies beside the centre. So for training more is kept of a large picture: all of
//! it, but for what is longer than twice its shorter side, with 2¼ times as many pixels as the
//! square has. Such pictures have different shapes, and devices want items of one length: each lies
//! in a slot, after its rows and columns. A picture that is not so large lies there as its square.

use std::fmt;

use crate::Picture;

/// What crops are cut from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CropsFrom {
    /// The whole picture, as far as it is larger.
    #[default]
    Picture,
    /// The centre square, shrunk to the network's size.
    Square,
}

/// Bytes before the pixels of a slot: rows and columns, u32 each, little-endian.
const HEADER: usize = 8;
/// Sides longer than this many times the other are cut.
const LONGEST: f64 = 2.0;

/// Slots of pictures whose squares lie in a store.
pub(crate) enum Crops {
    /// In memory, one after the other.
    Slots(Vec<u8>),
    /// Filled when one is asked for, from the file that its square is decoded from.
    OnDemand,
}

impl fmt::Debug for Crops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Crops::Slots(_) => "in memory",
            Crops::OnDemand => "decoded on demand",
        })
    }
}

/// Bytes of a slot beside squares of `size` pixels a side: a multiple of four, as devices like it.
pub(crate) fn slot_len(size: usize) -> usize {
    HEADER + (3 * most_pixels(size)).next_multiple_of(4)
}

fn most_pixels(size: usize) -> usize {
    size * size * 9 / 4
}

/// Rows and columns that are kept of a picture; none where its square is all.
pub(crate) fn shape([height, width]: [u32; 2], size: usize) -> Option<[usize; 2]> {
    let (height, width) = (f64::from(height), f64::from(width));
    let least = 1.5 * size as f64;
    if height.min(width) < least {
        return None;
    }
    let ratio = (width / height).clamp(1.0 / LONGEST, LONGEST);
    let rows = (least / ratio.sqrt()).floor().max(1.0);
    let columns = (rows * ratio).floor().max(1.0);
    let [rows, columns] = [rows as usize, columns as usize];
    debug_assert!(rows * columns <= most_pixels(size).max(1));
    Some([rows, columns])
}

/// Fills a slot from a picture.
pub(crate) fn fill(picture: &Picture, size: usize, slot: &mut [u8]) -> Result<(), String> {
    let shape = shape(picture.height_and_width(), size).unwrap_or([size, size]);
    picture.shrunk(shape, begin(slot, shape))
}

/// The slot of a square of one colour.
pub(crate) fn fill_plain(colour: u8, size: usize, slot: &mut [u8]) {
    begin(slot, [size, size]).fill(colour);
}

/// Writes rows and columns; the bytes of the pixels are left to the caller, those behind them are
/// zeros.
fn begin(slot: &mut [u8], [rows, columns]: [usize; 2]) -> &mut [u8] {
    slot.fill(0);
    slot[..4].copy_from_slice(&(rows as u32).to_le_bytes());
    slot[4..HEADER].copy_from_slice(&(columns as u32).to_le_bytes());
    &mut slot[HEADER..][..rows * columns * 3]
}

/// Rows, columns and pixels of a slot.
pub(crate) fn parse(slot: &[u8]) -> ([usize; 2], &[u8]) {
    let number = |at: usize| u32::from_le_bytes(slot[at..at + 4].try_into().expect("4 bytes"));
    let [rows, columns] = [number(0) as usize, number(4) as usize];
    ([rows, columns], &slot[HEADER..][..rows * columns * 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_the_pictures_own_within_bounds() {
        assert_eq!(shape([3000, 3000], 64), Some([96, 96]));
        assert_eq!(shape([3000, 4000], 64), Some([83, 110]));
        assert_eq!(shape([4000, 3000], 64), Some([110, 82]));
        assert_eq!(shape([1000, 9000], 64), shape([1000, 2000], 64));
        assert_eq!(shape([95, 4000], 64), None);
        for size in [4, 5, 33, 64, 97, 1024] {
            for (h, w) in [(9000, 9001), (5000, 9999), (9999, 5000), (7000, 9333)] {
                let [rows, columns] = shape([h, w], size).unwrap();
                assert!(rows >= size && columns >= size, "{size}: {rows}×{columns}");
                assert!(HEADER + rows * columns * 3 <= slot_len(size));
            }
        }
    }

    /// Left third red, middle third green, right third blue: a square would be green alone.
    #[test]
    fn what_lies_beside_the_centre_is_kept() {
        let colours = [[255, 0, 0], [0, 255, 0], [0, 0, 255]];
        let rgb: Vec<u8> = (0..60 * 90).flat_map(|i| colours[i % 90 / 30]).collect();
        let picture = Picture::from_rgb(90, 60, rgb).unwrap();
        let mut slot = vec![7; slot_len(32)];
        fill(&picture, 32, &mut slot).unwrap();
        let ([rows, columns], pixels) = parse(&slot);
        assert_eq!([rows, columns], [39, 58]);
        let row = &pixels[rows / 2 * columns * 3..][..columns * 3];
        assert_eq!((&row[..3], &row[columns * 3 - 3..]), (&[255, 0, 0][..], &[0, 0, 255][..]));
        let small = Picture::from_rgb(40, 40, vec![9; 40 * 40 * 3]).unwrap();
        fill(&small, 32, &mut slot).unwrap();
        assert_eq!(parse(&slot).0, [32, 32]);
    }
}
