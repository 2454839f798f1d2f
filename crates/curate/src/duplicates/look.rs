//! What is kept of a picture's pixels to compare it with others: some five kilobytes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anchorhood_data::{Picture, about_picture};
use anchorhood_files::Checksum;

use super::colours::histogram;
use super::perceptual_hash::PerceptualHash;
use crate::Appearance;
use crate::luma::{Luma, mean_and_deviation};

/// Pixels of the longer side of what is compared.
pub(super) const SIDE: usize = 64;
/// Pictures whose brightness deviates less from its mean (of 255) have too little in them to be told apart.
const FLAT: f32 = 4.0;

/// A picture, as it is compared.
#[derive(Clone, Debug)]
pub struct Look {
    /// Rows and columns of the whole picture.
    pub height_and_width: [u32; 2],
    /// Its file, where it has one.
    pub(super) path: Option<PathBuf>,
    /// When the file was last written to.
    pub written: Option<SystemTime>,
    /// See [`Appearance::sharpness`].
    pub sharpness: f32,
    /// Of the pixels that were read, which are all of them where `whole`.
    pub(super) pixels: Checksum,
    pub(super) whole: bool,
    pub(super) luma: Luma,
    pub(super) hash: PerceptualHash,
    pub(super) mirrored_hash: PerceptualHash,
    pub(super) colours: Vec<f32>,
    /// Whether nothing but equal pixels would tell that it is another picture.
    pub(super) flat: bool,
}

impl Look {
    /// Reads a file once.
    pub fn at(path: &Path) -> Result<Look, String> {
        let (_, written) = about_picture(path).ok_or("there is no such file")?;
        // Not made smaller than what sharpness is told by.
        let look = Picture::read_for(path, Appearance::SIDE, Look::of)?;
        Ok(Look {
            path: Some(path.into()),
            written,
            ..look
        })
    }

    /// Of a picture that is at hand, without a file.
    pub fn of(picture: &Picture) -> Result<Look, String> {
        let ([rows, columns], rgb) = picture.within(SIDE)?;
        let luma = Luma::of_rgb(rows, columns, &rgb);
        let all = luma.resized(32, 32);
        Ok(Look {
            height_and_width: picture.height_and_width(),
            path: None,
            written: None,
            sharpness: Appearance::of(picture)?.sharpness,
            pixels: picture.checksum(),
            whole: picture.is_whole(),
            hash: PerceptualHash::of(&luma),
            mirrored_hash: PerceptualHash::of(&luma.mirrored()),
            colours: histogram(&rgb),
            flat: mean_and_deviation(&all).1 < FLAT,
            luma,
        })
    }

    /// Pixels of the whole picture.
    pub(super) fn area(&self) -> u64 {
        let [height, width] = self.height_and_width.map(u64::from);
        height * width
    }
}
