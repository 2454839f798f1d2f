//! The real disk.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use memmap2::Mmap;

use crate::{Bytes, FileSystem, Kind, WriteFile};

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl WriteFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl FileSystem for Disk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = File::options().write(true).create_new(true).open(path)?;
        let _ = file.try_lock(); // a file system without locks is no reason to refuse
        Ok(Box::new(file))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = File::options().append(true).create(true).open(path)?;
        Ok(Box::new(file))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        File::options().write(true).open(path)?.set_len(length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match File::open(folder)?.sync_all() {
            // Some network file systems know no such thing.
            Err(e) if unable(e.kind()) => Ok(()),
            other => other,
        }
    }

    #[cfg(not(unix))]
    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(()) // a folder cannot be opened as a file is
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "is not a regular file",
            ));
        }
        if about.len() == 0 {
            return Ok(Bytes::from(Vec::new())); // an empty map is an error on some systems
        }
        // SAFETY: the map is only read. Another program that shortens or rewrites the file meanwhile could end this one or
        // change what is read, as with any mapped file; files of this program are written aside and renamed, never changed
        // in place.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Bytes::from(map))
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        match fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Kind::Nothing),
            Err(e) => Err(e),
            Ok(about) if about.is_file() => Ok(Kind::File),
            Ok(about) if about.is_dir() => Ok(Kind::Folder),
            Ok(_) => Ok(Kind::Other),
        }
    }

    fn is_held(&self, path: &Path) -> Option<bool> {
        match File::open(path).ok()?.try_lock() {
            Ok(()) => Some(false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        }
    }

    fn age(&self, path: &Path) -> io::Result<Duration> {
        let written = fs::symlink_metadata(path)?.modified()?;
        Ok(written.elapsed().unwrap_or_default())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect()
    }
}

#[cfg(unix)]
fn unable(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}
