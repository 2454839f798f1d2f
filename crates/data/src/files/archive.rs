//! Pictures inside tar archives, read where they lie: an archive is like a folder, and
//! `shard.tar/a.jpg` is the path of a picture.
//!
//! Where the members of an archive begin is found out once, by going from header to header, and
//! kept as long as the file stays what it was. Compressed archives are not read: nobody could go to
//! one of their pictures without unpacking all before it.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use anchorhood_storage::{open_regular, read_at_most};

use super::named::name_of;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its name, as that of a [picture](super::named).
    pub name: String,
    /// Where its bytes begin.
    pub start: u64,
    /// How many there are.
    pub length: u64,
}

/// Whether a file is taken for an archive, by its name.
pub(crate) fn is_archive(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ending.eq_ignore_ascii_case("tar")
}

/// The files of the archive at `path`, sorted by name.
pub(crate) fn members(path: &Path) -> Result<Arc<Vec<Member>>> {
    type Known = HashMap<PathBuf, (u64, Option<SystemTime>, Arc<Vec<Member>>)>;
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let about = path.metadata()?;
    let state = (about.len(), about.modified().ok());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((length, time, members)) = known().get_or_insert_default().get(path)
        && (*length, *time) == state
    {
        return Ok(Arc::clone(members));
    }
    let members = Arc::new(read_members(path)?);
    let entry = (state.0, state.1, Arc::clone(&members));
    known().get_or_insert_default().insert(path.into(), entry);
    Ok(members)
}

fn read_members(path: &Path) -> Result<Vec<Member>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    let mut archive = tar::Archive::new(file);
    let mut members = vec![];
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        let kind = entry.header().entry_type();
        if !(kind.is_file() || kind.is_contiguous()) {
            continue;
        }
        let member = Member {
            name: match name_in_archive(&entry.path()?) {
                Some(name) => name,
                None => continue,
            },
            start: entry.raw_file_position(),
            length: entry.size(),
        };
        let end = member.start.checked_add(member.length);
        if end.is_none_or(|end| end > length) {
            let why = format!("the archive is cut off within {}", member.name);
            return Err(Error::new(ErrorKind::UnexpectedEof, why));
        }
        members.push(member);
    }
    // Of two with one name the later counts, as it does where they are unpacked.
    members.reverse();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    members.dedup_by(|a, b| a.name == b.name);
    Ok(members)
}

/// None for what is hidden or would lie outside.
fn name_in_archive(path: &Path) -> Option<String> {
    let mut parts = vec![];
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(name_of(part)),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let hidden = parts.iter().any(|part| part.starts_with('.'));
    (!hidden && !parts.is_empty()).then(|| parts.join("/"))
}

/// A picture in an archive, by a path that goes on after the archive's; none where it goes through
/// none, or has no such picture.
pub(crate) fn find(path: &Path) -> Option<(PathBuf, Member)> {
    let is_one = |place: &&Path| is_archive(place) && place.is_file();
    let archive = path.ancestors().skip(1).find(is_one)?;
    let name = name_in_archive(path.strip_prefix(archive).ok()?)?;
    let members = members(archive).ok()?;
    let at = members.binary_search_by(|member| member.name.cmp(&name));
    Some((archive.into(), members[at.ok()?].clone()))
}

/// Where the bytes of a picture in an archive lie: the archive's file, the first byte, and how many
/// there are. None where the path goes through no archive, or to no picture of it.
pub fn archived_picture(path: &Path) -> Option<(PathBuf, u64, u64)> {
    let (archive, member) = find(path)?;
    Some((archive, member.start, member.length))
}

