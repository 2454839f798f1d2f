//! Opens a file by a path in which nothing may be a link. Where a part of it became one since it
//! was looked at, this fails.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens an absolute path to be read. A pipe is not waited for.
#[cfg(unix)]
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use std::path::Component;
    // A folder on the way need not be readable.
    #[cfg(target_os = "linux")]
    const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
    #[cfg(not(target_os = "linux"))]
    const FOLDER: OFlags = OFlags::DIRECTORY;
    const FILE: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);
    let always = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut at = openat(CWD, "/", FOLDER | always, Mode::empty())?;
    let mut parts = path.components().peekable();
    if parts.next() != Some(Component::RootDir) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = if parts.peek().is_some() { FOLDER } else { FILE };
        at = openat(&at, name, flags | always, Mode::empty())?;
    }
    Ok(at.into())
}

#[cfg(not(unix))]
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_part_of_the_path_may_be_a_link() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("folder")).unwrap();
        std::fs::write(root.join("folder/file"), "x").unwrap();
        symlink("folder", root.join("link")).unwrap();
        symlink("file", root.join("folder/link")).unwrap();
        assert!(open_file(&root.join("folder/file")).is_ok());
        for refused in ["link/file", "folder/link", "folder/../folder/file", "gone"] {
            assert!(open_file(&root.join(refused)).is_err(), "{refused}");
        }
        assert!(open_file(Path::new("folder/file")).is_err());
    }
}
