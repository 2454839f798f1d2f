//! Files that are whole or not there: written beside their place, synced, renamed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces `path` by `bytes`; after a failure the old file is still there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(format!(".{name}.partial"));
    let mut written = File::create(&aside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written = written.and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside); // it may not be there; the first error is the one to tell
    }
    written
}
