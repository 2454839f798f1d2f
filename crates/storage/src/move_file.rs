//! A file to another place, never over another file, and at every moment under its old name or its
//! new one.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::{FileSystem, folder_of};

/// Moves the file `from` to `to`, whose folder is there; [`ErrorKind::AlreadyExists`] where there
/// is something of that name, [`ErrorKind::CrossesDevices`] where that lies on another disk.
/// Nothing is ever removed: a file that another program puts in the place of `from` meanwhile is
/// moved, or stays.
///
/// It is one rename that replaces nothing. On a disk without such a rename, an empty file takes the
/// new name, which no other program's file can then have, and is replaced; an interruption may
/// leave it.
pub fn move_file(disk: &dyn FileSystem, from: &Path, to: &Path) -> io::Result<()> {
    match disk.rename_new(from, to) {
        Err(e) if e.kind() == ErrorKind::Unsupported => rename_over_placeholder(disk, from, to)?,
        other => other?,
    }
    disk.sync_folder(folder_of(to))?;
    disk.sync_folder(folder_of(from))
}

fn rename_over_placeholder(disk: &dyn FileSystem, from: &Path, to: &Path) -> io::Result<()> {
    disk.stamp(from)?; // where there is nothing to move, nothing is made
    drop(disk.create_new(to)?);
    if let Err(error) = disk.rename(from, to) {
        let _ = disk.remove(to); // the first error is the one to tell
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Arc;
    #[cfg(target_os = "linux")]
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::{AtomicFile, Disk, Forgetful, Kind, attack};

    fn prepared(disk: Forgetful) -> Forgetful {
        disk.create_folders(Path::new("/a")).unwrap();
        disk.create_folders(Path::new("/b")).unwrap();
        AtomicFile::write_on(&disk, Path::new("/a/x"), b"picture").unwrap();
        disk
    }

    #[test]
    fn it_is_always_there_under_one_name() {
        for disk in [Forgetful::new(), Forgetful::without_rename_new()] {
            let start = prepared(disk);
            let (from, to) = (Path::new("/a/x"), Path::new("/b/x"));
            let work = |disk: Arc<dyn FileSystem>| move_file(&*disk, from, to).is_ok();
            let faults = attack(&start, work, |disk, done, what| {
                let names = [from, to].map(|name| disk.read(name).ok());
                let whole = |bytes: &&Vec<u8>| !bytes.is_empty();
                let there: Vec<&Vec<u8>> = names.iter().flatten().filter(whole).collect();
                assert!(!there.is_empty(), "{what}");
                assert!(there.iter().all(|bytes| *bytes == b"picture"), "{what}");
                let moved = names[1].as_ref().is_some_and(|bytes| bytes == b"picture");
                assert!(!done || moved, "{what}");
            });
            assert!(faults > 15, "{faults}");
        }
    }

    #[test]
    fn never_over_another_file() {
        for disk in [Forgetful::new(), Forgetful::without_rename_new()] {
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

    /// Another program puts new files in the source's place by exchanging names, so that it loses
    /// none itself.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_takes_the_place_of_the_source_is_never_removed() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let (from, to) = (path("x"), path("y"));
        fs::write(&from, "0").unwrap();
        let versions = 500;
        let stop = AtomicBool::new(false);
        let moved = std::thread::scope(|scope| {
            scope.spawn(|| {
                for version in 1..versions {
                    let new = path(&format!("new {version}"));
                    fs::write(&new, version.to_string()).unwrap();
                    let exchange = renameat_with(CWD, &new, CWD, &from, RenameFlags::EXCHANGE);
                    exchange
                        .or_else(|_| renameat_with(CWD, &new, CWD, &from, RenameFlags::NOREPLACE))
                        .unwrap();
                }
                stop.store(true, Ordering::Relaxed);
            });
            let mut moved = 0;
            while !stop.load(Ordering::Relaxed) {
                if move_file(&Disk, &from, &to).is_ok() {
                    moved += 1;
                    fs::rename(&to, path(&format!("moved {moved}"))).unwrap();
                }
            }
            moved
        });
        let names = fs::read_dir(place.path()).unwrap();
        let read = |entry: fs::DirEntry| fs::read_to_string(entry.path()).unwrap();
        let mut left: Vec<usize> = names.map(|e| read(e.unwrap()).parse().unwrap()).collect();
        left.sort_unstable();
        assert_eq!(left, (0..versions).collect::<Vec<_>>(), "{moved} moved");
        assert!(moved > 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_at_the_new_place_is_not_replaced() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("x"), place.path().join("y"));
        fs::write(&from, "picture").unwrap();
        std::os::unix::fs::symlink("nowhere", &to).unwrap();
        let error = move_file(&Disk, &from, &to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_link(&to).unwrap(), Path::new("nowhere"));
    }
}
