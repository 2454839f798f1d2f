//! Where a picture's own bytes lie: in a file of the folder, or in an archive there. Whatever an
//! index, a name or a link says, only pictures that were indexed are opened.
//!
//! A link is followed to another picture of the index, or to the very file that was indexed through
//! it, by its length and when it was written: names in caches of Hugging Face and DVC are links to
//! files elsewhere. What was found so is opened once, by a path without links, and all that is told
//! of it or sent is of that open file.

use std::fs::{File, Metadata};
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use anchorhood_data::{Picture, archived_picture, picture_named};
use anchorhood_index::curate::Look;
use anchorhood_index::{IndexParts, IndexedFolder, stamp_of};

use crate::no_links::open_file;

pub(crate) const GONE: &str = "the picture is gone";
const OUTSIDE: &str = "the picture lies outside the indexed folder";
const OTHER: &str =
    "the picture is a link to a file that is not the one that was indexed; index its folder again";

/// A picture's open file, or its part of an open archive.
#[derive(Debug)]
pub(crate) struct Original {
    /// As decoders take it, without links: a path that may go on inside an archive.
    pub path: PathBuf,
    /// How many bytes.
    pub length: u64,
    /// When the file, or the archive, was written.
    pub written: Option<SystemTime>,
    file: File,
    start: u64,
}

impl Original {
    /// Opens picture `i` of an index, in folders that are without links.
    pub fn open(
        folders: &[IndexedFolder],
        parts: &IndexParts,
        i: usize,
    ) -> Result<Original, String> {
        let own = |f| Some((f, IndexedFolder::within(f, &parts.names[i])?));
        let (folder, within) = folders.iter().find_map(own).ok_or(GONE)?;
        let named = picture_named(&folder.path, within);
        if !is_below(&folder.path, &named) {
            return Err(OUTSIDE.into());
        }
        let stamp = parts.stamps.as_ref().map_or(0, |stamps| stamps[i]);
        let link = Link { folder, names: &parts.names, stamp };
        match named.canonicalize() {
            Ok(path) => Original::alone(&link, &named, path),
            Err(_) => Original::in_archive(&link, &named),
        }
    }

    fn alone(link: &Link, named: &Path, path: PathBuf) -> Result<Original, String> {
        let is_own = path == named || link.is_another_picture(&path);
        let may_be = |about: &Metadata| is_own || link.is_of(about.len(), about);
        let (file, about) = opened(&path, may_be)?;
        Ok(Original { length: about.len(), written: about.modified().ok(), path, file, start: 0 })
    }

    fn in_archive(link: &Link, named: &Path) -> Result<Original, String> {
        let (archive, start, length) = archived_picture(named).ok_or(GONE)?;
        let path = archive.canonicalize().map_err(|_| GONE)?;
        let is_own = path == archive;
        let (file, about) = opened(&path, |about| is_own || link.is_of(length, about))?;
        let within = named.strip_prefix(&archive).map_err(|_| GONE)?;
        Ok(Original {
            path: path.join(within),
            length,
            written: about.modified().ok(),
            file,
            start,
        })
    }

    /// Its open file, at the first of its bytes.
    pub fn into_file(mut self) -> Result<File, String> {
        self.rewind()?;
        Ok(self.file)
    }

    /// The same, lent.
    pub fn rewind(&mut self) -> Result<&mut File, String> {
        let sought = self.file.seek(SeekFrom::Start(self.start));
        sought.map_err(|_| GONE)?;
        Ok(&mut self.file)
    }

    /// The picture as it is compared with others.
    pub fn look(self) -> Result<Look, String> {
        Look::of_open(&self.path, self.file, self.start..self.start + self.length, self.written)
    }

    /// What is made of the picture, squares of at most `side` pixels ([`Picture::read_for`]).
    pub fn decode<T>(
        self,
        side: usize,
        make: impl FnOnce(&Picture) -> Result<T, String>,
    ) -> Result<T, String> {
        let part: Range<u64> = self.start..self.start + self.length;
        Picture::read_part_for(self.file, part, side, make)
    }
}

/// What a link may lead to.
struct Link<'a> {
    folder: &'a IndexedFolder,
    names: &'a [String],
    /// Of the file that was indexed; 0 where that is unknown.
    stamp: u64,
}

impl Link<'_> {
    /// Whether a path is that of a picture of the index.
    fn is_another_picture(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.folder.path) else {
            return false;
        };
        let folder = self.folder;
        let is = |name: &String| folder.within(name).is_some_and(|n| Path::new(n) == inside);
        self.names.iter().any(is)
    }

    /// Whether this is the file that was indexed, or the archive with the picture in it.
    fn is_of(&self, length: u64, about: &Metadata) -> bool {
        self.stamp != 0 && self.stamp == stamp_of(length, about.modified().ok())
    }
}

/// Whether a path leads down from a folder, as far as can be told without following links.
fn is_below(folder: &Path, path: &Path) -> bool {
    let down = |part: Component| matches!(part, Component::Normal(_));
    path.strip_prefix(folder).is_ok_and(|rest| rest.components().all(down))
}

