//! Files that grow by whole lines.

use std::io;
use std::path::Path;

use crate::{FileSystem, folder_of};

/// Adds a line to a file, made where there is none, by one write, and syncs it: after a power cut all lines before it are
/// there, and of it either all or a piece without its line feed. The line itself must have none.
pub fn append_line(disk: &dyn FileSystem, path: &Path, line: &str) -> io::Result<()> {
    if line.contains('\n') {
        let why = "a line cannot have a line feed within it";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let new = !disk.exists(path);
    let mut file = disk.append(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync()?;
    match new {
        true => disk.sync_folder(folder_of(path)),
        false => Ok(()),
    }
}
