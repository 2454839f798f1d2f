//! Packed sets.

use std::path::Path;

use anchorhood_data::{LoadOptions, Split, check, encode_png, open, pack};
use tempfile::TempDir;

use super::lists::fixtures;
use crate::scratch::with_file;

pub fn read(bytes: &[u8]) -> Option<()> {
    with_file("a.pack", bytes, |path| {
        let spec = path.to_str().expect("a temporary folder has a plain name");
        let held_out = LoadOptions { held_out: 0.5, limit: Some(3), ..LoadOptions::default() };
        let all = [LoadOptions::default(), held_out].map(|options| {
            let data = open(spec, &options).ok()?;
            [Some(&data.train), data.test.as_ref()].into_iter().flatten().for_each(look);
            Some(())
        });
        let _ = check(spec, &|_, _| {}).map(|report| report.is_whole());
        all[0].and(all[1])
    })
}

/// Every picture has as many bytes as it should, and every label a class.
pub fn look(split: &Split) {
    let (pictures, mut scratch) = (&split.pictures, vec![]);
    for i in 0..pictures.len() {
        let one = pictures.picture_in(i, &mut scratch);
        assert_eq!(one.len(), pictures.height() * pictures.width() * 3);
    }
    let _ = (pictures.one_colour(), pictures.failures(), pictures.checksums());
    if let Some(labels) = &split.labels {
        let known = |value: &u32| (*value as usize) < labels.classes().len();
        assert!(labels.values().iter().all(known) && labels.len() == pictures.len());
    }
}

/// Twelve pictures of two classes in each part: of fewer, one that cannot be read is too many.
fn folder(root: &Path, parts: &[&str]) {
    for (part, i) in parts.iter().flat_map(|part| (0..12_u8).map(move |i| (part, i))) {
        let folder = root.join(part).join(["x", "y"][usize::from(i % 2)]);
        std::fs::create_dir_all(&folder).expect("a folder");
        let pixels: Vec<u8> = (0..48).map(|p| p * (i % 5)).collect();
        let png = encode_png(4, 4, &pixels).expect("a picture");
        std::fs::write(folder.join(format!("{i}.png")), png).expect("a file");
    }
}

fn packed(parts: &[&str]) -> Vec<u8> {
    let temporary = TempDir::new().expect("a folder");
    let from = temporary.path().join("mine");
    folder(&from, parts);
    std::fs::write(from.join(parts[0]).join("x/bad.png"), "no picture").expect("a file");
    packed_set(from.to_str().expect("a plain name"))
}

fn packed_set(spec: &str) -> Vec<u8> {
    let temporary = TempDir::new().expect("a folder");
    let to = temporary.path().join("p");
    pack(spec, &to, Some(4), false, &|_, _| {}).expect("a set is packed");
    std::fs::read(to).expect("it is there")
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        packed(&["."]),
        packed(&["train", "test"]),
        packed_set(&format!("dogs:{}", fixtures().join("dogs").display())),
    ]
}
