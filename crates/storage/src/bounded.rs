//! Reading a file that somebody named: a regular one, and never more of it than is sensible. A
//! device may have no end, and a pipe waits for somebody who writes.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use crate::{Disk, FileSystem, Kind};

/// All bytes of a regular file that has at most `most`.
pub fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_at_most_on(&Disk, path, most)
}

/// The same on any disk.
pub fn read_at_most_on(disk: &dyn FileSystem, path: &Path, most: u64) -> Result<Vec<u8>> {
    // Asked before it is opened: opening a pipe waits too.
    match disk.kind(path)? {
        Kind::Nothing => return Err(ErrorKind::NotFound.into()),
        Kind::File => {}
        Kind::Folder | Kind::Other => {
            return Err(Error::new(ErrorKind::InvalidInput, "is not a regular file"));
        }
    }
    if disk.length(path)? > most { Err(too_long(most)) } else { disk.read(path) }
}

/// All bytes of what has no length to ask for, such as a file of an archive, where they are at most
/// `most`.
pub fn take_at_most(from: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![];
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(bytes) }
}

fn too_long(most: u64) -> Error {
    let why = format!("has more than {most} bytes, which is too much for what it should be");
    Error::new(ErrorKind::FileTooLarge, why)
}

/// The same for a text.
pub fn read_text_at_most(path: &Path, most: u64) -> Result<String> {
    read_text_at_most_on(&Disk, path, most)
}

/// The same on any disk.
pub fn read_text_at_most_on(disk: &dyn FileSystem, path: &Path, most: u64) -> Result<String> {
    let text = String::from_utf8(read_at_most_on(disk, path, most)?);
    text.map_err(|_| Error::new(ErrorKind::InvalidData, "is not a text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_files_up_to_a_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text_at_most(&path, 4).unwrap(), "four");
        let error = read_at_most(&path, 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        let error = read_at_most(folder.path(), 10).unwrap_err();
        assert!(error.to_string().contains("not a regular file"));
        let error = read_at_most(&folder.path().join("b"), 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        std::fs::write(&path, b"\xff").unwrap();
        assert!(read_text_at_most(&path, 4).is_err());
    }

    #[test]
    fn streams_up_to_a_length() {
        assert_eq!(take_at_most(&b"four"[..], 4).unwrap(), b"four");
        for most in [3, 1 << 20] {
            let error = take_at_most(std::io::repeat(0), most).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_refused_at_once() {
        let error = read_at_most(Path::new("/dev/zero"), u64::MAX - 1).unwrap_err();
        assert!(error.to_string().contains("not a regular file"));
    }
}
