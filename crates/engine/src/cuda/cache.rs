//! What is found out once and kept on disk: compiled kernels and measured choices.
//!
//! A broken entry reads as none; a cache that cannot be written costs time and nothing else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anchorhood_storage::{AtomicFile, Disk, FileSystem, cache_folder, folder_of};

/// An entry kept before, unless it is broken: the driver trusts what it is given.
pub(super) fn read(name: &str) -> Option<Vec<u8>> {
    read_file(&cache_folder()?.join(name))
}

/// Whether there is an entry of this name, broken or not.
pub(super) fn has(name: &str) -> bool {
    cache_folder().is_some_and(|f| f.join(name).exists())
}

/// Keeps an entry; half-written files never bear the name.
pub(super) fn write(name: &str, content: &[u8]) {
    if let Some(folder) = cache_folder() {
        write_file(&folder.join(name), content);
    }
}

fn checksum(content: &[u8]) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish().to_le_bytes()
}

pub(super) fn read_file(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Disk.read(file).ok()?;
    let content = bytes.split_off(8.min(bytes.len()));
    (bytes == checksum(&content)).then_some(content)
}

fn write_file(file: &Path, content: &[u8]) {
    let bytes = [&checksum(content), content].concat();
    let folder = Disk.create_folders(folder_of(file));
    let _ = folder.and_then(|()| AtomicFile::write(file, &bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_entry_is_not_read() {
        let folder = std::env::temp_dir().join(format!("anchorhood-cache-{}", std::process::id()));
        let file = folder.join("kernel.cubin");
        write_file(&file, b"some machine code");
        assert_eq!(read_file(&file).unwrap(), b"some machine code");
        let mut bytes = std::fs::read(&file).unwrap();
        bytes.pop();
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(read_file(&file), None);
        std::fs::write(&file, b"abc").unwrap();
        assert_eq!(read_file(&file), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
