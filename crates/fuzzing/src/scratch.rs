//! A file of each thread, for readers that want a path.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().expect("a folder for temporary files");
}

/// Calls `read` with the path of a file that has these bytes. It is a new one each time: some
/// systems wait for the disk when one is written over.
pub fn with_file<T>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    FOLDER.with(|folder| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("the temporary folder takes a file");
        let result = read(&path);
        let _ = fs::remove_file(&path);
        result
    })
}
