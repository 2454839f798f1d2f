//! Opening a system's library for good, its symbols global: plugins of MPI and of NVIDIA's
//! libraries look for them there.

use std::path::Path;

use libloading::{Error, Library};

/// Opens a library with its symbols global. Whoever keeps functions of it must not let it be
/// closed.
pub fn open_global(file: &Path) -> Result<Library, Error> {
    // SAFETY: MPI's and NVIDIA's libraries, which this is for, run nothing at opening but their own
    // set-up. A file of another kind that is named so is the user's own choice.
    #[cfg(unix)]
    let opened = unsafe {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        Library::open(Some(file), RTLD_NOW | RTLD_GLOBAL).map(Into::into)
    };
    // SAFETY: as above; this system has one space of symbols for each library.
    #[cfg(not(unix))]
    let opened = unsafe { Library::new(file) };
    opened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_not_opened() {
        assert!(open_global(Path::new("libno-such-thing.so.1")).is_err());
    }
}
