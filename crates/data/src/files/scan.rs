//! Which files of a folder are pictures, by their names, in one order on every machine.
//!
//! Hidden files and folders are passed over. Links are followed, but no folder is entered twice, so loops end.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::DataError;

const EXTENSIONS: [&str; 6] = ["jpg", "jpeg", "png", "webp", "bmp", "gif"];
/// Deeper than anyone sorts pictures.
const DEEPEST: usize = 64;

/// A file that should be a picture. Small, since there may be millions.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Relative to the root, parts joined by `/`; what is not Unicode is shown as �.
    pub name: String,
    /// The path relative to the root where the name does not say it.
    odd: Option<Box<Path>>,
}

impl Candidate {
    /// A file by its name under the root.
    pub fn named(name: String) -> Self {
        Candidate { name, odd: None }
    }

    /// Where the file is.
    pub fn path(&self, root: &Path) -> PathBuf {
        match &self.odd {
            Some(path) => root.join(path),
            None => root.join(&self.name),
        }
    }

    /// The same file as seen from the folder that `folder` lies in.
    pub fn under(self, folder: &str) -> Self {
        Candidate {
            name: format!("{folder}/{}", self.name),
            odd: self.odd.map(|path| Path::new(folder).join(path).into()),
        }
    }

    /// The first folder on the way to the file, if it does not lie at the top.
    pub fn first_folder(&self) -> Option<&str> {
        self.name.split_once('/').map(|(first, _)| first)
    }
}

/// What a scan found.
#[derive(Default)]
pub(crate) struct Found {
    /// Sorted by name.
    pub candidates: Vec<Candidate>,
    /// Folders that could not be read, each with the reason.
    pub unreadable: Vec<(String, String)>,
}

/// Every picture under `root`.
pub(crate) fn scan(root: &Path) -> Result<Found, DataError> {
    let mut scanner = Scanner {
        root,
        found: Found::default(),
        entered: HashSet::new(),
    };
    scanner
        .enter(root, String::new(), 0)
        .map_err(|e| DataError::io(root, e))?;
    let mut found = scanner.found;
    found
        .candidates
        .sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.odd.cmp(&b.odd)));
    Ok(found)
}

struct Scanner<'a> {
    root: &'a Path,
    found: Found,
    entered: HashSet<PathBuf>,
}

impl Scanner<'_> {
    fn enter(&mut self, folder: &Path, prefix: String, depth: usize) -> std::io::Result<()> {
        if depth > DEEPEST || !self.entered.insert(folder.canonicalize()?) {
            return Ok(());
        }
        let mut entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
        entries.sort_by_key(|entry| entry.file_name());
        let mut shown = Shown::default();
        for entry in entries {
            let file_name = shown.name(&entry.file_name());
            if file_name.starts_with('.') {
                continue;
            }
            let name = format!("{prefix}{file_name}");
            let path = entry.path();
            // Only links need a look at what they lead to.
            let is_folder = match entry.file_type() {
                Ok(kind) if !kind.is_symlink() => kind.is_dir(),
                _ => path.is_dir(),
            };
            if is_folder {
                if let Err(e) = self.enter(&path, format!("{name}/"), depth + 1) {
                    self.found.unreadable.push((name, e.to_string()));
                }
            } else if is_picture(&path) {
                let odd = path.strip_prefix(self.root).ok();
                let odd = odd.filter(|p| p.to_str() != Some(&name)).map(Into::into);
                self.found.candidates.push(Candidate { name, odd });
            }
        }
        Ok(())
    }
}

/// How the entries of one folder are shown, one after the other in the order of their names.
#[derive(Default)]
pub(super) struct Shown {
    alike: HashMap<String, usize>,
}

impl Shown {
    /// The next one's name. What is done to a picture is kept by its name, so two must not share one.
    pub fn name(&mut self, name: &OsStr) -> String {
        let shown = name.to_string_lossy().into_owned();
        if name.to_str().is_some() {
            return shown;
        }
        let alike = self.alike.entry(shown.clone()).or_default();
        *alike += 1;
        match *alike {
            1 => shown,
            number => format!("{shown} ({number})"),
        }
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
    fn names_that_look_alike_are_told_apart() {
        use std::os::unix::ffi::OsStrExt;
        let dir = TempDir::new().unwrap();
        for name in [
            &b"caf\xe8.png"[..],
            b"caf\xe9.png",
            b"\xe8/a.png",
            b"\xe9/a.png",
        ] {
            let path = dir.path().join(OsStr::from_bytes(name));
            let _ = fs::create_dir(path.parent().unwrap()); // the first two are at the top
            if fs::write(path, name).is_err() {
                return; // a file system of Unicode names alone
            }
        }
        let found = scan(dir.path()).unwrap().candidates;
        let shown: Vec<&str> = found.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(
            shown,
            [
                "caf\u{fffd}.png",
                "caf\u{fffd}.png (2)",
                "\u{fffd} (2)/a.png",
                "\u{fffd}/a.png"
            ]
        );
        let held: HashSet<Vec<u8>> = found
            .iter()
            .map(|c| fs::read(c.path(dir.path())).unwrap())
            .collect();
        assert_eq!(held.len(), 4);
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_unicode_are_shown_as_well_as_can_be() {
        use std::os::unix::ffi::OsStrExt;
        let dir = TempDir::new().unwrap();
        let name = OsStr::from_bytes(b"caf\xe9.png");
        if fs::write(dir.path().join(name), "").is_ok() {
            assert_eq!(names(dir.path()), ["caf\u{fffd}.png"]);
            let found = scan(dir.path()).unwrap().candidates.remove(0);
            assert_eq!(found.path(dir.path()), dir.path().join(name));
            assert!(
                found
                    .under("x")
                    .path(dir.path())
                    .ends_with(Path::new("x").join(name))
            );
        }
    }
}
