//! A disk in memory: what is written again is read back without waiting for a real one to sync.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anchorhood_files::{FileSystem, Kind, WriteFile};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Files by path; copies share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<Files>>);

impl MemoryDisk {
    /// A disk with one file.
    pub fn with(path: &Path, bytes: &[u8]) -> Self {
        let disk = MemoryDisk::default();
        disk.files().insert(path.into(), bytes.into());
        disk
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A file being written; its bytes are on the disk once they are flushed.
struct Open {
    disk: MemoryDisk,
    path: PathBuf,
    bytes: Cursor<Vec<u8>>,
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = self.bytes.get_ref().clone();
        self.disk.files().insert(self.path.clone(), bytes);
        Ok(())
    }
}

impl Seek for Open {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

impl WriteFile for Open {
    fn sync(&mut self) -> io::Result<()> {
        self.flush()
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl FileSystem for MemoryDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(Open {
            disk: self.clone(),
            path: path.into(),
            bytes: Cursor::default(),
        }))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let bytes = self.read(path).unwrap_or_default();
        let mut bytes = Cursor::new(bytes);
        bytes.seek(SeekFrom::End(0))?;
        Ok(Box::new(Open {
            disk: self.clone(),
            path: path.into(),
            bytes,
        }))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let mut files = self.files();
        let bytes = files.get_mut(path).ok_or_else(missing)?;
        bytes.truncate(length as usize);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files();
        let bytes = files.remove(from).ok_or_else(missing)?;
        files.insert(to.into(), bytes);
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files().remove(path).map(drop).ok_or_else(missing)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files().get(path).cloned().ok_or_else(missing)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        Ok(match self.files().contains_key(path) {
            true => Kind::File,
            false => Kind::Nothing,
        })
    }

    fn is_held(&self, _: &Path) -> Option<bool> {
        None
    }

    fn age(&self, _: &Path) -> io::Result<Duration> {
        Ok(Duration::ZERO)
    }

    fn list(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.files().keys().cloned().collect())
    }
}
