//! Many clients at once against a server in this process: nobody is refused, nothing is lost, and
//! it stops.

use std::path::Path;
use std::time::Duration;

use anchorhood_search::{IndexParts, PictureIndex};
use anchorhood_serve::{Catalog, ServeOptions, Server, Stop, inference_queue};
use image::{Rgb, RgbImage};

use crate::asking;

const PICTURES: usize = 1000;
const SIDE: usize = 8;
const DIM: usize = 16;

fn picture(i: usize) -> RgbImage {
    RgbImage::from_fn(SIDE as u32, SIDE as u32, |x, y| {
        let [x, y] = [x as usize, y as usize];
        Rgb([(i * 31 + x * 9) as u8, (i / 8 + y * 17) as u8, (x * y) as u8])
    })
}

/// A stand-in for a network: sums over every so manyth byte.
fn vector(square: &[u8]) -> Vec<f32> {
    let sum = |d: usize| square.iter().skip(d).step_by(DIM);
    (0..DIM).map(|d| sum(d).map(|b| f32::from(*b) - 100.0).sum()).collect()
}

fn shelf(folder: &Path) -> Catalog {
    let names: Vec<String> = (0..PICTURES).map(|i| format!("{i}.png")).collect();
    let pictures: Vec<RgbImage> = (0..PICTURES).map(picture).collect();
    for (picture, name) in pictures.iter().zip(&names) {
        picture.save(folder.join(name)).unwrap();
    }
    let unit = |v: Vec<f32>| {
        let length = v.iter().map(|v| v * v).sum::<f32>().sqrt();
        v.into_iter().map(move |v| v / length)
    };
    let parts = IndexParts {
        folder: folder.into(),
        classes: vec![None; PICTURES],
        names,
        dim: DIM,
        vectors: pictures.iter().flat_map(|p| unit(vector(p))).collect(),
        ..IndexParts::default()
    };
    let index = PictureIndex::from_parts(Path::new("load.index"), parts).unwrap();
    Catalog::of_index("load".into(), index, None).unwrap()
}

#[test]
fn eight_clients_for_two_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let options = ServeOptions { port: 0, ..ServeOptions::default() };
    let (asker, queue) = inference_queue(SIDE);
    let stop = Stop::default();
    let shelf = shelf(folder.path());
    let server = Server::bind(&options, shelf, vec![], None, Some(asker), stop.clone()).unwrap();
    let address = format!("http://{}", server.address());
    let uploads: Vec<Vec<u8>> = (0..PICTURES)
        .step_by(13)
        .map(|i| std::fs::read(folder.path().join(format!("{i}.png"))).unwrap())
        .collect();
    let seen = std::thread::scope(|threads| {
        let serving = threads.spawn(|| server.run());
        let embed = |squares: &[u8]| Ok(squares.chunks(SIDE * SIDE * 3).flat_map(vector).collect());
        threads.spawn(move || queue.answer(4, embed, |_| Err("no run".into())));
        let seen = asking::ask(&address, &uploads, 8, Duration::from_secs(2));
        stop.now();
        serving.join().unwrap().unwrap();
        seen
    });
    assert_eq!(seen.errors, Vec::<String>::new());
    let each = [&seen.uploads, &seen.searches, &seen.pictures];
    assert!(each.iter().all(|times| times.len() >= 8), "{each:?}");
    assert!(seen.requests() >= 80);
}
