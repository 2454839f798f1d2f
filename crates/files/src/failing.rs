//! A disk that fails: every operation of a program can be made the one that goes wrong.

use std::fmt;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Bytes, Disk, FileStamp, FileSystem, Hold, Kind, WriteFile};

/// What an operation does. Asking what is there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A file or a folder is made, or a file opened to be added to.
    Make,
    /// Bytes are written.
    Write,
    /// A file is cut, sought in, renamed or removed.
    Change,
    /// A file or a folder is synced.
    Sync,
    /// A file is read or mapped.
    Read,
}

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and none after it: a flaky network.
    Once,
    /// It and all later ones fail: what is then on disk is what a kill at this moment leaves.
    Killed,
    /// Half of a write is done, and nothing after it.
    Torn,
    /// There is no room from here on: half of each write is done, nothing is made; what needs no
    /// room goes on.
    Full,
    /// It cannot be read this time.
    Unreadable,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 5] =
        [Fault::Once, Fault::Killed, Fault::Torn, Fault::Full, Fault::Unreadable];

    /// Whether an operation can go wrong in this way, other than in one of those before.
    pub fn concerns(self, operation: Operation) -> bool {
        match self {
            Fault::Once => operation != Operation::Read,
            Fault::Killed => true,
            Fault::Torn => operation == Operation::Write,
            Fault::Full => needs_room(operation),
            Fault::Unreadable => operation == Operation::Read,
        }
    }

    fn hits(self, n: usize, now: usize, operation: Operation) -> bool {
        match self {
            Fault::Once | Fault::Unreadable => now == n,
            Fault::Killed | Fault::Torn => now >= n,
            Fault::Full => now >= n && needs_room(operation),
        }
    }

    /// How much of so many bytes a write does that fails.
    fn done(self, n: usize, now: usize, bytes: usize) -> usize {
        match self {
            Fault::Once | Fault::Full => bytes / 2,
            Fault::Torn if now == n => bytes / 2,
            Fault::Killed | Fault::Torn | Fault::Unreadable => 0,
        }
    }
}

fn needs_room(operation: Operation) -> bool {
    matches!(operation, Operation::Make | Operation::Write)
}

/// Another disk, on which an operation goes wrong.
#[derive(Clone)]
pub struct Failing {
    disk: Arc<dyn FileSystem>,
    fault: Option<(usize, Fault)>,
    log: Arc<Mutex<Vec<Operation>>>,
}

impl Failing {
    /// Operation `n` of a disk, counted from 0, goes wrong.
    pub fn on(disk: Arc<dyn FileSystem>, n: usize, fault: Fault) -> Failing {
        let fault = Some((n, fault));
        let log = Arc::default();
        Failing { disk, fault, log }
    }

    /// Nothing goes wrong, and operations are counted.
    pub fn never(disk: Arc<dyn FileSystem>) -> Failing {
        let (fault, log) = (None, Arc::default());
        Failing { disk, fault, log }
    }

    /// Operation `n` of the real disk fails, and none after it.
    pub fn once(n: usize) -> Failing {
        Failing::on(Disk::shared(), n, Fault::Once)
    }

    /// Operation `n` of the real disk and every later one fail.
    pub fn from(n: usize) -> Failing {
        Failing::on(Disk::shared(), n, Fault::Killed)
    }

    /// What was asked for, in order.
    pub fn log(&self) -> Vec<Operation> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many operations were asked for.
    pub fn operations(&self) -> usize {
        self.log().len()
    }

    fn step(&self, operation: Operation) -> io::Result<()> {
        self.write(operation, 0).map_err(|(_, error)| error)
    }

    /// Counts an operation; one that fails says how many of its bytes it does all the same.
    fn write(&self, operation: Operation, bytes: usize) -> Result<(), (usize, io::Error)> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let now = log.len();
        log.push(operation);
        let Some((n, fault)) = self.fault.filter(|(n, f)| f.hits(*n, now, operation)) else {
            return Ok(());
        };
        let why = format!("operation {now} was made to fail");
        let error = match fault {
            Fault::Full => io::Error::new(io::ErrorKind::StorageFull, why),
            Fault::Once | Fault::Killed | Fault::Torn | Fault::Unreadable => io::Error::other(why),
        };
        Err((fault.done(n, now, bytes), error))
    }

    fn file(&self, inner: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        let disk = self.clone();
        Box::new(FailingFile { disk, inner })
    }
}

impl fmt::Debug for Failing {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.fault, self.disk)
    }
}

/// A file of it.
#[derive(Debug)]
struct FailingFile {
    disk: Failing,
    inner: Box<dyn WriteFile>,
}

impl Write for FailingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err((done, error)) = self.disk.write(Operation::Write, bytes.len()) {
            self.inner.write_all(&bytes[..done])?;
            return Err(error);
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for FailingFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.disk.step(Operation::Change)?;
        self.inner.seek(to)
    }
}

impl WriteFile for FailingFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.step(Operation::Sync)?;
        self.inner.sync()
    }

    fn hold(&mut self) -> bool {
        self.inner.hold()
    }
}

impl FileSystem for Failing {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.step(Operation::Make)?;
        Ok(self.file(self.disk.create_new(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.step(Operation::Make)?;
        Ok(self.file(self.disk.append(path)?))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        self.step(Operation::Change)?;
        self.disk.truncate(path, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(Operation::Change)?;
        self.disk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(Operation::Change)?;
        self.disk.rename_new(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.step(Operation::Sync)?;
        self.disk.sync_folder(folder)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(Operation::Change)?;
        self.disk.remove(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step(Operation::Make)?;
        self.disk.create_folder(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.step(Operation::Change)?;
        self.disk.remove_folder(path)
    }

    fn hold_folder(&self, folder: &Path) -> io::Result<Option<Box<dyn Hold>>> {
        self.disk.hold_folder(folder)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.step(Operation::Read)?;
        self.disk.read(path)
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        self.step(Operation::Read)?;
        self.disk.map(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        self.disk.kind(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        self.disk.read_link(path)
    }

    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        self.disk.stamp(path)
    }

    fn is_held(&self, path: &Path) -> Option<bool> {
        self.disk.is_held(path)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.disk.length(path)
    }

    fn age(&self, path: &Path) -> io::Result<Duration> {
        self.disk.age(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(folder)
    }
}
