//! Picture files of every format.

use std::io::Cursor;

use anchorhood_data::{ImageMetadata, Picture, encode_jpeg};
use image::codecs::gif::GifEncoder;
use image::codecs::webp::WebPEncoder;
use image::{
    DynamicImage, ExtendedColorType, Frame, GrayAlphaImage, ImageBuffer, ImageFormat, LumaA, Rgb,
    Rgba, RgbaImage,
};

use super::fixture;
use crate::repair;

const SIDE: u32 = 8;

/// Pixels or a reason, and no decoder that panicked; a square of it has no more and no fewer, also
/// where a JPEG is read small.
pub fn read(bytes: &[u8]) -> Option<()> {
    anchorhood_data::fuzzing::jpeg_at_an_eighth(bytes);
    ImageMetadata::of_bytes(bytes);
    if let Ok(small) = Picture::from_bytes_for(bytes, 4) {
        let _ = small.square(4, &mut [0; 4 * 4 * 3]);
    }
    let read = Picture::from_bytes(bytes);
    assert_ne!(read.as_ref().err().map(String::as_str), Some("its decoder failed"));
    let picture = read.ok()?;
    let [height, width] = picture.height_and_width();
    assert!(height > 0 && width > 0);
    let mut square = [0; 4 * 4 * 3];
    // What is too long for its width is refused.
    let _ = picture.square(4, &mut square);
    Some(())
}

pub fn seeds() -> Vec<Vec<u8>> {
    let colour = RgbaImage::from_fn(SIDE, SIDE, |x, y| {
        Rgba([x as u8 * 30, y as u8 * 30, 7, 255 - x as u8 * 9])
    });
    let colour = DynamicImage::from(colour);
    let deep = ImageBuffer::from_fn(SIDE, SIDE, |x, y| Rgb([x as u16 * 8000, y as u16 * 8000, 9]));
    let grey = GrayAlphaImage::from_fn(SIDE, SIDE, |x, y| LumaA([x as u8 * 30, y as u8 * 30]));
    let jpeg = encode_jpeg(SIDE, SIDE, colour.to_rgb8().as_raw(), 80).expect("a picture");
    vec![
        written(&colour, ImageFormat::Png),
        written(&deep.into(), ImageFormat::Png),
        written(&grey.into(), ImageFormat::Png),
        palette_png(),
        written(&colour.to_rgb8().into(), ImageFormat::Bmp),
        written(&colour, ImageFormat::Bmp),
        written(&colour, ImageFormat::Tiff),
        written(&colour.to_luma16().into(), ImageFormat::Tiff),
        animated(&colour),
        lossless(&colour),
        LOSSY.to_vec(),
        turned(&large(), 6),
        turned(&jpeg, 6),
        turned(&jpeg, 3),
        jpeg,
        fixture!("data/tests/fixtures/jpeg/progressive.jpg"),
        fixture!("data/tests/fixtures/jpeg/restarts.jpg"),
        fixture!("data/tests/fixtures/jpeg/grey.jpg"),
        fixture!("data/tests/fixtures/jpeg/cmyk.jpg"),
        fixture!("data/tests/fixtures/jpeg/smooth-420.jpg"),
        fixture!("data/tests/fixtures/jpeg/smooth-progressive.jpg"),
        fixture!("data/tests/fixtures/jpeg/smooth-restarts.jpg"),
    ]
}

/// So many pixels that fewer of them are decoded where a small picture is wanted, and few bytes.
fn large() -> Vec<u8> {
    let rgb = [90, 120, 30].repeat(1040 * 520);
    encode_jpeg(1040, 520, &rgb, 30).expect("a picture")
}

fn written(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(vec![]);
    let written = picture.write_to(&mut file, format);
    written.expect("the format takes it");
    file.into_inner()
}

fn animated(picture: &DynamicImage) -> Vec<u8> {
    let mut file = vec![];
    let frames = [picture.to_rgba8(), picture.rotate90().to_rgba8()].map(Frame::new);
    let written = GifEncoder::new(&mut file).encode_frames(frames);
    written.expect("two frames");
    file
}

fn lossless(picture: &DynamicImage) -> Vec<u8> {
    let mut file = vec![];
    let encoder = WebPEncoder::new_lossless(&mut file);
    let written = encoder.encode(&picture.to_rgba8(), SIDE, SIDE, ExtendedColorType::Rgba8);
    written.expect("a picture");
    file
}

/// The same picture with an Exif orientation.
fn turned(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let exif = b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
    let value = [orientation, 0, 0, 0, 0, 0, 0, 0];
    [&jpeg[..2], exif, &value, &jpeg[2..]].concat()
}

/// Two colours, one of them transparent, interlaced.
fn palette_png() -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |name: &[u8; 4], data: &[u8]| {
        file.extend((data.len() as u32).to_be_bytes());
        file.extend([name, data].concat());
        file.extend([0; 4]);
    };
    chunk(b"IHDR", &[0, 0, 0, 8, 0, 0, 0, 8, 1, 3, 0, 0, 1]);
    chunk(b"PLTE", &[255, 0, 0, 0, 0, 255]);
    chunk(b"tRNS", &[128]);
    // The seven passes of 8×8 pixels: 1, 1, 1, 2, 2, 4 and 4 rows, each a filter and a byte.
    let rows = [0_u8, 0x55].repeat(15);
    let stored = [&[0x78, 1, 1, 30, 0, !30, !0][..], &rows].concat();
    chunk(b"IDAT", &[&stored[..], &adler(&rows).to_be_bytes()].concat());
    chunk(b"IEND", &[]);
    repair::png(&file).expect("it is one")
}

fn adler(bytes: &[u8]) -> u32 {
    let step = |(a, b): (u32, u32), byte: &u8| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    };
    let (a, b) = bytes.iter().fold((1, 0), step);
    b << 16 | a
}

/// 8×8 pixels by libwebp at quality 10, with transparency; there is no encoder in this tree.
const LOSSY: &[u8] = b"\
    RIFFp\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\x07\x00\x00\x07\x00\x00ALPH\x1e\x00\
    \x00\x00\x01? \x16L$f\x9a\xff\x17DDd\x0e\x82l\x9b\x8ce,c\xb9?\xc6\x0d\x22\xfa\x1fK>VP8 ,\x00\x00\
    \x00\xb0\x01\x00\x9d\x01*\x08\x00\x08\x00\x07@\x96%\xb0\x02t\x00\xf4/\x19D\x00\xfe\xc00F\x90\xf7\
    \xb7j2k\x82\x0fz\xf9y\xafw\xf9\xd6\xc0\x00";