/// The bytes of a member of an archive that has at most `most` of them.
pub(crate) fn read(archive: &Path, member: &Member, most: u64) -> Result<Vec<u8>> {
    if member.length > most {
        return Err(Error::other(format!("it has more than {most} bytes")));
    }
    let mut file = open_regular(archive)?;
    file.seek(SeekFrom::Start(member.start))?;
    let mut bytes = vec![0; member.length as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Length of a picture's file, and when it was written, where it lies by itself or in an archive;
/// none where it is not there.
pub fn about(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    if let Ok(about) = path.metadata() {
        return Some((about.len(), about.modified().ok()));
    }
    let (archive, member) = find(path)?;
    let time = archive.metadata().ok().and_then(|m| m.modified().ok());
    Some((member.length, time))
}

/// The bytes of a picture's file, at most `most`, where it lies by itself or in an archive.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    match path.metadata() {
        Err(e) if e.kind() == ErrorKind::NotADirectory => {
            let (archive, member) = find(path).ok_or(e)?;
            read(&archive, &member, most)
        }
        _ => read_at_most(path, most),
    }
}

/// Whether a picture lies in an archive: its path goes on after a file.
pub fn is_member(path: &Path) -> bool {
    let about = path.metadata();
    about.is_err_and(|e| e.kind() == ErrorKind::NotADirectory) && find(path).is_some()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs::File;

    /// Writes an archive of names and bytes.
    pub(crate) fn write(path: &Path, files: &[(&str, &[u8])]) {
        let mut archive = tar::Builder::new(File::create(path).unwrap());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, *bytes).unwrap();
        }
        archive.finish().unwrap();
    }

    #[test]
    fn members_are_read_where_they_lie() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar");
        let long = format!("{}/x.jpg", "d".repeat(150));
        let files: [(&str, &[u8]); 5] = [
            ("b/2.jpg", b"two"),
            ("./1.jpg", b"one"),
            (".hidden.jpg", b"no"),
            (&long, b"long"),
            ("1.jpg", b"one again"),
        ];
        write(&path, &files);
        let found = members(&path).unwrap();
        let names: Vec<&str> = found.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["1.jpg", "b/2.jpg", &long]);
        let bytes = |name: &str| {
            let (archive, member) = find(&path.join(name))?;
            Some(read(&archive, &member, 100).unwrap())
        };
        assert_eq!(bytes("1.jpg").unwrap(), b"one again");
        assert_eq!(bytes("b/2.jpg").unwrap(), b"two");
        assert_eq!(bytes(&long).unwrap(), b"long");
        assert!(bytes("3.jpg").is_none() && bytes(".hidden.jpg").is_none());
        assert_eq!(about(&path.join("b/2.jpg")).unwrap().0, 3);
        assert_eq!(super::bytes(&path.join("b/2.jpg"), 3).unwrap(), b"two");
        assert!(super::bytes(&path.join("b/2.jpg"), 2).is_err());
        assert!(is_member(&path.join("1.jpg")) && !is_member(&path));
        assert_eq!(super::bytes(&path, 1 << 20).unwrap().len() % 512, 0);
        let (whole, start, length) = archived_picture(&path.join("b/2.jpg")).unwrap();
        let bytes = std::fs::read(whole).unwrap();
        assert_eq!(&bytes[start as usize..][..length as usize], b"two");
        let (archive, member) = find(&path.join("1.jpg")).unwrap();
        assert!(read(&archive, &member, 3).is_err(), "more than may be");
    }

    #[test]
    fn an_archive_that_changed_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar");
        write(&path, &[("1.jpg", b"one")]);
        assert_eq!(members(&path).unwrap().len(), 1);
        write(&path, &[("1.jpg", &[1; 2000]), ("2.jpg", b"two")]);
        assert_eq!(members(&path).unwrap().len(), 2);
    }

    #[test]
    fn a_cut_archive_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tar");
        write(&path, &[("1.jpg", &[7; 3000]), ("2.jpg", &[8; 3000])]);
        let whole = std::fs::read(&path).unwrap();
        for end in [100, 600, 3000, 5000] {
            std::fs::write(&path, &whole[..end]).unwrap();
            assert!(members(&path).is_err(), "{end}");
        }
    }
}
