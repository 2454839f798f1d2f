//! The real disk.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use memmap2::Mmap;

use crate::regular::{open_regular_to_write, open_without_waiting};
use crate::{Bytes, FileId, FileStamp, FileSystem, Hold, Kind, WriteFile, open_regular};

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Disk {
    /// For those who keep the disk that they were given.
    pub fn shared() -> Arc<dyn FileSystem> {
        Arc::new(Disk)
    }
}

impl WriteFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }

    fn hold(&mut self) -> bool {
        !matches!(self.try_lock(), Err(TryLockError::WouldBlock))
    }
}

impl Hold for File {}

/// Where a folder itself cannot be held, as on Windows and some network file systems, a file in it
/// is.
const LOCK: &str = ".lock";

#[cfg(unix)]
fn held_folder(folder: &Path) -> io::Result<Result<File, TryLockError>> {
    let opened = open_without_waiting(folder)?;
    let locked = opened.try_lock();
    Ok(locked.map(|()| opened))
}

#[cfg(not(unix))]
fn held_folder(_: &Path) -> io::Result<Result<File, TryLockError>> {
    let why = "a folder cannot be opened as a file is";
    Ok(Err(TryLockError::Error(io::Error::other(why))))
}

impl FileSystem for Disk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let mut file = File::options().write(true).create_new(true).open(path)?;
        file.hold();
        Ok(Box::new(file))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(open_to_append(path)?))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let mut options = File::options();
        options.write(true);
        open_regular_to_write(path, options)?.set_len(length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        rename_new(from, to)
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match open_without_waiting(folder)?.sync_all() {
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

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn hold_folder(&self, folder: &Path) -> io::Result<Option<Box<dyn Hold>>> {
        match held_folder(folder)? {
            Ok(held) => Ok(Some(Box::new(held))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(_)) => {
                let mut file = open_to_append(&folder.join(LOCK))?;
                Ok(file.hold().then(|| Box::new(file) as Box<dyn Hold>))
            }
        }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = vec![];
        open_regular(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        let file = open_regular(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::from(Vec::new())); // an empty map is an error on some systems
        }
        // SAFETY: the map is only read. Another program that shortens or rewrites the file
        // meanwhile could end this one or change what is read, as with any mapped file; files of
        // this program are written aside and renamed, never changed in place.
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

    fn read_link(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        match fs::symlink_metadata(path) {
            Ok(about) if about.is_symlink() => fs::read_link(path).map(Some),
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        let about = fs::metadata(path)?;
        Ok(FileStamp {
            id: file_id(path, &about)?,
            length: about.len(),
            modified: about.modified().ok(),
        })
    }

    fn is_held(&self, path: &Path) -> Option<bool> {
        match open_without_waiting(path).ok()?.try_lock() {
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

fn open_to_append(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true);
    open_regular_to_write(path, options)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // What kernels and file systems that do not know the flag answer.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        other => Ok(other?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_new(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
fn file_id(_: &Path, about: &fs::Metadata) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    Ok(FileId { device: about.dev(), inode: about.ino() })
}

#[cfg(not(unix))]
fn file_id(path: &Path, _: &fs::Metadata) -> io::Result<FileId> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    path.canonicalize()?.hash(&mut hasher);
    Ok(FileId { device: 0, inode: hasher.finish() })
}

#[cfg(unix)]
fn unable(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}
