//! Folders of images for tests.

use std::io::Cursor;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use tempfile::TempDir;

use crate::{Dataset, Split};

/// A file or folder of `tests/fixtures`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The bytes of one of `tests/fixtures/jpeg`.
pub(crate) fn jpeg(name: &str) -> Vec<u8> {
    std::fs::read(fixture(&format!("jpeg/{name}.jpg"))).unwrap()
}

/// A temporary folder; it derefs to its path.
pub(crate) struct TestFolder(TempDir);

impl TestFolder {
    pub fn new() -> Self {
        TestFolder(TempDir::new().unwrap())
    }

    /// With files of these names, all with the same bytes.
    pub fn of(names: &[&str], bytes: &[u8]) -> Self {
        let folder = TestFolder::new();
        names.iter().for_each(|name| folder.put(name, bytes));
        folder
    }

    /// With so many images, `00.png`, `01.png`, …
    pub fn of_images(count: usize) -> Self {
        let folder = TestFolder::new();
        (0..count).for_each(|i| folder.png(&format!("{i:02}.png")));
        folder
    }

    /// Writes a file, and the folders on the way to it.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Writes an image of 40×40 pixels.
    pub fn png(&self, name: &str) {
        self.put(name, &png_of([200, 100, 50]));
    }
}

impl Deref for TestFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

pub(crate) fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// An image of 40×40 pixels of one colour.
pub(crate) fn png_of(colour: [u8; 3]) -> Vec<u8> {
    encoded(&RgbImage::from_pixel(40, 40, Rgb(colour)).into(), ImageFormat::Png)
}

/// A JPEG with this Exif block.
pub(crate) fn with_exif(jpeg: &[u8], exif: &[u8]) -> Vec<u8> {
    let length = (exif.len() as u16 + 8).to_be_bytes();
    [&jpeg[..2], &[0xff, 0xe1], &length, b"Exif\0\0", exif, &jpeg[2..]].concat()
}

fn assert_same_split(a: &Split, b: &Split) {
    assert_eq!((&a.names, &a.labels), (&b.names, &b.labels));
    assert_eq!(a.pictures.raw(), b.pictures.raw());
}

/// Everything that anyone can see of two sets is the same.
pub(crate) fn assert_same(a: &Dataset, b: &Dataset) {
    assert_eq!((&a.name, a.mean, a.std), (&b.name, b.mean, b.std));
    assert_eq!(a.skipped, b.skipped);
    assert_same_split(&a.train, &b.train);
    assert_eq!(a.test.is_some(), b.test.is_some());
    if let (Some(a), Some(b)) = (&a.test, &b.test) {
        assert_same_split(a, b);
    }
}
