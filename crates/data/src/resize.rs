//! Any RGB picture to a square of one size: its centre, the shorter side whole, resized with antialiasing.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use rayon::prelude::*;

use crate::{DataError, Pictures, Split};

/// Fills `out` (`size`×`size`×3) from the `width`×`height` picture `rgb`. The error says what the picture lacks.
pub(crate) fn to_square(
    rgb: &[u8],
    width: u32,
    height: u32,
    size: usize,
    out: &mut [u8],
) -> Result<(), String> {
    let side = width.min(height);
    if width == height && side as usize == size {
        out.copy_from_slice(rgb);
        return Ok(());
    }
    // Typed, or the resizer would be compiled for each of its thirteen kinds of pixel.
    let from = TypedImageRef::<U8x3>::from_buffer(width, height, rgb);
    let from = from.map_err(|e| e.to_string())?;
    let to = TypedImage::<U8x3>::from_buffer(size as u32, size as u32, out);
    let mut to = to.map_err(|e| e.to_string())?;
    let (left, top) = (
        f64::from(width - side) / 2.0,
        f64::from(height - side) / 2.0,
    );
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
        .crop(left, top, f64::from(side), f64::from(side));
    let resized = Resizer::new().resize_typed(&from, &mut to, &options);
    resized.map_err(|e| e.to_string())
}

/// All pictures of a split at another size.
pub(crate) fn split(split: Split, size: usize) -> Result<Split, DataError> {
    let pictures = &split.pictures;
    if pictures.height() == size && pictures.width() == size {
        return Ok(split);
    }
    let (width, height) = (pictures.width() as u32, pictures.height() as u32);
    let mut pixels = memory(pictures.len(), size)?;
    pixels
        .par_chunks_exact_mut(size * size * 3)
        .enumerate()
        .try_for_each_init(Vec::new, |scratch, (i, out)| {
            let picture = pictures.picture_in(i, scratch);
            to_square(picture, width, height, size, out)
        })
        .map_err(|why| DataError::BadOption {
            option: "size",
            why,
        })?;
    Ok(Split {
        pictures: Pictures::new(size, size, pixels)?,
        ..split
    })
}

/// Room for `n` pictures, or an error where there is none.
pub(crate) fn memory(n: usize, size: usize) -> Result<Vec<u8>, DataError> {
    let bytes = size
        .checked_mul(size * 3)
        .and_then(|one| one.checked_mul(n));
    let mut pixels = Vec::new();
    match bytes {
        Some(bytes) if pixels.try_reserve_exact(bytes).is_ok() => {
            pixels.extend(std::iter::repeat_n(0, bytes));
            Ok(pixels)
        }
        _ => Err(DataError::BadOption {
            option: "size",
            why: format!(
                "{n} pictures of {size}×{size} do not fit in memory; use a smaller size or a limit"
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_centre_of_a_long_picture() {
        // Left third red, middle third green, right third blue.
        let rgb: Vec<u8> = (0..12 * 36)
            .flat_map(|i| [[255, 0, 0], [0, 255, 0], [0, 0, 255]][i % 36 / 12])
            .collect();
        let mut out = vec![0; 4 * 4 * 3];
        to_square(&rgb, 36, 12, 4, &mut out).unwrap();
        assert!(
            out.chunks_exact(3).all(|p| p[1] > 200 && p[0] < 50),
            "{out:?}"
        );
    }

    #[test]
    fn shrinking_averages() {
        let rgb: Vec<u8> = (0..64 * 64)
            .flat_map(|i| [if (i + i / 64) % 2 == 0 { 255 } else { 0 }; 3])
            .collect();
        let mut out = vec![0; 8 * 8 * 3];
        to_square(&rgb, 64, 64, 8, &mut out).unwrap();
        assert!(out.iter().all(|&v| (120..136).contains(&v)), "{out:?}");
    }

    #[test]
    fn a_size_that_cannot_fit_is_an_error() {
        assert!(memory(usize::MAX / 8, 32).is_err());
        assert!(memory(1 << 40, 1024).is_err());
    }
}
