//! Which files of a folder are pictures, by their names, in one order on every machine.
//!
//! Hidden files and folders are passed over. Links are followed, but no folder is entered twice, so loops end.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::DataError;

const EXTENSIONS: [&str; 6] = ["jpg", "jpeg", "png", "webp", "bmp", "gif"];
/// Deeper than anyone sorts pictures.
const DEEPEST: usize = 64;

/// A file that should be a picture.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub path: PathBuf,
    /// Relative to the folder that was scanned, parts joined by `/`; what is not Unicode is shown as �.
    pub name: String,
}

impl Candidate {
    /// The first folder on the way to the file, if it does not lie at the top.
    pub fn first_folder(&self) -> Option<&str> {
        self.name.split_once('/').map(|(first, _)| first)
    }
}

/// What a scan found.
#[derive(Default)]
pub(super) struct Found {
    /// Sorted by name.
    pub candidates: Vec<Candidate>,
    /// Folders that could not be read, each with the reason.
    pub unreadable: Vec<(String, String)>,
}

/// Every picture under `root`.
pub(super) fn scan(root: &Path) -> Result<Found, DataError> {
    let mut scanner = Scanner::default();
    scanner
        .enter(root, String::new(), 0)
        .map_err(|e| DataError::io(root, e))?;
    let mut found = scanner.found;
    found
        .candidates
        .sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
    Ok(found)
}

#[derive(Default)]
struct Scanner {
    found: Found,
    entered: HashSet<PathBuf>,
}

impl Scanner {
    fn enter(&mut self, folder: &Path, prefix: String, depth: usize) -> std::io::Result<()> {
        if depth > DEEPEST || !self.entered.insert(folder.canonicalize()?) {
            return Ok(());
        }
        let mut paths = std::fs::read_dir(folder)?
            .map(|entry| entry.map(|e| e.path()))
            .collect::<std::io::Result<Vec<_>>>()?;
        paths.sort();
        for path in paths {
            let Some(file_name) = path.file_name().map(|n| n.to_string_lossy().into_owned()) else {
                continue;
            };
            let name = format!("{prefix}{file_name}");
            if file_name.starts_with('.') {
                continue;
            }
            if path.is_dir() {
                if let Err(e) = self.enter(&path, format!("{name}/"), depth + 1) {
                    self.found.unreadable.push((name, e.to_string()));
                }
            } else if is_picture(&path) {
                self.found.candidates.push(Candidate { path, name });
            }
        }
        Ok(())
    }
}

fn is_picture(path: &Path) -> bool {
    let extension = path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    EXTENSIONS.contains(&extension.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn touch(root: &Path, name: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    fn names(root: &Path) -> Vec<String> {
        scan(root)
            .unwrap()
            .candidates
            .into_iter()
            .map(|c| c.name)
            .collect()
    }

    #[test]
    fn finds_pictures_by_name_in_order() {
        let dir = TempDir::new().unwrap();
        for name in [
            "b/ü.PNG",
            "a.jpg",
            "b/c/d.WebP",
            "notes.txt",
            ".hidden.png",
            ".git/x.png",
            "z.Jpeg",
            "日本.gif",
        ] {
            touch(dir.path(), name);
        }
        assert_eq!(
            names(dir.path()),
            ["a.jpg", "b/c/d.WebP", "b/ü.PNG", "z.Jpeg", "日本.gif"]
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once() {
        let dir = TempDir::new().unwrap();
        touch(dir.path(), "a/x.png");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("a/x.png"), dir.path().join("y.png")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("nowhere"), dir.path().join("dead.png"))
            .unwrap();
        assert_eq!(names(dir.path()), ["a/x.png", "dead.png", "y.png"]);
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_unicode_are_shown_as_well_as_can_be() {
        use std::os::unix::ffi::OsStrExt;
        let dir = TempDir::new().unwrap();
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9.png");
        if fs::write(dir.path().join(name), "").is_ok() {
            assert_eq!(names(dir.path()), ["caf\u{fffd}.png"]);
        }
    }
}
