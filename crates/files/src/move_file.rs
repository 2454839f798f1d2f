//! A file to another place, never over another file, and at every moment under its old name, its new one or both.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::{FileSystem, folder_of};

/// Moves the file `from` to `to`, whose folder is there; [`ErrorKind::AlreadyExists`] where there is something of that name. Where a
/// power cut or a kill comes in between, the file may have both names.
///
/// The new name is there, synced, before the old one goes. On a disk that gives no second names, an empty file takes the new name,
/// which no other program's file can then have, and is replaced.
pub fn move_file(disk: &dyn FileSystem, from: &Path, to: &Path) -> io::Result<()> {
    match disk.link(from, to) {
        Ok(()) => {
            disk.sync_folder(folder_of(to))?;
            disk.remove(from)?;
        }
        Err(e) if no_links(e.kind()) => rename_new(disk, from, to)?,
        Err(e) => return Err(e),
    }
    disk.sync_folder(folder_of(from))
}

fn rename_new(disk: &dyn FileSystem, from: &Path, to: &Path) -> io::Result<()> {
    drop(disk.create_new(to)?);
    if let Err(error) = disk.rename(from, to) {
        let _ = disk.remove(to); // the first error is the one to tell
        return Err(error);
    }
    disk.sync_folder(folder_of(to))
}

fn no_links(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unsupported | ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AtomicFile, Forgetful, Kind, attack};

    fn prepared(disk: Forgetful) -> Forgetful {
        disk.create_folders(Path::new("/a")).unwrap();
        disk.create_folders(Path::new("/b")).unwrap();
        AtomicFile::write_on(&disk, Path::new("/a/x"), b"picture").unwrap();
        disk
    }

    #[test]
    fn it_is_there_under_one_name_or_both() {
        let start = prepared(Forgetful::new());
        let (from, to) = (Path::new("/a/x"), Path::new("/b/x"));
        let work = |disk: std::sync::Arc<dyn FileSystem>| move_file(&*disk, from, to).is_ok();
        let faults = attack(&start, work, |disk, done, what| {
            let names = [from, to].map(|name| disk.read(name).ok());
            assert!(names.iter().any(Option::is_some), "{what}");
            let whole = |bytes: &Vec<u8>| bytes == b"picture";
            assert!(names.iter().flatten().all(whole), "{what}");
            assert!(!done || names[1].is_some(), "{what}");
        });
        assert!(faults > 20, "{faults}");
    }

    #[test]
    fn never_over_another_file() {
        for disk in [Forgetful::new(), Forgetful::without_links()] {
            let disk = prepared(disk);
            let (from, to) = (Path::new("/a/x"), Path::new("/b/x"));
            AtomicFile::write_on(&disk, to, b"another").unwrap();
            let error = move_file(&disk, from, to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert_eq!(disk.read(to).unwrap(), b"another");
            let free = Path::new("/b/y");
            move_file(&disk, from, free).unwrap();
            assert_eq!(disk.read(free).unwrap(), b"picture");
            assert_eq!(disk.kind(from).unwrap(), Kind::Nothing);
        }
    }
}
