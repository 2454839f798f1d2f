//! The formats of images that are read.

use image::ImageFormat as Decoder;

/// A format of image files.
#[derive(Debug)]
pub struct ImageFormat {
    /// What people call it.
    pub name: &'static str,
    /// The endings of its files' names, in lower case.
    pub extensions: &'static [&'static str],
    /// What a browser is told; nothing where browsers do not show it.
    pub mime: Option<&'static str>,
    /// Bytes for each pixel that its decoder keeps beside the image: coefficients of a progressive
    /// JPEG, a canvas. What is read row by row keeps nothing.
    pub kept_bytes_per_pixel: u64,
    decoder: Decoder,
}

/// All that the program itself reads. HEIC and AVIF are read by the system's libheif.
pub static FORMATS: &[ImageFormat] = &[
    format("JPEG", &["jpg", "jpeg"], Some("image/jpeg"), 6, Decoder::Jpeg),
    format("PNG", &["png"], Some("image/png"), 0, Decoder::Png),
    format("WebP", &["webp"], Some("image/webp"), 4, Decoder::WebP),
    format("BMP", &["bmp"], Some("image/bmp"), 0, Decoder::Bmp),
    format("GIF", &["gif"], Some("image/gif"), 4, Decoder::Gif),
    format("TIFF", &["tif", "tiff"], None, 0, Decoder::Tiff),
];

const fn format(
    name: &'static str,
    extensions: &'static [&'static str],
    mime: Option<&'static str>,
    kept_bytes_per_pixel: u64,
    decoder: Decoder,
) -> ImageFormat {
    ImageFormat { name, extensions, mime, kept_bytes_per_pixel, decoder }
}

impl ImageFormat {
    /// The format of a decoder, if it is one that is read.
    pub fn of(decoder: Decoder) -> Option<&'static ImageFormat> {
        FORMATS.iter().find(|format| format.decoder == decoder)
    }

    /// The names of all, as a sentence has them: `JPEG, PNG or TIFF`.
    pub fn names() -> String {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        let (last, first) = names.split_last().expect("there are some");
        format!("{} or {last}", first.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_its_decoder() {
        for format in FORMATS {
            assert!(format.decoder.reading_enabled(), "{}", format.name);
            for extension in format.extensions {
                assert_eq!(Decoder::from_extension(extension), Some(format.decoder));
            }
            if let Some(mime) = format.mime {
                assert_eq!(mime, format.decoder.to_mime_type());
            }
        }
        assert_eq!(ImageFormat::names(), "JPEG, PNG, WebP, BMP, GIF or TIFF");
        assert!(ImageFormat::of(Decoder::Pnm).is_none());
    }
}
