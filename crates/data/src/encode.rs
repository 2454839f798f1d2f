//! RGB pixels to the bytes of a file. The one place where encoders are compiled: theirs is generic
//! code.

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

/// A PNG file of `rgb`, `height` rows of `width`×3 bytes. The error says what is wrong with the
/// picture.
pub fn encode_png(width: u32, height: u32, rgb: &[u8]) -> Result<Vec<u8>, String> {
    check(width, height, rgb)?;
    let mut bytes = vec![];
    let written =
        PngEncoder::new(&mut bytes).write_image(rgb, width, height, ExtendedColorType::Rgb8);
    written.map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// The same as a JPEG file, colours as sharp as brightness; `quality` is 1 to 100.
pub fn encode_jpeg(width: u32, height: u32, rgb: &[u8], quality: u8) -> Result<Vec<u8>, String> {
    check(width, height, rgb)?;
    let side = |pixels: u32| {
        u16::try_from(pixels).map_err(|_| format!("a JPEG has no side of {pixels} pixels"))
    };
    let mut bytes = vec![];
    let mut encoder = Encoder::new(&mut bytes, quality);
    // Small pictures side by side keep their colours apart.
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    let written = encoder.encode(rgb, side(width)?, side(height)?, ColorType::Rgb);
    written.map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// Refuses bytes that are not rows of RGB pixels.
pub(crate) fn check(width: u32, height: u32, rgb: &[u8]) -> Result<(), String> {
    let (bytes, whole) = (rgb.len() as u64, u64::from(width) * u64::from(height) * 3);
    match bytes > 0 && bytes == whole {
        true => Ok(()),
        false => Err(format!("{bytes} bytes do not make a picture of {width}×{height}×3")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient() -> Vec<u8> {
        (0..8 * 6 * 3).map(|i| (i * 255 / 143) as u8).collect()
    }

    #[test]
    fn a_png_keeps_every_byte_and_a_jpeg_nearly() {
        let png = encode_png(8, 6, &gradient()).unwrap();
        let png = image::load_from_memory(&png).unwrap().into_rgb8();
        assert_eq!(png.dimensions(), (8, 6));
        assert_eq!(png.as_raw(), &gradient());
        let jpeg = encode_jpeg(8, 6, &gradient(), 95).unwrap();
        let jpeg = image::load_from_memory(&jpeg).unwrap().into_rgb8();
        assert!(jpeg.iter().zip(gradient()).all(|(a, b)| a.abs_diff(b) < 16));
    }

    #[test]
    fn missing_pixels_and_a_side_that_no_jpeg_has_are_errors() {
        assert!(encode_png(8, 6, &gradient()[3..]).is_err());
        assert!(encode_jpeg(9, 6, &gradient(), 90).is_err());
        let long = vec![0; 3 * 70_000];
        let error = encode_jpeg(70_000, 1, &long, 90).unwrap_err();
        assert!(error.contains("70000"), "{error}");
        assert!(encode_jpeg(0, 0, &[], 90).is_err());
    }
}
