//! A picture's name: its path relative to the folder, as text that tells every two files apart and
//! can be shown anywhere.
//!
//! Parts are joined by `/`. A name is the path itself but for what would not survive as text, or
//! would do something to the terminal it is shown on: bytes that are not UTF-8, control characters,
//! and characters that turn the direction of writing are written `\xHH`, byte by byte. A `\` that
//! stands before an `x` is written `\x5c`, so that no other file has the same name.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where the picture lies to which a look through `root` gave this name.
pub fn picture_named(root: &Path, name: &str) -> PathBuf {
    if name.contains(ESCAPE) { root.join(unescaped(name)) } else { root.join(name) }
}

const ESCAPE: &str = "\\x";

/// How a file, a folder or a path is called: [`picture_named`] leads back to it.
pub fn name_of(file: &OsStr) -> String {
    match file.to_str() {
        Some(name) if !name.contains(ESCAPE) && !name.contains(unseen) => name.into(),
        _ => escaped(file.as_encoded_bytes()),
    }
}

/// Whether a character is not seen itself but does something: to the cursor, to lines, to the order
/// of others. A name never has one.
pub fn unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(bytes: &[u8]) -> String {
    let hex = |byte: &u8| format!("{ESCAPE}{byte:02x}");
    let mut name = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().replace(ESCAPE, "\\x5cx").chars() {
            match unseen(c) {
                true => name.extend(c.to_string().as_bytes().iter().map(hex)),
                false => name.push(c),
            }
        }
        name.extend(chunk.invalid().iter().map(hex));
    }
    name
}

/// What was escaped; any other `\x` stands for itself.
fn unescaped(name: &str) -> OsString {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(ESCAPE) {
        bytes.extend(&rest.as_bytes()[..at]);
        rest = &rest[at + ESCAPE.len()..];
        let digits = rest.get(..2).filter(|d| !d.starts_with('+'));
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            // No other byte is ever escaped: a `/` or a `.` would lead elsewhere.
            Some(byte) if !byte.is_ascii() || byte.is_ascii_control() || byte == b'\\' => {
                bytes.push(byte);
                rest = &rest[2..];
            }
            _ => bytes.extend(ESCAPE.as_bytes()),
        }
    }
    bytes.extend(rest.as_bytes());
    from_bytes(bytes)
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// Elsewhere a name that is not Unicode leads nowhere, and its picture is one that cannot be read.
#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::files::scan::scan;
    use std::collections::HashSet;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn every_name_is_its_own_and_leads_back_to_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let names: [&[u8]; 16] = [
            b"plain.png",
            "d/\u{fffd}.png".as_bytes(),
            b"d/\xff.png",
            b"d/\\xff.png",
            b"d/\\x5cxff.png",
            b"d/\\.png",
            b"caf\xe8.png",
            b"caf\xe9.png",
            b"\xe8/a.png",
            b"\xe9/a.png",
            b"\xe9/\xff\xfe.png",
            b"two\nlines.png",
            b"red\x1b[31m.png",
            b"back\rover.png",
            "turned \u{202e}gnp.png".as_bytes(),
            "Фото 写真 ü.png".as_bytes(),
        ];
        for name in names {
            let path = root.join(OsStr::from_bytes(name));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if std::fs::write(path, name).is_err() {
                anchorhood_testing::skip("a file system of Unicode names alone");
                return;
            }
        }
        let found = scan(root).unwrap().candidates;
        let named: HashSet<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(named.len(), names.len());
        for name in named {
            assert!(!name.contains(unseen), "{name:?}");
            let held = std::fs::read(picture_named(root, name)).unwrap();
            assert_eq!(root.join(OsStr::from_bytes(&held)), picture_named(root, name));
        }
    }

    #[test]
    fn names_are_escaped_as_documented() {
        let name = |bytes: &[u8]| name_of(OsStr::from_bytes(bytes));
        assert_eq!(name("ü \\ \u{fffd}".as_bytes()), "ü \\ \u{fffd}");
        assert_eq!(name(b"bad\xff.png"), "bad\\xff.png");
        assert_eq!(name(b"bad\\xff.png"), "bad\\x5cxff.png");
        assert_eq!(name(b"a\x1b[2J\n"), "a\\x1b[2J\\x0a");
        assert_eq!(name("\u{202e}".as_bytes()), "\\xe2\\x80\\xae");
        for odd in ["\\x", "\\xg1", "\\x+1", "\\xü", "\\x2e\\x2e\\x2fa"] {
            assert_eq!(unescaped(odd), odd);
        }
    }
}
