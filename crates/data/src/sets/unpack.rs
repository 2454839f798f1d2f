//! A tar into a folder: beside it first, then each entry renamed into place.
//!
//! Only files and folders below the place are made. An archive that names another place, or brings links, is refused.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use anchorhood_files::{AtomicFolder, FileSystem, Kind, folder_of};

use super::Archive;

/// Unpacks the bytes of `tar`, which is what `archive` should be, into `folder`. What it creates last says that it is whole.
pub fn unpack(
    disk: &dyn FileSystem,
    tar: impl Read,
    folder: &Path,
    archive: &Archive,
) -> io::Result<()> {
    let aside = AtomicFolder::create(disk, &folder.join(archive.file))?;
    sync(disk, &entries(disk, tar, aside.path())?)?;
    into_place(disk, aside.path(), folder, archive)
}

/// Makes all files survive a power cut: several at a time, since a disk writes many together as quickly as one.
fn sync(disk: &dyn FileSystem, files: &[PathBuf]) -> io::Result<()> {
    const AT_ONCE: usize = 16;
    let share = files.len().div_ceil(AT_ONCE).max(1);
    let sync_all = |files: &[PathBuf]| files.iter().try_for_each(|f| disk.append(f)?.sync());
    std::thread::scope(|scope| {
        let shares = files.chunks(share);
        let threads: Vec<_> = shares.map(|f| scope.spawn(move || sync_all(f))).collect();
        let joined = |t: std::thread::ScopedJoinHandle<io::Result<()>>| {
            t.join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread ended")))
        };
        threads.into_iter().try_for_each(joined)
    })?;
    let folders: BTreeSet<&Path> = files.iter().map(|f| folder_of(f)).collect();
    folders.iter().try_for_each(|f| disk.sync_folder(f))
}

/// Writes every entry; gives the files.
fn entries(disk: &dyn FileSystem, input: impl Read, aside: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![];
    let mut archive = tar::Archive::new(input);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let Some(to) = place(&entry.path()?, aside)? else {
            continue;
        };
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            disk.create_folders(&to)?;
        } else if kind.is_file() {
            disk.create_folders(folder_of(&to))?;
            if disk.kind(&to)? == Kind::File {
                disk.remove(&to)?; // an archive may bring a file twice, and the last counts
            }
            let written = io::copy(&mut entry, &mut disk.create_new(&to)?)?;
            if written != entry.size() {
                let why = format!("it ends inside {}", to.display());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
            files.push(to);
        } else if !kind.is_pax_global_extensions() {
            let name = entry.path()?.display().to_string();
            return Err(io::Error::other(format!(
                "{name} is neither a file nor a folder; not unpacked"
            )));
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Where an entry goes; nowhere for the archive's own root.
fn place(name: &Path, aside: &Path) -> io::Result<Option<PathBuf>> {
    let mut to = aside.to_owned();
    let mut any = false;
    for part in name.components() {
        match part {
            Component::Normal(part) => {
                to.push(part);
                any = true;
            }
            Component::CurDir => {}
            _ => {
                let why = format!(
                    "it names {}, which leads out of the folder; not unpacked",
                    name.display()
                );
                return Err(io::Error::other(why));
            }
        }
    }
    Ok(any.then_some(to))
}

/// Renames every entry into the folder, that which marks the end last.
fn into_place(
    disk: &dyn FileSystem,
    aside: &Path,
    folder: &Path,
    archive: &Archive,
) -> io::Result<()> {
    let mark = archive.creates.unwrap_or_default();
    if !disk.exists(&aside.join(mark)) {
        return Err(io::Error::other(format!(
            "expected {mark} in it; this is another archive"
        )));
    }
    let mut all = disk.list(aside)?;
    all.sort_by_key(|path| path.ends_with(mark));
    for from in all {
        let to = folder.join(from.file_name().unwrap_or_default());
        if disk.kind(&to)? == Kind::Folder {
            return Err(io::Error::other(format!(
                "{} is there already; move it away",
                to.display()
            )));
        }
        // All before the mark: it says that they are there.
        disk.sync_folder(folder)?;
        disk.rename(&from, &to)?;
    }
    disk.sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out() {
        let aside = Path::new("a");
        let at = |name: &str| place(Path::new(name), aside);
        assert_eq!(at("./b/c").unwrap(), Some(PathBuf::from("a/b/c")));
        assert_eq!(at("./").unwrap(), None);
        for name in ["../x", "/etc/x", "b/../../x"] {
            assert!(at(name).is_err(), "{name}");
        }
    }
}
