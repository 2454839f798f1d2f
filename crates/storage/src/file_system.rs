//! What is asked of a disk. Small, so that a test can put another in its place: one that fails, or
//! one that forgets what was not synced.

use std::fmt;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::Bytes;

/// A file open for writing.
pub trait WriteFile: Write + Seek + Send + fmt::Debug {
    /// Comes back when everything written would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
    /// Keeps everybody else from holding the file until this one is closed; false where somebody
    /// holds it already. A file system without locks keeps nobody out, and is no reason to refuse.
    fn hold(&mut self) -> bool;
}

/// Something that is held until this is dropped.
pub trait Hold: fmt::Debug + Send + Sync {}

/// What lies at a path; links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing, or a link to nothing.
    Nothing,
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A device, a pipe, a socket: nothing that could be replaced by a file.
    Other,
}

/// Identifies a file or folder, whatever it is named: equal for hard links, and for what a symbolic
/// link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The file system that it lies on.
    pub device: u64,
    /// Its number there. Where the system tells none, a hash of the resolved path.
    pub inode: u64,
}

/// A file's identity and state: equal at two moments where the file was neither replaced nor
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Which file.
    pub id: FileId,
    /// Bytes.
    pub length: u64,
    /// When it was last written to, where the system knows.
    pub modified: Option<SystemTime>,
}

/// The operations by which files come, change and go. What a rename or a removal did survives a
/// power cut only after [`sync_folder`](FileSystem::sync_folder), what was written only after
/// [`WriteFile::sync`].
pub trait FileSystem: fmt::Debug + Send + Sync {
    /// A new, empty file, held by its maker until it is closed; [`io::ErrorKind::AlreadyExists`]
    /// where there is one of the name.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;
    /// A file to add to, made where there is none; every write goes to its end. A link, and what is
    /// no regular file, is [`io::ErrorKind::InvalidInput`].
    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;
    /// Cuts a file to its first `length` bytes; a link as in [`append`](FileSystem::append).
    fn truncate(&self, path: &Path, length: u64) -> io::Result<()>;
    /// Gives a file or a folder another name in one step; a file that had that name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file another name in one step; [`io::ErrorKind::AlreadyExists`] where there is
    /// something of that name, also a link. Some disks cannot: [`io::ErrorKind::Unsupported`].
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes renames and removals within a folder survive a power cut, where the system can.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// A new, empty folder in one that is there; [`io::ErrorKind::AlreadyExists`] where there is
    /// something of the name.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder with all that is in it.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Keeps every other process from holding a folder as long as what comes back lives; none where
    /// another holds it. The folder itself is held, so that whatever is removed from it, nobody
    /// else gets in.
    fn hold_folder(&self, folder: &Path) -> io::Result<Option<Box<dyn Hold>>>;
    /// All bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// All bytes of a file without reading them all at once, where the system can.
    fn map(&self, path: &Path) -> io::Result<Bytes> {
        self.read(path).map(Bytes::from)
    }
    /// What lies at a path.
    fn kind(&self, path: &Path) -> io::Result<Kind>;
    /// Where a symbolic link leads, as it is written in it; none where there is no link, or
    /// nothing.
    fn read_link(&self, path: &Path) -> io::Result<Option<PathBuf>>;
    /// Which file a path names, links followed, and in which state it is.
    fn stamp(&self, path: &Path) -> io::Result<FileStamp>;
    /// Whether somebody who made a file still holds it; unknown where the system has no locks.
    fn is_held(&self, path: &Path) -> Option<bool>;
    /// Bytes of a file.
    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(self.stamp(path)?.length)
    }
    /// How long ago a file or a folder was last written to.
    fn age(&self, path: &Path) -> io::Result<Duration>;
    /// What lies in a folder, in any order.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Whether there is anything at a path.
    fn exists(&self, path: &Path) -> bool {
        self.kind(path).is_ok_and(|kind| kind != Kind::Nothing)
    }

    /// Makes a folder and those that it is to lie in, where there are none; all of them survive a
    /// power cut.
    fn create_folders(&self, path: &Path) -> io::Result<()> {
        if self.kind(path)? == Kind::Folder {
            return Ok(());
        }
        let within = folder_of(path);
        if within != path {
            self.create_folders(within)?;
        }
        match self.create_folder(path) {
            // Another process was quicker.
            Err(_) if self.kind(path)? == Kind::Folder => Ok(()),
            other => other,
        }?;
        self.sync_folder(within)
    }
}

/// The folder that a path lies in; the current one for a bare name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
