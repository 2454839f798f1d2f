//! The map without a mouse, in a real browser, which leaves pictures of it under target/tmp/map.

use std::path::Path;

use anchorhood_engine::vectors::to_unit_length;
use anchorhood_serve::{Catalog, ServeOptions};
use image::{Rgb, RgbImage};

use crate::clients;
use crate::common::{catalog, visited};

const PICTURES: usize = 90;
const DIM: usize = 6;
const KINDS: [&str; 3] = ["red", "green", "blue"];

/// Pictures of three kinds, the first two of which are the same; with their kinds as labels, or
/// without.
fn shelf(folder: &Path, labelled: bool) -> Catalog {
    let names: Vec<String> = (0..PICTURES).map(|i| format!("{i}.png")).collect();
    let kind = |i: usize| if i < 2 { 0 } else { i % KINDS.len() };
    let mut vectors = vec![];
    for (i, name) in names.iter().enumerate() {
        let mut pixel = [60; 3];
        pixel[kind(i)] = 140 + i as u8;
        let square = RgbImage::from_pixel(32, 32, Rgb(pixel));
        square.save(folder.join(name)).unwrap();
        // Spread by a hash, kinds a little apart.
        let spread = |d: usize| (i.max(1) * (7919 + 104_729 * d) % 1009) as f32 / 504.5 - 1.0;
        let mut vector: [f32; DIM] = std::array::from_fn(spread);
        vector[kind(i)] += 1.5;
        vectors.extend(vector);
    }
    to_unit_length(&mut vectors, DIM);
    let labels = (0..PICTURES).filter(|_| labelled).map(|i| KINDS[kind(i)].into());
    catalog(folder, names, labels.collect(), vectors)
}

fn walk(labelled: bool, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let shelf = shelf(folder.path(), labelled);
    let aside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("map");
    visited(ServeOptions::default(), shelf, None, None, |address| {
        let address = format!("http://{address}");
        let args = [Path::new(&address), &aside, Path::new(name)];
        let _skipped_or_done = clients::python("keyboard.py", &["playwright"], &args);
    });
}

#[test]
#[ignore = "long: a browser"]
fn dots_of_labelled_pictures() {
    walk(true, "dots");
}

#[test]
#[ignore = "long: a browser"]
fn pictures_without_labels() {
    walk(false, "pictures");
}
