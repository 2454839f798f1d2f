//! A file that nobody but its owner may read, such as a key.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use crate::{Disk, FileSystem, folder_of, leftovers, move_file, read_at_most};

const MOST_BYTES: u64 = 1 << 16;

/// The bytes of the file at `path`. Where there is none, `make` gives them, and only the owner may
/// read the file (mode 0600). Of several processes that make it, all get the bytes of the first.
pub fn private_file(path: &Path, make: &dyn Fn() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    match read_at_most(path, MOST_BYTES) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        other => return other,
    }
    Disk.create_folders(folder_of(path))?;
    leftovers::remove(path, &Disk);
    let aside = leftovers::aside(path);
    let written = write_private(&aside, &make()?).and_then(|()| move_file(&Disk, &aside, path));
    match written {
        Ok(()) => {}
        Err(error) => {
            let _ = fs::remove_file(&aside); // the first error is the one to tell
            if error.kind() != ErrorKind::AlreadyExists {
                return Err(error);
            }
        }
    }
    read_at_most(path, MOST_BYTES)
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_readable_by_its_owner_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("new/key");
        let threads: Vec<u8> = (1..9).collect();
        let read: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let make = |n: u8| private_file(&path, &move || Ok(vec![n; 32])).unwrap();
            let made = threads.iter().map(|n| scope.spawn(move || make(*n)));
            let made: Vec<_> = made.collect();
            made.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(read.iter().all(|bytes| bytes == &read[0] && bytes.len() == 32));
        assert_eq!(fs::read_dir(place.path().join("new")).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
