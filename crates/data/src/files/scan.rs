//! Which files of a folder are pictures, by their names, in one order on every machine.
//!
//! Hidden files and folders are passed over; other files that are not read are counted by the
//! endings of their names. Links are followed, to files and to folders, but no folder is entered
//! twice, so loops end. A tar archive is like a folder. What is neither a folder nor a regular file
//! is counted, and never opened.

use std::collections::{BTreeMap, HashSet};
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anchorhood_storage::{Disk, FileSystem, Kind};

use super::archive::{self, Member};
use super::kinds::{Endings, is_read};
use super::named::name_of;
use super::webdataset;
use crate::DataError;

/// Deeper than anyone sorts pictures.
const DEEPEST: usize = 64;

/// The first folder on the way to a file, by its name, if it does not lie at the top.
pub(crate) fn first_folder(name: &str) -> Option<&str> {
    name.split_once('/').map(|(first, _)| first)
}

/// What a scan found.
#[derive(Default)]
pub(crate) struct Found {
    /// Names of files that should be pictures, relative to the root as [`picture_named`]
    /// understands them; sorted.
    ///
    /// [`picture_named`]: super::picture_named
    pub candidates: Vec<String>,
    /// Folders that could not be read, each with the reason.
    pub unreadable: Vec<(String, String)>,
    /// Files that are not read.
    pub others: Endings,
    /// Pipes, sockets and devices, whatever they are called.
    pub special: usize,
    /// The classes of candidates, by name, where a file beside them or a list tells them.
    pub told: BTreeMap<String, String>,
}

impl Found {
    /// Both together, but for the candidates.
    pub fn counted_with(mut self, other: &Found) -> Found {
        self.unreadable.extend(other.unreadable.iter().cloned());
        for (ending, files) in &other.others {
            *self.others.entry(ending.clone()).or_default() += files;
        }
        self.special += other.special;
        self
    }
}

/// Every picture under `root`, a folder or an archive.
pub(crate) fn scan(root: &Path) -> Result<Found, DataError> {
    let mut scanner = Scanner { found: Found::default(), entered: HashSet::new() };
    let entered = match Disk.kind(root) {
        Ok(Kind::File) => scanner.enter_archive(root, ""),
        Ok(Kind::Other) => Err(std::io::Error::new(
            ErrorKind::InvalidInput,
            "is neither a folder nor a regular file; give the path of one",
        )),
        _ => scanner.enter(root, String::new(), 0),
    };
    entered.map_err(|e| DataError::io(root, e))?;
    let mut found = scanner.found;
    found.candidates.sort();
    Ok(found)
}

struct Scanner {
    found: Found,
    entered: HashSet<PathBuf>,
}

impl Scanner {
    fn enter(&mut self, folder: &Path, prefix: String, depth: usize) -> std::io::Result<()> {
        if depth > DEEPEST {
            let why = format!("it lies more than {DEEPEST} folders deep");
            return Err(std::io::Error::other(why));
        }
        if !self.entered.insert(folder.canonicalize()?) {
            return Ok(());
        }
        let mut entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            let file_name = name_of(&entry.file_name());
            if file_name.starts_with('.') {
                continue;
            }
            let name = format!("{prefix}{file_name}");
            let path = entry.path();
            let entered = match kind_of(&entry) {
                Kind::Folder => self.enter(&path, format!("{name}/"), depth + 1),
                Kind::File | Kind::Nothing if archive::is_archive(&path) => {
                    self.enter_archive(&path, &format!("{name}/"))
                }
                Kind::File | Kind::Nothing => {
                    let ending = ending_of(&file_name);
                    match is_read(&ending) {
                        true => self.found.candidates.push(name),
                        false => *self.found.others.entry(ending).or_default() += 1,
                    }
                    continue;
                }
                Kind::Other => {
                    self.found.special += 1;
                    continue;
                }
            };
            if let Err(e) = entered {
                self.found.unreadable.push((name, e.to_string()));
            }
        }
        Ok(())
    }

    fn enter_archive(&mut self, path: &Path, prefix: &str) -> std::io::Result<()> {
        let members = archive::members(path)?;
        let (mut pictures, mut beside): (Vec<&str>, Vec<&Member>) = (vec![], vec![]);
        for member in members.iter() {
            let ending = ending_of(&member.name);
            if is_read(&ending) {
                pictures.push(&member.name);
            } else if webdataset::is_label(&ending) {
                beside.push(member);
            } else {
                *self.found.others.entry(ending).or_default() += 1;
            }
        }
        let told = webdataset::labels(path, pictures.iter().copied(), &beside);
        let told = told.into_iter().map(|(name, label)| (format!("{prefix}{name}"), label));
        self.found.told.extend(told);
        let named = |name: &str| format!("{prefix}{name}");
        self.found.candidates.extend(pictures.into_iter().map(named));
        Ok(())
    }
}

