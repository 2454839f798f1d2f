//! A whole JPEG to pixels, by the decoder that the `image` crate has for them: asked here, it is
//! compiled with this crate, and optimised as this crate is.

use image::{DynamicImage, GrayImage, RgbImage};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

/// A file whose headers were read.
pub(in crate::files) struct Whole<'a> {
    decoder: JpegDecoder<ZCursor<&'a [u8]>>,
    pub(in crate::files) width: u32,
    pub(in crate::files) height: u32,
    /// Whether it has no colours.
    pub(in crate::files) grey: bool,
}

impl<'a> Whole<'a> {
    pub(in crate::files) fn open(bytes: &'a [u8]) -> Result<Self, String> {
        // As lenient as other programs are; how large a picture may be is checked by who asks for
        // it.
        let options = DecoderOptions::default()
            .set_strict_mode(false)
            .set_max_width(usize::MAX)
            .set_max_height(usize::MAX);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
        decoder.decode_headers().map_err(|e| e.to_string())?;
        let (Some((width, height)), Some(colours)) =
            (decoder.dimensions(), decoder.input_colorspace())
        else {
            return Err("it has no frame".into());
        };
        let grey = colours == ColorSpace::Luma;
        let becomes = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
        decoder.set_options(options.jpeg_set_out_colorspace(becomes));
        Ok(Whole {
            decoder,
            width: width as u32, // a JPEG has at most 65,535
            height: height as u32,
            grey,
        })
    }

    pub(in crate::files) fn decoded(&mut self) -> Result<DynamicImage, String> {
        let (width, height) = (self.width, self.height);
        let channels = if self.grey { 1 } else { 3 };
        let mut pixels = vec![0; width as usize * height as usize * channels];
        let decoded = self.decoder.decode_into(&mut pixels);
        decoded.map_err(|e| e.to_string())?;
        let picture = match self.grey {
            true => GrayImage::from_raw(width, height, pixels).map(DynamicImage::ImageLuma8),
            false => RgbImage::from_raw(width, height, pixels).map(DynamicImage::ImageRgb8),
        };
        Ok(picture.expect("so many pixels"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::ImageFormat;
    use std::io::Cursor;

    /// Pixel for pixel what the `image` crate makes of it.
    #[test]
    fn colours_and_greys_are_those_of_image() {
        let rgb = RgbImage::from_fn(37, 21, |x, y| {
            image::Rgb([(x * 7) as u8, (y * 11) as u8, (x * y) as u8])
        });
        let grey = GrayImage::from_fn(21, 37, |x, y| image::Luma([(x * 5 + y * 3) as u8]));
        for picture in [DynamicImage::from(rgb), DynamicImage::from(grey)] {
            let mut bytes = vec![];
            let mut file = Cursor::new(&mut bytes);
            picture.write_to(&mut file, ImageFormat::Jpeg).unwrap();
            let mut whole = Whole::open(&bytes).unwrap();
            assert_eq!(whole.grey, picture.as_luma8().is_some());
            let expected = image::load_from_memory(&bytes).unwrap();
            assert!(whole.decoded().unwrap() == expected);
        }
    }

    #[test]
    fn so_are_those_of_other_programs_files() {
        for name in ["progressive", "restarts", "grey", "cmyk"] {
            let path = format!("tests/fixtures/jpeg/{name}.jpg");
            let bytes = std::fs::read(&path).unwrap();
            let expected = image::load_from_memory(&bytes).unwrap();
            assert!(Whole::open(&bytes).unwrap().decoded().unwrap() == expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_jpeg_is_refused() {
        assert!(Whole::open(b"").is_err());
        assert!(Whole::open(b"\xFF\xD8\xFF\xD9").is_err());
    }
}
