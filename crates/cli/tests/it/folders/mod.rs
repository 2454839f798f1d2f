//! Folders of pictures, and a run to put them through.

use std::fs;
use std::path::Path;

use image::{Rgb, RgbImage};
use serde_json::Value;

use crate::common::Sandbox;

/// A picture of 16×16, the size of the tiny run, that differs from others by its number.
pub fn picture(number: u32) -> RgbImage {
    RgbImage::from_fn(16, 16, |x, y| {
        let (a, b) = (number % 7 + 1, number / 7 % 5 + 1);
        Rgb([(x * 5 * a + number * 3) as u8, (y * 7 * b) as u8, (number * 37 + x * y) as u8])
    })
}

/// `0.png`, `1.png` … in a folder.
pub fn fill(folder: &Path, count: u32) {
    fs::create_dir_all(folder).unwrap();
    for number in 0..count {
        let name = folder.join(format!("{number}.png"));
        picture(number).save(name).unwrap();
    }
}

/// A sandbox with a tiny run called `a`.
pub fn trained(more: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    let args = [&["--name", "a", "--quiet"], more].concat();
    sandbox.train(&args).succeeded();
    sandbox
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

/// What a program wrote, a JSON object a line.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}
