//! Tar archives of pictures and labels, as they lie beside folders.

use anchorhood_data::{LabelChoice, Picture, encode_png, find_pictures};

use crate::scratch::with_file;
use crate::{Target, repair};

pub const TARGET: Target = Target { name: "archive", read, repair: repair::tar, seeds };

/// What it names can be read, or there is a reason; no name leads out.
fn read(bytes: &[u8]) {
    with_file("a.tar", bytes, |path| {
        let Ok(found) = find_pictures(path, LabelChoice::Auto) else {
            return;
        };
        for file in found.files.iter().take(4) {
            assert!(!file.name.split('/').any(|part| part.starts_with('.')));
            let _pixels = Picture::read(&file.path);
        }
    });
}

fn seeds() -> Vec<Vec<u8>> {
    let png = encode_png(4, 4, &[7; 48]).expect("a picture");
    let long = format!("{}/b.png", "long".repeat(30));
    vec![
        archive(&[("a.png", &png), ("a.cls", b"3\n")]),
        archive(&[("x/a.png", &png), ("x/a.json", br#"{"label":"cat"}"#)]),
        archive(&[(&long, &png), ("notes.txt", b"hello")]),
        archive(&[("./a.png", &png), ("../out.png", &png), (".b.png", &png)]),
    ]
}

/// Members in the form of GNU's tar; a name that is too long stands before its member, in one of
/// its own.
pub(super) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![];
    for (name, content) in files {
        if name.len() > 100 {
            member(&mut bytes, "././@LongLink", b'L', name.as_bytes());
        }
        let short: String = name.chars().take(100).collect();
        member(&mut bytes, &short, b'0', content);
    }
    bytes.resize(bytes.len() + 1024, 0);
    repair::tar(&bytes).expect("it is one")
}

fn member(bytes: &mut Vec<u8>, name: &str, kind: u8, content: &[u8]) {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar  \0");
    bytes.extend(header);
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_archives() {
        for (i, seed) in seeds().iter().enumerate() {
            with_file("a.tar", seed, |path| {
                let found = find_pictures(path, LabelChoice::Auto).expect("pictures");
                assert_eq!(found.files.len(), 1, "{i}");
                assert!(Picture::read(&found.files[0].path).is_ok(), "{i}");
                assert_eq!(found.files[0].class.is_some(), i < 2, "{i}");
            });
        }
    }
}
