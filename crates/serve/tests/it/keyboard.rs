//! The map without a mouse, in a real browser, which leaves pictures of it under target/tmp/map.

use std::path::Path;

use anchorhood_search::{IndexParts, PictureIndex};
use anchorhood_serve::{Catalog, ServeOptions, Server, Stop};
use image::{Rgb, RgbImage};

use crate::clients;

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
        let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
        vectors.extend(vector.map(|v| v / length));
    }
    let class = |i| labelled.then(|| KINDS[kind(i)].to_string());
    let parts = IndexParts {
        folder: folder.into(),
        names,
        classes: (0..PICTURES).map(class).collect(),
        dim: DIM,
        vectors: vectors.into(),
        ..IndexParts::default()
    };
    let index = PictureIndex::from_parts(Path::new("map.index"), parts).unwrap();
    Catalog::of_index("map".into(), index, None).unwrap()
}

fn walk(labelled: bool, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = ServeOptions { port: 0, ..ServeOptions::default() };
    let shelf = shelf(folder.path(), labelled);
    let stop = Stop::default();
    let server = Server::bind(&options, shelf, vec![], None, None, stop.clone()).unwrap();
    let address = format!("http://{}", server.address());
    let serving = std::thread::spawn(|| server.run());
    let aside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("map");
    let args = [Path::new(&address), &aside, Path::new(name)];
    let _skipped_or_done = clients::python("keyboard.py", &["playwright"], &args);
    stop.now();
    serving.join().unwrap().unwrap();
}

#[test]
fn dots_of_labelled_pictures() {
    walk(true, "dots");
}

#[test]
fn pictures_without_labels() {
    walk(false, "pictures");
}
