//! Back from a picture's name to its file, for whoever has kept nothing but the name.

use std::path::{Path, PathBuf};

use super::scan::Shown;

/// Where the picture lies to which a look through `root` gave this name.
///
/// That is the name under the root, unless parts of it were not Unicode. Those are looked for among the entries of their
/// folder, and where several look alike it is told apart by its number, as long as none of them came or went since.
pub fn picture_named(root: &Path, name: &str) -> PathBuf {
    let plain = root.join(name);
    if !name.contains(char::REPLACEMENT_CHARACTER) || plain.exists() {
        return plain;
    }
    name.split('/').fold(root.to_path_buf(), |folder, part| {
        let plain = folder.join(part);
        match part.contains(char::REPLACEMENT_CHARACTER) && !plain.exists() {
            true => shown_as(&folder, part).unwrap_or(plain),
            false => plain,
        }
    })
}

/// The entry of a folder that is not Unicode and shown so.
fn shown_as(folder: &Path, part: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.retain(|name| name.to_str().is_none());
    names.sort();
    let mut shown = Shown::default();
    let found = names.into_iter().find(|name| shown.name(name) == part);
    found.map(|name| folder.join(name))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::files::scan::scan;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn every_name_leads_back_to_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let names: [&[u8]; 8] = [
            b"plain.png",
            "d/\u{fffd}.png".as_bytes(),
            b"caf\xe8.png",
            b"caf\xe9.png",
            b"caf\xea.png",
            b"\xe8/a.png",
            b"\xe9/a.png",
            b"\xe9/\xff\xfe.png",
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
        assert_eq!(found.len(), names.len());
        for picture in found {
            assert_eq!(picture_named(root, &picture.name), picture.path(root));
        }
        let gone = "caf\u{fffd}.png (4)";
        assert_eq!(picture_named(root, gone), root.join(gone));
    }
}