/// Opens a file at a path without links. It is looked at before, since opening a device may do
/// something, and after.
fn opened(
    path: &Path,
    mut may_be: impl FnMut(&Metadata) -> bool,
) -> Result<(File, Metadata), String> {
    let mut right = |about: &Metadata| match (about.is_file(), may_be(about)) {
        (true, true) => Ok(()),
        (true, false) => Err(OTHER),
        (false, _) => Err(GONE),
    };
    right(&path.symlink_metadata().map_err(|_| GONE)?)?;
    let file = open_file(path).map_err(|_| GONE)?;
    let about = file.metadata().map_err(|_| GONE)?;
    right(&about)?;
    Ok((file, about))
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn parts(name: &str, stamp: Option<u64>) -> IndexParts {
        IndexParts {
            names: vec![name.into()],
            stamps: stamp.map(|stamp| vec![stamp]),
            ..IndexParts::default()
        }
    }

    fn opened_in(folder: &Path, name: &str, stamp: Option<u64>) -> Result<Original, String> {
        let folder = IndexedFolder::alone(folder.canonicalize().unwrap());
        Original::open(&[folder], &parts(name, stamp), 0)
    }

    fn stamp(path: &Path) -> u64 {
        let about = path.metadata().unwrap();
        stamp_of(about.len(), about.modified().ok())
    }

    fn content(original: Original) -> Vec<u8> {
        let mut bytes = vec![];
        let length = original.length;
        let file = original.into_file().unwrap();
        file.take(length).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_link_that_was_indexed_is_followed_to_the_file_that_was_indexed() {
        let place = tempfile::tempdir().unwrap();
        let (folder, blobs) = (place.path().join("in"), place.path().join("blobs"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir_all(blobs.join("more")).unwrap();
        std::fs::write(blobs.join("3f9a"), "picture").unwrap();
        std::fs::write(blobs.join("more/x.png"), "another").unwrap();
        symlink("../blobs/3f9a", folder.join("a.png")).unwrap();
        symlink("../blobs/more", folder.join("more")).unwrap();
        for (name, file, held) in
            [("a.png", "3f9a", "picture"), ("more/x.png", "more/x.png", "another")]
        {
            let known = stamp(&blobs.join(file));
            let found = opened_in(&folder, name, Some(known)).unwrap();
            assert_eq!(content(found), held.as_bytes());
            // Of an index that does not know what it saw, or saw something else, no link leads out.
            for unknown in [None, Some(0), Some(known ^ 1)] {
                assert!(opened_in(&folder, name, unknown).is_err(), "{name} {unknown:?}");
            }
        }
        // The same link, now to another file of the same length.
        let known = stamp(&blobs.join("3f9a"));
        std::fs::remove_file(folder.join("a.png")).unwrap();
        let secret = place.path().join("secret");
        std::fs::write(&secret, "private").unwrap();
        let file = File::options().append(true).open(&secret).unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(1);
        file.set_modified(later).unwrap();
        symlink("../secret", folder.join("a.png")).unwrap();
        assert!(opened_in(&folder, "a.png", Some(known)).is_err());
        // A name that is no link leads out of the folder nowhere, whatever the index says of it.
        assert!(opened_in(&folder, "../secret", Some(stamp(&secret))).is_err());
    }

    #[test]
    fn what_is_swapped_in_after_it_was_opened_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let (mine, secret) = (place.path().join("a.png"), place.path().join("secret"));
        std::fs::write(&mine, "picture").unwrap();
        std::fs::write(&secret, "private").unwrap();
        let found = opened_in(place.path(), "a.png", None).unwrap();
        std::fs::remove_file(&mine).unwrap();
        symlink(&secret, &mine).unwrap();
        assert_eq!(content(found), b"picture");
    }

    /// A file, or a folder on the way to it, becomes a link between the look and the opening.
    #[test]
    fn what_is_swapped_in_while_it_is_opened_is_not_read() {
        for (swapped, target) in [("in/sub/a.png", "out/a.png"), ("in/sub", "out")] {
            let place = tempfile::tempdir().unwrap();
            let root = place.path().canonicalize().unwrap();
            for (folder, bytes) in [("in/sub", "picture"), ("out", "private")] {
                std::fs::create_dir_all(root.join(folder)).unwrap();
                std::fs::write(root.join(folder).join("a.png"), bytes).unwrap();
            }
            let swap = |_: &Metadata| {
                if !root.join("away").exists() {
                    std::fs::rename(root.join(swapped), root.join("away")).unwrap();
                    symlink(root.join(target), root.join(swapped)).unwrap();
                }
                true
            };
            assert!(opened(&root.join("in/sub/a.png"), swap).is_err(), "{swapped}");
        }
    }

    #[cfg(target_os = "linux")] // rustix makes no pipes on macOS
    #[test]
    fn a_pipe_that_is_swapped_in_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap().join("a.png");
        std::fs::write(&path, "picture").unwrap();
        let mut calls = 0;
        let found = opened(&path, |_| {
            calls += 1;
            if calls == 1 {
                std::fs::remove_file(&path).unwrap();
                rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
            }
            true
        });
        assert_eq!(found.err().unwrap(), GONE);
    }
}
