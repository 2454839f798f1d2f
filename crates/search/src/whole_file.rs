//! Files that are whole or not there: written beside their place, synced, renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file being written beside its place. It takes its place by [`finish`](WholeFile::finish); dropped before that, nothing
/// is left of it, and what was in its place still is.
#[derive(Debug)]
pub struct WholeFile {
    place: PathBuf,
    beside: PathBuf,
    file: Option<BufWriter<File>>,
}

impl WholeFile {
    /// Begins a file that will be at `place`.
    pub fn create(place: &Path) -> io::Result<WholeFile> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let beside = place.with_file_name(format!(".{name}.partial"));
        let file = File::create(&beside)?;
        Ok(WholeFile {
            place: place.into(),
            beside,
            file: Some(BufWriter::with_capacity(1 << 18, file)),
        })
    }

    /// Writes a whole file at once.
    pub fn write(place: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = WholeFile::create(place)?;
        file.write_all(bytes)?;
        file.finish()
    }

    /// Syncs it and puts it in its place.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            let file = file.into_inner().map_err(|e| e.into_error());
            let moved = file
                .and_then(|file| file.sync_all())
                .and_then(|()| fs::rename(&self.beside, &self.place));
            if moved.is_err() {
                let _ = fs::remove_file(&self.beside); // the first error is the one to tell
            }
            moved?;
        }
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(io::Error::other("the file is finished")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.flush())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.beside); // nobody is there to be told
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a");
        WholeFile::write(&place, b"one").unwrap();
        let mut second = WholeFile::create(&place).unwrap();
        second.write_all(b"two").unwrap();
        drop(second);
        assert_eq!(fs::read(&place).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
