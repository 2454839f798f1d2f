//! Whatever a decoder gives, as RGB of eight bits: grey as three equal channels, sixteen bits
//! rounded, what shines through laid over white. The `image` crate converts grey and sixteen bits
//! by the general way of colour spaces, which takes longer than decoding.

use image::{DynamicImage, RgbImage};

pub(super) fn over_white(picture: DynamicImage) -> RgbImage {
    let (width, height) = (picture.width(), picture.height());
    let channels = picture.color().channel_count();
    let bytes = match picture {
        DynamicImage::ImageRgb8(rgb) => return rgb,
        DynamicImage::ImageLuma8(p) => p.into_raw(),
        DynamicImage::ImageLumaA8(p) => p.into_raw(),
        DynamicImage::ImageRgba8(p) => p.into_raw(),
        DynamicImage::ImageLuma16(p) => eight_bits(&p),
        DynamicImage::ImageLumaA16(p) => eight_bits(&p),
        DynamicImage::ImageRgb16(p) => eight_bits(&p),
        DynamicImage::ImageRgba16(p) => eight_bits(&p),
        // Floating-point numbers.
        other if channels == 4 => other.into_rgba8().into_raw(),
        other => return other.into_rgb8(),
    };
    let rgb = match channels {
        1 => each(&bytes, |[v]| [v; 3]),
        2 => each(&bytes, |[v, alpha]| [over(v, alpha); 3]),
        3 => bytes,
        _ => each(&bytes, |[r, g, b, alpha]| [over(r, alpha), over(g, alpha), over(b, alpha)]),
    };
    RgbImage::from_raw(width, height, rgb).expect("every pixel became three bytes")
}

fn each<const N: usize>(bytes: &[u8], rgb: impl Fn([u8; N]) -> [u8; 3]) -> Vec<u8> {
    let (pixels, _) = bytes.as_chunks::<N>();
    let mut out = vec![0; pixels.len() * 3];
    let (places, _) = out.as_chunks_mut::<3>();
    for (to, from) in places.iter_mut().zip(pixels) {
        *to = rgb(*from);
    }
    out
}

fn over(value: u8, alpha: u8) -> u8 {
    let (value, alpha) = (u32::from(value), u32::from(alpha));
    ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8
}

fn eight_bits(values: &[u16]) -> Vec<u8> {
    let rounded = |v: &u16| ((u32::from(*v) + 128) / 257) as u8;
    values.iter().map(rounded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ColorType, Rgba};

    /// The `image` crate's own conversion, pixel by pixel.
    fn naive(picture: DynamicImage) -> RgbImage {
        let rgba = picture.into_rgba8();
        RgbImage::from_fn(rgba.width(), rgba.height(), |x, y| {
            let Rgba([r, g, b, alpha]) = *rgba.get_pixel(x, y);
            [r, g, b].map(|v| over(v, alpha)).into()
        })
    }

    #[test]
    fn every_kind_is_what_the_general_conversion_makes_of_it() {
        let noise = |i: usize| (i * 40_503 + i / 7 * 2_531) as u16;
        let (width, height) = (37, 29);
        for colour in [
            ColorType::L8,
            ColorType::La8,
            ColorType::Rgb8,
            ColorType::Rgba8,
            ColorType::L16,
            ColorType::La16,
            ColorType::Rgb16,
            ColorType::Rgba16,
            ColorType::Rgb32F,
            ColorType::Rgba32F,
        ] {
            let mut picture = DynamicImage::new(width, height, ColorType::Rgba16);
            let DynamicImage::ImageRgba16(values) = &mut picture else {
                panic!("it was made of sixteen bits");
            };
            for (i, v) in values.iter_mut().enumerate() {
                *v = noise(i);
            }
            let picture = match colour {
                ColorType::L8 => DynamicImage::from(picture.into_luma8()),
                ColorType::La8 => DynamicImage::from(picture.into_luma_alpha8()),
                ColorType::Rgb8 => DynamicImage::from(picture.into_rgb8()),
                ColorType::Rgba8 => DynamicImage::from(picture.into_rgba8()),
                ColorType::L16 => DynamicImage::from(picture.into_luma16()),
                ColorType::La16 => DynamicImage::from(picture.into_luma_alpha16()),
                ColorType::Rgb16 => DynamicImage::from(picture.into_rgb16()),
                ColorType::Rgba16 => picture,
                ColorType::Rgb32F => DynamicImage::from(picture.into_rgb32f()),
                _ => DynamicImage::from(picture.into_rgba32f()),
            };
            assert_eq!(picture.color(), colour);
            assert_eq!(over_white(picture.clone()), naive(picture), "{colour:?}");
        }
    }
}
