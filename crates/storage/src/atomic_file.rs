//! Files that are whole or not there: written aside, synced, renamed, and the folder synced.
//!
//! Kept by hand: crates for this (`tempfile`, `atomicwrites`) write to the real disk alone; here
//! every step can be made to fail in tests.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Disk, FileSystem, Kind, WriteFile, folder_of, leftovers};

/// Names tried before somebody is thought to be in the way on purpose.
const TRIES: usize = 100;

/// A file being written aside. It takes its place by [`finish`](AtomicFile::finish); dropped before
/// that, or failed, nothing is left of it, and what was in its place still is. Two writers of one
/// name do not meet: the last to finish wins.
pub struct AtomicFile<'a> {
    disk: &'a dyn FileSystem,
    place: PathBuf,
    aside: PathBuf,
    file: Option<BufWriter<Box<dyn WriteFile>>>,
}

impl AtomicFile<'static> {
    /// Begins a file that will be at `place` on the real disk.
    pub fn create(place: &Path) -> io::Result<Self> {
        AtomicFile::create_on(&Disk, place)
    }

    /// Writes a whole file at once.
    pub fn write(place: &Path, bytes: &[u8]) -> io::Result<()> {
        AtomicFile::write_on(&Disk, place, bytes)
    }
}

impl<'a> AtomicFile<'a> {
    /// Begins a file that will be at `place`. What a killed process left of it is removed.
    pub fn create_on(disk: &'a dyn FileSystem, place: &Path) -> io::Result<Self> {
        check_place(disk, place)?;
        leftovers::remove(place, disk);
        let (aside, file) = create_aside(disk, place)?;
        Ok(AtomicFile {
            disk,
            place: place.into(),
            aside,
            file: Some(BufWriter::with_capacity(1 << 18, file)),
        })
    }

    /// Writes a whole file at once.
    pub fn write_on(disk: &'a dyn FileSystem, place: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = AtomicFile::create_on(disk, place)?;
        file.write_all(bytes)?;
        file.finish()
    }

    /// Syncs it and puts it in its place. After an error what was there before still is, unless the
    /// very last step, the folder's sync, is what failed: then the new file is there, whole, and a
    /// power cut may bring the old one back.
    pub fn finish(mut self) -> io::Result<()> {
        let file = self.open()?;
        file.flush()?;
        file.get_mut().sync()?;
        check_place(self.disk, &self.place)?;
        self.disk.rename(&self.aside, &self.place)?;
        self.file = None; // nothing is aside any more
        self.disk.sync_folder(folder_of(&self.place))
    }

    fn open(&mut self) -> io::Result<&mut BufWriter<Box<dyn WriteFile>>> {
        let finished = || io::Error::other("the file is finished");
        self.file.as_mut().ok_or_else(finished)
    }
}

/// A rename would put a file in the place of a device or a pipe, for every program that uses it.
fn check_place(disk: &dyn FileSystem, place: &Path) -> io::Result<()> {
    let why = match disk.kind(place)? {
        Kind::Nothing | Kind::File if place.file_name().is_some() => return Ok(()),
        Kind::Nothing | Kind::File => "is no file's name",
        Kind::Folder => "is a folder",
        Kind::Other => "is no file that could be replaced",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

fn create_aside(disk: &dyn FileSystem, place: &Path) -> io::Result<(PathBuf, Box<dyn WriteFile>)> {
    let mut tries = 1;
    loop {
        let aside = leftovers::aside(place);
        match disk.create_new(&aside) {
            // Left by a killed process that had this one's number.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => tries += 1,
            other => return other.map(|file| (aside, file)),
        }
    }
}

impl Write for AtomicFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open()?.flush()
    }
}

impl Seek for AtomicFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.open()?.seek(to)
    }
}

impl Drop for AtomicFile<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            drop(file.into_parts()); // closed, without writing what is left in the buffer
            let _ = self.disk.remove(&self.aside); // the first error is the one to tell
        }
    }
}
