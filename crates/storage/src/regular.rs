//! Opening a file that somebody named: a regular one, and without waiting. A pipe waits for
//! somebody who writes, a device may have no end, and either may take a file's place between a look
//! at it and its opening.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Opens a regular file for reading, links followed; anything else is [`ErrorKind::InvalidInput`].
pub fn open_regular(path: &Path) -> Result<File> {
    // Whoever waits to write to a pipe is not to be woken for nothing.
    check(path.metadata()?.is_file())?;
    let file = open_without_waiting(path)?;
    check(file.metadata()?.is_file())?;
    Ok(file)
}

/// Opens whatever there is for reading, links followed, and waits for nobody.
pub(crate) fn open_without_waiting(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    set_flags(&mut options, false);
    options.open(path)
}

/// Opens a regular file for writing, as `options` say. A link is [`ErrorKind::InvalidInput`] as
/// anything else that is no regular file: it may lead to a file that is not ours to write.
pub(crate) fn open_regular_to_write(path: &Path, mut options: OpenOptions) -> Result<File> {
    check_if_there(path)?;
    set_flags(&mut options, true);
    // Something else may have taken the place meanwhile, which no flag lets through.
    let file = options.open(path).or_else(|error| check_if_there(path).and(Err(error)))?;
    check(file.metadata()?.is_file())?;
    Ok(file)
}

fn check_if_there(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(about) if about.is_symlink() => Err(Error::new(
            ErrorKind::InvalidInput,
            "is a link, through which nothing is written; remove it, or choose another name",
        )),
        Ok(about) => check(about.is_file()),
        Err(_) => Ok(()), // opening it says why
    }
}

#[cfg(unix)]
fn set_flags(options: &mut OpenOptions, no_links: bool) {
    use std::os::unix::fs::OpenOptionsExt;
    // A pipe is opened without waiting; regular files are read and written as ever.
    let links = if no_links { libc::O_NOFOLLOW } else { 0 };
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | links);
}

#[cfg(not(unix))]
fn set_flags(_: &mut OpenOptions, _: bool) {}

fn check(is_file: bool) -> Result<()> {
    if is_file { Ok(()) } else { Err(Error::new(ErrorKind::InvalidInput, "is not a regular file")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn files_and_links_to_them_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "four").unwrap();
        let read = |path: &Path| {
            let mut text = String::new();
            open_regular(path)?.read_to_string(&mut text)?;
            Ok::<String, Error>(text)
        };
        assert_eq!(read(&path).unwrap(), "four");
        let error = read(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = read(&folder.path().join("b")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            assert_eq!(read(&link).unwrap(), "four");
        }
    }

    #[cfg(unix)]
    fn make_pipe(path: &Path) {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a C string that lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_links_or_to_pipes() {
        use crate::{AppendFile, Disk, FileSystem};
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("key"), "secret").unwrap();
        symlink("key", path("link")).unwrap();
        symlink("not yet", path("dangling")).unwrap();
        make_pipe(&path("pipe"));
        for name in ["link", "dangling", "pipe"] {
            let error = AppendFile::open(Disk::shared(), &path(name)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
            let error = Disk.truncate(&path(name), 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(std::fs::read(path("key")).unwrap(), b"secret");
        assert!(!path("not yet").exists());
    }

    /// What somebody left under the name of a file that is not whole yet is not waited for.
    #[cfg(unix)]
    #[test]
    fn a_pipe_among_the_leftovers_stops_no_file() {
        let folder = tempfile::tempdir().unwrap();
        make_pipe(&folder.path().join(".a.1-0.partial"));
        crate::AtomicFile::write(&folder.path().join("a"), b"four").unwrap();
        assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), b"four");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        make_pipe(&pipe);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link, Path::new("/dev/zero")] {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", path.display());
        }
    }
}
