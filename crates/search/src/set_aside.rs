//! Pictures moved to a folder of their own, and back: nothing is deleted, nothing is overwritten, and at every moment each picture is in
//! its old place or its new one.
//!
//! Before a picture is moved, both places are written down in `undo.jsonl` there, synced: a line of JSON each, `from` and `to` (relative
//! to the file's own folder), as [names](anchorhood_data::name_of). [`undo`] reads it from its end and moves back what is there.
//! Interrupted, either can be asked for again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_data::{is_member, name_of, picture_named};
use anchorhood_files::{AppendFile, FileSystem, Kind, folder_of, move_file, read_at_most_on};
use serde::{Deserialize, Serialize};

use crate::SearchError;

/// How the record is called in the folder that pictures are moved to.
pub const UNDO_FILE: &str = "undo.jsonl";
/// More than two long paths for each of a million pictures.
const MOST_BYTES: u64 = 1 << 32;
/// Names tried where one is taken.
const TRIES: usize = 10_000;

/// A picture that was to be moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Moved {
    from: String,
    to: String,
}

/// Moves pictures into `folder`, each under the name it is given with, or one like it where that is taken. Says where each went. One
/// that lies in an archive, is a link or no file at all, and a folder that holds the pictures, are refused before anything is moved.
/// `progress` is told how many are done.
pub fn set_aside(
    disk: &Arc<dyn FileSystem>,
    pictures: &[(PathBuf, String)],
    folder: &Path,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<PathBuf>, SearchError> {
    for (path, _) in pictures {
        movable(&**disk, path)?;
    }
    let folder = std::path::absolute(folder).map_err(SearchError::io(folder))?;
    disk.create_folders(&folder)
        .map_err(SearchError::io(&folder))?;
    let record = folder.join(UNDO_FILE);
    let mut undo = AppendFile::open(disk.clone(), &record).map_err(SearchError::io(&record))?;
    mend(&mut undo).map_err(SearchError::io(&record))?;
    let mut places = vec![];
    for (done, (path, name)) in pictures.iter().enumerate() {
        let place = free(&**disk, &folder, name)?;
        let from = std::path::absolute(path).map_err(SearchError::io(path))?;
        let moved = Moved {
            from: name_of(from.as_os_str()),
            to: name_of(place.strip_prefix(&folder).unwrap_or(&place).as_os_str()),
        };
        let line = serde_json::to_string(&moved).map_err(std::io::Error::other);
        let kept = line.and_then(|line| undo.append(format!("{line}\n").as_bytes()));
        kept.and_then(|()| undo.sync())
            .map_err(SearchError::io(&record))?;
        move_file(&**disk, &from, &place).map_err(SearchError::io(&from))?;
        places.push(place);
        progress(done + 1);
    }
    Ok(places)
}

/// Half a line that an interruption left at the end is cut off: its picture was not moved.
fn mend(undo: &mut AppendFile) -> std::io::Result<()> {
    let whole = whole_lines(&undo.read()?).len();
    undo.truncate(whole as u64)
}

fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
}

fn movable(disk: &dyn FileSystem, path: &Path) -> Result<(), SearchError> {
    let cannot = |why: &str| {
        let path = path.display();
        Err(SearchError::Impossible(format!(
            "{path}: {why}; nothing was moved"
        )))
    };
    if is_member(path) {
        return cannot("it lies in an archive, out of which no picture can be moved");
    }
    if path.is_symlink() {
        return cannot("it is a link, which may lead nowhere from another place");
    }
    match disk.kind(path).map_err(SearchError::io(path))? {
        Kind::File => Ok(()),
        Kind::Nothing => cannot("it is not there any more"),
        Kind::Folder | Kind::Other => cannot("it is no file"),
    }
}

/// A place in a folder that nothing has: by its name, or with a number before the ending.
fn free(disk: &dyn FileSystem, folder: &Path, name: &str) -> Result<PathBuf, SearchError> {
    let wanted = picture_named(folder, name);
    let within = folder_of(&wanted);
    disk.create_folders(within)
        .map_err(SearchError::io(within))?;
    let numbered = |number: usize| match number {
        1 => wanted.clone(),
        number => {
            let mut other = wanted.file_stem().unwrap_or_default().to_owned();
            other.push(format!(" ({number})"));
            if let Some(ending) = wanted.extension() {
                other.push(".");
                other.push(ending);
            }
            wanted.with_file_name(other)
        }
    };
    let taken = || {
        let path = wanted.display();
        SearchError::Impossible(format!("{path}: this name and {TRIES} like it are taken"))
    };
    let mut places = (1..=TRIES).map(numbered);
    places.find(|place| !disk.exists(place)).ok_or_else(taken)
}

