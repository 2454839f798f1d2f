//! Folders of pictures.

use std::fs;
use std::path::Path;

use image::{Rgb, RgbImage};

/// A picture of 16×16, the size of the tiny run, that differs from others by its number.
pub fn picture(number: u32) -> RgbImage {
    RgbImage::from_fn(16, 16, |x, y| {
        let (a, b) = (number % 7 + 1, number / 7 % 5 + 1);
        Rgb([(x * 5 * a + number * 3) as u8, (y * 7 * b) as u8, (number * 37 + x * y) as u8])
    })
}

/// The same, wider than it is high.
pub fn wide(number: u32) -> RgbImage {
    image::imageops::resize(&picture(number), 20, 16, image::imageops::FilterType::Nearest)
}

/// `0.png`, `1.png` … in a folder.
pub fn fill(folder: &Path, count: u32) {
    fs::create_dir_all(folder).unwrap();
    for number in 0..count {
        let name = folder.join(format!("{number}.png"));
        picture(number).save(name).unwrap();
    }
}

/// Two kinds of pictures, which any network tells apart: one is dark, the other light and striped.
pub fn of_kind(light: bool, number: u8) -> RgbImage {
    RgbImage::from_fn(16, 16, |x, _| match light {
        true => Rgb([255 - number, (x % 2 * 255) as u8, 200]),
        false => Rgb([number, 0, 30 + number]),
    })
}

/// A picture full of detail, of its own for each number.
pub fn scene(number: u32) -> RgbImage {
    let n = number as f32 + 1.0;
    RgbImage::from_fn(96, 72, |x, y| {
        // As of a camera's sensor: a picture without is one that was enlarged.
        let noise = ((x * 7919 + y * 104_729 + number * 1013) as f32).sin() * 12.0;
        let (x, y) = (x as f32 / 96.0, y as f32 / 72.0);
        let wave = |k: f32| {
            let turn = (n * k * 1.7).sin() * 3.0;
            (6.0 * k * (x * turn.cos() + y * turn.sin()) + n * k * k).sin() / k.sqrt()
        };
        let v: f32 = (1..12).map(|k| wave(k as f32)).sum();
        let grey = (128.0 + 35.0 * v + noise).clamp(0.0, 255.0) as u8;
        Rgb([grey, 255 - grey, grey / 2])
    })
}

/// A picture's file.
pub fn png(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(vec![]);
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A PNG whose header promises 100,000 × 100,000 pixels; nothing of them is there.
pub fn huge_png() -> Vec<u8> {
    let mut bytes = png(&picture(1));
    bytes[16..20].copy_from_slice(&100_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&100_000_u32.to_be_bytes());
    let mut sum = flate2::Crc::new();
    sum.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.sum().to_be_bytes());
    bytes
}
