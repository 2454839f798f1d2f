//! A tar into a folder: beside it first, then each entry renamed into place.
//!
//! Only files and folders below the place are made. An archive that names another place, or brings
//! links, is refused, and so is one that would put something in the place of what is there already.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use anchorhood_storage::{AtomicFolder, FileSystem, Kind, folder_of, move_file, resolve_inside_on};

use super::Archive;

/// Unpacks the bytes of `tar`, which is what `archive` should be, into `folder`. What it creates
/// last says that it is whole.
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

/// Makes all files survive a power cut: several at a time, since a disk writes many together as
/// quickly as one.
fn sync(disk: &dyn FileSystem, files: &[PathBuf]) -> io::Result<()> {
    const AT_ONCE: usize = 16;
    let share = files.len().div_ceil(AT_ONCE).max(1);
    let sync_all = |files: &[PathBuf]| files.iter().try_for_each(|f| disk.append(f)?.sync());
    std::thread::scope(|scope| {
        let shares = files.chunks(share);
        let threads: Vec<_> = shares.map(|f| scope.spawn(move || sync_all(f))).collect();
        let joined = |t: std::thread::ScopedJoinHandle<io::Result<()>>| {
            t.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended")))
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
        let Some(to) = place(disk, &entry.path()?, aside)? else {
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
                return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
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
fn place(disk: &dyn FileSystem, name: &Path, aside: &Path) -> io::Result<Option<PathBuf>> {
    if name.components().all(|part| part == Component::CurDir) {
        return Ok(None);
    }
    let to = resolve_inside_on(disk, aside, name).map_err(|e| {
        let name = name.display();
        let why = format!("it names {name}, which leads out of the folder; not unpacked");
        io::Error::new(e.kind(), why)
    })?;
    Ok(Some(to))
}

/// Moves every entry into the folder, that which marks the end last, and over nothing that is
/// there. A file that is there with the same bytes, as an interrupted unpacking leaves it, stays.
fn into_place(
    disk: &dyn FileSystem,
    aside: &Path,
    folder: &Path,
    archive: &Archive,
) -> io::Result<()> {
    let mark = archive.creates.unwrap_or_default();
    if !disk.exists(&aside.join(mark)) {
        return Err(io::Error::other(format!("expected {mark} in it; this is another archive")));
    }
    let mut all = disk.list(aside)?;
    all.sort_by_key(|path| path.ends_with(mark));
    let to = |from: &Path| folder.join(from.file_name().unwrap_or_default());
    // Before the first is moved.
    for from in &all {
        check_free(disk, from, &to(from))?;
    }
    for from in &all {
        // All before the mark: it says that they are there.
        match move_new(disk, from, &to(from)) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => check_free(disk, from, &to(from))?,
            other => other?,
        }
    }
    disk.sync_folder(folder)
}

/// Moves a file or a folder over nothing.
fn move_new(disk: &dyn FileSystem, from: &Path, to: &Path) -> io::Result<()> {
    if disk.kind(from)? == Kind::File {
        return move_file(disk, from, to);
    }
    match disk.rename_new(from, to) {
        // No more than an empty folder is ever replaced by a folder.
        Err(e) if e.kind() == ErrorKind::Unsupported => disk.rename(from, to)?,
        other => other?,
    }
    disk.sync_folder(folder_of(to))
}

/// Refuses what is there already, under a name that is wanted, and is not the same file.
fn check_free(disk: &dyn FileSystem, from: &Path, to: &Path) -> io::Result<()> {
    let free = match disk.kind(to)? {
        Kind::Nothing => disk.read_link(to)?.is_none(),
        Kind::File if disk.kind(from)? == Kind::File => {
            disk.length(from)? == disk.length(to)? && *disk.map(from)? == *disk.map(to)?
        }
        Kind::File | Kind::Folder | Kind::Other => false,
    };
    let taken = || {
        let why = format!(
            "{} is there already, and not what the archive brings; move it away",
            to.display()
        );
        io::Error::new(ErrorKind::AlreadyExists, why)
    };
    free.then_some(()).ok_or_else(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::{AtomicFile, Forgetful};

    #[test]
    fn names_that_lead_out_are_refused() {
        let (disk, aside) = (Forgetful::new(), Path::new("/a"));
        disk.create_folders(aside).unwrap();
        let at = |name: &str| place(&disk, Path::new(name), aside);
        assert_eq!(at("./b/c").unwrap(), Some(PathBuf::from("/a/b/c")));
        assert_eq!(at("./").unwrap(), None);
        for name in ["../x", "/etc/x", "b/../../x", "b/.."] {
            assert_eq!(at(name).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }

    /// Also where a link is among what was unpacked, whoever put it there.
    #[cfg(unix)]
    #[test]
    fn names_that_lead_out_through_a_link_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let aside = folder.path().join("aside");
        std::fs::create_dir(&aside).unwrap();
        std::os::unix::fs::symlink("..", aside.join("up")).unwrap();
        let out = place(&anchorhood_storage::Disk, Path::new("up/x"), &aside);
        assert_eq!(out.unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    const ARCHIVE: Archive = Archive {
        url: "",
        file: "lists.tar",
        md5: "",
        megabytes: 0,
        creates: Some("train.mat"),
        optional: false,
    };

    fn unpacked(disk: &Forgetful) -> io::Result<()> {
        let mut tar = tar::Builder::new(vec![]);
        for (name, bytes) in [("a.mat", "one"), ("b.mat", "two"), ("train.mat", "three")] {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, bytes.as_bytes()).unwrap();
        }
        let tar = tar.into_inner().unwrap();
        unpack(disk, tar.as_slice(), Path::new("/set"), &ARCHIVE)
    }

    fn set(disk: Forgetful, files: &[(&str, &str)]) -> Forgetful {
        disk.create_folders(Path::new("/set")).unwrap();
        for (name, text) in files {
            let path = Path::new("/set").join(name);
            AtomicFile::write_on(&disk, &path, text.as_bytes()).unwrap();
        }
        disk
    }

    fn files(disk: &Forgetful) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = disk.list(Path::new("/set")).unwrap();
        files.sort();
        let read = |file: PathBuf| {
            let bytes = disk.read(&file).unwrap();
            (file, bytes)
        };
        files.into_iter().map(read).collect()
    }

    #[test]
    fn a_file_of_the_same_name_is_never_overwritten() {
        for mine in ["a.mat", "b.mat", "train.mat"] {
            let disk = set(Forgetful::new(), &[(mine, "mine"), ("other", "mine too")]);
            let before = files(&disk);
            let refused = unpacked(&disk).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
            assert!(refused.to_string().contains(mine), "{refused}");
            assert_eq!(files(&disk), before, "{mine}");
        }
        let disk = set(Forgetful::new(), &[]);
        disk.create_folders(Path::new("/set/a.mat")).unwrap();
        assert_eq!(unpacked(&disk).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }

    /// The same bytes are what a killed unpacking left.
    #[test]
    fn what_is_there_already_with_the_same_bytes_stays() {
        for disk in [Forgetful::new(), Forgetful::without_rename_new()] {
            let disk = set(disk, &[("a.mat", "one")]);
            unpacked(&disk).unwrap();
            let texts: Vec<_> = files(&disk).into_iter().map(|(_, bytes)| bytes).collect();
            assert_eq!(texts, [&b"one"[..], b"two", b"three"]);
        }
    }
}
