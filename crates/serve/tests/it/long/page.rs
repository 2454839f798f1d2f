//! The page in a real browser: originals, the lightbox, uploads on the way, selecting and
//! exporting, filters, and the views. It leaves pictures of what it saw under target/tmp/views.

use std::fs::File;
use std::path::Path;

use anchorhood_serve::{Catalog, ServeOptions};
use image::{ImageFormat, Rgb, RgbImage, imageops};

use crate::clients;
use crate::common::{catalog, visited};

const SIDE: usize = 8;
const DIM: usize = 4;
/// Pictures of each kind.
const EACH: usize = 40;
const KINDS: [&str; 3] = ["red", "green", "blue"];

/// Wider than high, of one colour with waves that tell it from all others; the second of a kind is
/// a copy of the first, of another sort for each kind.
fn picture(kind: usize, number: usize) -> RgbImage {
    let first = || waves(kind, 0);
    match (number, kind) {
        (1, 0) => imageops::flip_horizontal(&first()),
        (1, 1) => first(),
        (1, _) => imageops::crop_imm(&first(), 40, 20, 260, 200).to_image(),
        _ => waves(kind, number),
    }
}

fn waves(kind: usize, number: usize) -> RgbImage {
    let n = (kind * EACH + number + 1) as f32;
    RgbImage::from_fn(360, 240, |x, y| {
        let (x, y) = (x as f32 / 240.0, y as f32 / 240.0);
        let wave = |k: f32| {
            let turn = (n * k * 1.7).sin() * 3.0;
            ((6.0 * k * (x * turn.cos() + y * turn.sin())) + n * k * k).sin() / k.sqrt()
        };
        let sum: f32 = (1..12).map(|k| wave(k as f32)).sum();
        let mut pixel = [(60.0 + 20.0 * sum).clamp(0.0, 255.0) as u8; 3];
        pixel[kind] = pixel[kind].saturating_add(120);
        Rgb(pixel)
    })
}

/// By the colour in the middle, turned a little by the number; the first two of a kind are copies.
fn vector(kind: usize, number: usize) -> [f32; DIM] {
    let mut vector = [0.0; DIM];
    let turned = number.saturating_sub(1) as f32 * 0.02;
    vector[kind] = turned.cos();
    vector[3] = turned.sin();
    vector
}

fn png(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(vec![]);
    picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Two kinds in sub-folders, the third in an archive.
fn shelf(folder: &Path) -> Catalog {
    let mut archive = tar::Builder::new(File::create(folder.join("more.tar")).unwrap());
    let (mut names, mut labels, mut vectors) = (vec![], vec![], vec![]);
    for (kind, label) in KINDS.iter().enumerate() {
        std::fs::create_dir_all(folder.join("photos").join(label)).unwrap();
        for number in 0..EACH {
            let bytes = png(&picture(kind, number));
            let file = format!("a-rather-long-name-of-a-photograph-number-{number}.png");
            let name = match kind {
                2 => {
                    let mut header = tar::Header::new_gnu();
                    header.set_size(bytes.len() as u64);
                    let added = archive.append_data(&mut header, &file, &bytes[..]);
                    added.unwrap();
                    format!("more.tar/{file}")
                }
                _ => format!("photos/{label}/{file}"),
            };
            if kind != 2 {
                std::fs::write(folder.join(&name), &bytes).unwrap();
            }
            names.push(name);
            labels.push(label.to_string());
            vectors.extend(vector(kind, number));
        }
    }
    archive.finish().unwrap();
    catalog(folder, names, labels, vectors)
}

#[test]
#[ignore = "long: a browser"]
fn a_browser_uses_every_part_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let shelf = shelf(&root);
    let query = root.join("query.png");
    picture(1, 7).save(&query).unwrap();
    // Whatever is sent is green.
    let embed = |squares: &[u8]| vector(1, 7).repeat(squares.len() / (SIDE * SIDE * 3));
    let aside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("views");
    visited(ServeOptions::default(), shelf, None, Some((SIDE, embed)), |address| {
        let address = format!("http://{address}");
        let args = [Path::new(&address), &query, &root, &aside];
        let _skipped_or_done = clients::python("page.py", &["playwright"], &args);
    });
}