/// What became of pictures that were to be put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// So many were moved back.
    pub moved: usize,
    /// So many are in their old place already.
    pub there: usize,
    /// These are not, each with the reason.
    pub left: Vec<(PathBuf, String)>,
}

/// Puts back what the record `undo.jsonl` of [`set_aside`] says was moved, the last first.
pub fn undo(disk: &dyn FileSystem, record: &Path) -> Result<PutBack, SearchError> {
    let bytes = read_at_most_on(disk, record, MOST_BYTES).map_err(SearchError::io(record))?;
    let moves = read_moves(&bytes).map_err(|reason| SearchError::BadUndo {
        path: record.into(),
        reason,
    })?;
    let folder = folder_of(record);
    let mut result = PutBack::default();
    for moved in moves.iter().rev() {
        let from = picture_named(Path::new(""), &moved.from);
        let to = picture_named(folder, &moved.to);
        match put_back(disk, &from, &to) {
            Ok(true) => result.moved += 1,
            Ok(false) => result.there += 1,
            Err(why) => result.left.push((from, why)),
        }
    }
    Ok(result)
}

/// The lines of a record. The last may have no end: its picture was not moved.
fn read_moves(bytes: &[u8]) -> Result<Vec<Moved>, String> {
    let text = str::from_utf8(whole_lines(bytes)).map_err(|_| "it is no text in UTF-8")?;
    let mut moves = vec![];
    for (number, line) in (1..).zip(text.lines()) {
        match serde_json::from_str::<Moved>(line) {
            Ok(moved) if stays_inside(&moved.to) => moves.push(moved),
            Ok(moved) => {
                return Err(format!(
                    "line {number}: {} leads out of its folder",
                    moved.to
                ));
            }
            Err(e) => {
                return Err(format!(
                    "line {number} is no record of a moved picture: {e}"
                ));
            }
        }
    }
    Ok(moves)
}

fn stays_inside(name: &str) -> bool {
    let path = picture_named(Path::new(""), name);
    let normal = |part| matches!(part, std::path::Component::Normal(_));
    !name.is_empty() && path.components().all(normal)
}

/// Whether it had to be moved.
fn put_back(disk: &dyn FileSystem, from: &Path, to: &Path) -> Result<bool, String> {
    let said = |e: std::io::Error| e.to_string();
    let kinds = [from, to].map(|path| disk.kind(path));
    let [at_home, aside] = kinds;
    match (at_home.map_err(said)?, aside.map_err(said)?) {
        (Kind::Nothing, Kind::File) => {
            disk.create_folders(folder_of(from)).map_err(said)?;
            move_file(disk, to, from).map_err(said)?;
            Ok(true)
        }
        (Kind::File, Kind::Nothing) => Ok(false),
        (Kind::File, Kind::File) => second_name(disk, from, to).map(|()| false),
        (Kind::Nothing, Kind::Nothing) => Err("it is neither here nor there".into()),
        (Kind::Folder | Kind::Other, _) => Err("something else has its place".into()),
        (_, Kind::Folder | Kind::Other) => Err("something else lies where it was moved to".into()),
    }
}

