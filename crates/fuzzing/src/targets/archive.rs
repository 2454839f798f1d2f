//! Tar archives of pictures and labels, as they lie beside folders.

use anchorhood_data::{LabelChoice, Picture, encode_png, find_pictures};

use super::unpack::tar_of;
use crate::scratch::with_file;

/// No name leads out.
pub fn read(bytes: &[u8]) -> Option<()> {
    with_file("a.tar", bytes, |path| {
        let found = find_pictures(path, LabelChoice::Auto).ok()?;
        let readable = found.files.iter().take(4).filter(|file| {
            assert!(!file.name.split('/').any(|part| part.starts_with('.')));
            Picture::read(&file.path).is_ok()
        });
        (readable.count() == found.files.len()).then_some(())
    })
}

pub fn seeds() -> Vec<Vec<u8>> {
    let png = encode_png(4, 4, &[7; 48]).expect("a picture");
    let long = format!("{}/b.png", "long".repeat(30));
    vec![
        tar_of(&[("a.png", &png), ("a.cls", b"3\n")]),
        tar_of(&[("x/a.png", &png), ("x/a.json", br#"{"label":"cat"}"#)]),
        tar_of(&[(&long, &png), ("notes.txt", b"hello")]),
        tar_of(&[("./a.png", &png), ("../out.png", &png), (".b.png", &png)]),
    ]
}
