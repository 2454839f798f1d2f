//! A disk that fails: every operation of a program can be made the one that goes wrong.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::{Bytes, Disk, FileSystem, Kind, WriteFile};

/// The real disk, of which operations fail from some number on. Reading counts too; asking what is there does not.
#[derive(Clone, Debug)]
pub struct Failing {
    count: Arc<AtomicUsize>,
    first: usize,
    last: usize,
}

impl Failing {
    /// Operation `n`, counted from 0, fails, and none after it: a full disk that was cleared, a flaky network.
    pub fn once(n: usize) -> Failing {
        Failing::between(n, n)
    }

    /// Operation `n` and every later one fail: what is then on disk is what a kill at this moment leaves.
    pub fn from(n: usize) -> Failing {
        Failing::between(n, usize::MAX)
    }

    fn between(first: usize, last: usize) -> Failing {
        let count = Arc::default();
        Failing { count, first, last }
    }

    /// How many operations were asked for.
    pub fn operations(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn step(&self) -> io::Result<()> {
        let now = self.count.fetch_add(1, Ordering::Relaxed);
        match (self.first..=self.last).contains(&now) {
            true => Err(io::Error::other(format!(
                "operation {now} was made to fail"
            ))),
            false => Ok(()),
        }
    }

    fn file(&self, inner: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        let disk = self.clone();
        Box::new(FailingFile { disk, inner })
    }
}

/// A file of it. A write that fails is torn: half of its bytes are there.
struct FailingFile {
    disk: Failing,
    inner: Box<dyn WriteFile>,
}

impl Write for FailingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.disk.step() {
            self.inner.write_all(&bytes[..bytes.len() / 2])?;
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
        self.disk.step()?;
        self.inner.seek(to)
    }
}

impl WriteFile for FailingFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.step()?;
        self.inner.sync()
    }
}

impl FileSystem for Failing {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.step()?;
        Ok(self.file(Disk.create_new(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.step()?;
        Ok(self.file(Disk.append(path)?))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        self.step()?;
        Disk.truncate(path, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        Disk.rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        Disk.sync_folder(folder)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.remove(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.step()?;
        Disk.read(path)
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        self.step()?;
        Disk.map(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        Disk.kind(path)
    }

    fn is_held(&self, path: &Path) -> Option<bool> {
        Disk.is_held(path)
    }

    fn age(&self, path: &Path) -> io::Result<Duration> {
        Disk.age(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Disk.list(folder)
    }
}
