//! Files that grow at their end and are never rewritten: logs and journals.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Bytes, FileSystem, WriteFile, folder_of};

/// A file that grows. What is added comes by one write each, and survives a power cut once it is
/// [synced](AppendFile::sync); before that, it, a piece of it or nothing does.
#[derive(Debug)]
pub struct AppendFile {
    disk: Arc<dyn FileSystem>,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    length: u64,
}

impl AppendFile {
    /// Opens a file, or makes an empty one, whose name survives a power cut.
    pub fn open(disk: Arc<dyn FileSystem>, path: &Path) -> io::Result<AppendFile> {
        let there = disk.exists(path);
        let file = disk.append(path)?;
        if !there {
            disk.sync_folder(folder_of(path))?;
        }
        Ok(AppendFile { length: disk.length(path)?, path: path.into(), disk, file })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// All of it.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        self.disk.read(&self.path)
    }

    /// The same without reading it all at once, where the system can.
    pub fn map(&self) -> io::Result<Bytes> {
        self.disk.map(&self.path)
    }

    /// Adds bytes by one write. After an error none of them is there, unless the disk does not let
    /// itself be cut either.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            // The first error is the one to tell.
            Err(_) => _ = self.disk.truncate(&self.path, self.length),
        }
        written
    }

    /// Cuts it to its first bytes.
    pub fn truncate(&mut self, length: u64) -> io::Result<()> {
        if length != self.length {
            self.disk.truncate(&self.path, length)?;
            self.length = length;
        }
        Ok(())
    }

    /// Comes back when everything added would survive a power cut.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    /// Keeps others from holding it; false where somebody does already. Whoever held it before may
    /// have added to it.
    pub fn hold(&mut self) -> io::Result<bool> {
        let held = self.file.hold();
        self.length = self.disk.length(&self.path)?;
        Ok(held)
    }

    /// Removes it.
    pub fn remove(self) -> io::Result<()> {
        let AppendFile { disk, path, file, .. } = self;
        drop(file); // some systems remove no open file
        disk.remove(&path)?;
        disk.sync_folder(folder_of(&path))
    }
}