/// An interruption may leave one file under both names, or an empty file where it should have gone. What is left over stays: to remove
/// the second name of a file is right only where it is surely not the first.
fn second_name(disk: &dyn FileSystem, from: &Path, to: &Path) -> Result<(), String> {
    let said = |e: std::io::Error| e.to_string();
    let empty = disk.length(to).map_err(said)? == 0;
    match empty || disk.read(from).map_err(said)? == disk.read(to).map_err(said)? {
        true => Ok(()),
        false => Err("another file has its place; nothing is overwritten".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_files::{AtomicFile, Disk, Forgetful, attack};

    const PICTURES: [(&str, &str); 3] = [
        ("/pictures/a/x.png", "a/x.png"),
        ("/pictures/b/x.png", "x.png"),
        ("/pictures/c.png", "x.png"),
    ];

    fn prepared() -> Forgetful {
        let disk = Forgetful::new();
        for (path, _) in PICTURES {
            disk.create_folders(folder_of(Path::new(path))).unwrap();
            AtomicFile::write_on(&disk, Path::new(path), path.as_bytes()).unwrap();
        }
        disk
    }

    fn pictures() -> Vec<(PathBuf, String)> {
        PICTURES
            .map(|(path, name)| (path.into(), name.into()))
            .into()
    }

    fn record() -> PathBuf {
        Path::new("/aside").join(UNDO_FILE)
    }

    /// Everything that can happen to a file happens, to the way there and to the way back: no picture is lost or changed, and the
    /// same command again brings all of them back.
    #[test]
    fn no_picture_is_ever_lost() {
        let start = prepared();
        let there = |disk: Arc<dyn FileSystem>| {
            set_aside(&disk, &pictures(), Path::new("/aside"), &mut |_| {}).is_ok()
        };
        let all_back = |disk: &Forgetful, what: &str| {
            if disk.exists(&record()) {
                let done = undo(disk, &record()).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(done.left, [], "{what}");
            }
            for (path, _) in PICTURES {
                let bytes = disk.read(Path::new(path));
                assert_eq!(bytes.unwrap(), path.as_bytes(), "{what}: {path}");
            }
        };
        let mut faults = attack(&start, there, |disk, _, what| all_back(disk, what));
        assert!(there(start.shared()));
        let back = |disk: Arc<dyn FileSystem>| undo(&*disk, &record()).is_ok();
        faults += attack(&start, back, |disk, _, what| all_back(disk, what));
        println!("{faults} faults");
        assert!(faults > 200, "{faults}");
    }

    #[test]
    fn names_are_kept_apart_and_nothing_is_overwritten() {
        let disk = prepared();
        let shared = disk.shared();
        let aside = Path::new("/aside");
        let places = set_aside(&shared, &pictures(), aside, &mut |_| {}).unwrap();
        let expected = ["/aside/a/x.png", "/aside/x.png", "/aside/x (2).png"];
        assert_eq!(places, expected.map(PathBuf::from));
        assert!(set_aside(&shared, &pictures()[..1], aside, &mut |_| {}).is_err());
        AtomicFile::write_on(&disk, Path::new("/pictures/c.png"), b"another").unwrap();
        let done = undo(&disk, &record()).unwrap();
        assert_eq!((done.moved, done.there, done.left.len()), (2, 0, 1));
        assert!(done.left[0].1.contains("nothing is overwritten"));
        assert_eq!(disk.read(Path::new("/pictures/c.png")).unwrap(), b"another");
        let again = undo(&disk, &record()).unwrap();
        assert_eq!((again.moved, again.there, again.left.len()), (0, 2, 1));
    }

    #[test]
    fn records_that_are_none_are_refused() {
        let message = |text: &str| {
            let disk = Forgetful::new();
            AtomicFile::write_on(&disk, Path::new("/undo.jsonl"), text.as_bytes()).unwrap();
            undo(&disk, Path::new("/undo.jsonl")).map_err(|e| e.to_string())
        };
        assert_eq!(message("").unwrap(), PutBack::default());
        let cut = r#"{"from":"/a","to":"b"#;
        assert_eq!(message(cut).unwrap(), PutBack::default());
        assert!(message(&format!("{cut}\n")).is_err());
        assert!(
            message("rm -rf\n")
                .unwrap_err()
                .contains("line 1 is no record")
        );
        for out in ["../x", "/etc/passwd", "a/../../b", ""] {
            let text = format!("{{\"from\":\"/a\",\"to\":\"{out}\"}}\n");
            assert!(message(&text).unwrap_err().contains("leads out"), "{out}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_members_of_archives_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::shared();
        let link = folder.path().join("link.png");
        std::os::unix::fs::symlink("x.png", &link).unwrap();
        let refused = |path: PathBuf| {
            let moved = set_aside(
                &disk,
                &[(path, "x.png".into())],
                &folder.path().join("aside"),
                &mut |_| {},
            );
            moved.unwrap_err().to_string()
        };
        assert!(refused(link).contains("is a link"));
        assert!(refused(folder.path().join("gone.png")).contains("not there any more"));
        assert!(!folder.path().join("aside").exists());
    }
}
