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
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe that was put there since is opened without waiting; reading a regular file is not
        // changed by it.
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path)?;
    check(file.metadata()?.is_file())?;
    Ok(file)
}

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
    #[test]
    fn pipes_and_devices_are_refused_at_once() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a C string that lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link, Path::new("/dev/zero")] {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", path.display());
        }
    }
}