/// What an entry of a folder is. Only links need a look at what they lead to; where there is
/// nothing, reading will tell why.
fn kind_of(entry: &DirEntry) -> Kind {
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => Kind::Folder,
        Ok(kind) if kind.is_file() => Kind::File,
        Ok(kind) if !kind.is_symlink() => Kind::Other,
        _ => Disk.kind(&entry.path()).unwrap_or(Kind::Nothing),
    }
}

/// What follows the last dot, in lower case.
fn ending_of(name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    ending.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;
    #[cfg(unix)]
    use std::os::unix::fs::symlink;

    fn files(names: &[&str]) -> TestFolder {
        TestFolder::of(names, b"")
    }

    fn names(root: &Path) -> Vec<String> {
        scan(root).unwrap().candidates
    }

    #[test]
    fn finds_pictures_by_name_in_order() {
        let shown = ["b/ü.PNG", "a.jpg", "b/c/d.WebP", "z.Jpeg", "日本.gif"];
        let others = ["notes.txt", ".hidden.png", ".git/x.png"];
        let dir = files(&[&shown[..], &others].concat());
        assert_eq!(names(&dir), ["a.jpg", "b/c/d.WebP", "b/ü.PNG", "z.Jpeg", "日本.gif"]);
    }

    #[test]
    fn what_is_not_read_is_counted() {
        let dir = files(&["a.CR2", "b/c.cr2", "b/d.jpg", "notes.txt", "README", ".x.mp4"]);
        let found = scan(&dir).unwrap().others;
        let expected = [("", 1), ("cr2", 2), ("txt", 1)];
        assert_eq!(found, expected.map(|(e, n)| (e.to_string(), n)).into());
    }

    /// As in Hugging Face's caches and DVC's: names are links to files that are called by their
    /// checksums.
    #[cfg(unix)]
    #[test]
    fn links_to_files_elsewhere_are_pictures_by_their_own_names() {
        let (dir, blobs) = (TestFolder::new(), files(&["3f9a", "more/x.png"]));
        symlink(blobs.join("3f9a"), dir.join("a.jpg")).unwrap();
        symlink(blobs.join("more"), dir.join("folder")).unwrap();
        assert_eq!(names(&dir), ["a.jpg", "folder/x.png"]);
    }

    #[cfg(unix)]
    #[test]
    fn pipes_sockets_and_devices_are_counted_whatever_they_are_called() {
        let dir = files(&["a.jpg"]);
        for name in ["b.jpg", "c.tar", "d.txt"] {
            std::os::unix::net::UnixListener::bind(dir.join(name)).unwrap();
        }
        symlink("/dev/zero", dir.join("e.png")).unwrap();
        let found = scan(&dir).unwrap();
        assert_eq!((found.special, found.others.len()), (4, 0));
        assert!(found.unreadable.is_empty());
        assert!(matches!(
            scan(&dir.join("c.tar")).err().unwrap(),
            DataError::Io { source, .. } if source.kind() == ErrorKind::InvalidInput
        ));
        assert_eq!(names(&dir), ["a.jpg"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once() {
        let dir = files(&["a/x.png"]);
        for (to, name) in [("", "a/loop"), ("a/x.png", "y.png"), ("nowhere", "dead.png")] {
            symlink(dir.join(to), dir.join(name)).unwrap();
        }
        assert_eq!(names(&dir), ["a/x.png", "dead.png", "y.png"]);
    }
}
