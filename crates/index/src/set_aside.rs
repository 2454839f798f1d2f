//! Images moved to a folder of their own, and back: nothing is deleted, nothing is overwritten, and
//! at every moment each image is in its old place or its new one.
//!
//! Before an image is moved, both places are written down in `undo.jsonl` there, synced, as
//! [`Record`] writes them. [`undo`] reads it from its end and moves back what is there.
//! Interrupted, either can be asked for again.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anchorhood_data::{is_member, picture_named};
use anchorhood_storage::{
    AppendFile, FileStamp, FileSystem, Kind, folder_of, move_file, read_at_most_on,
    resolve_inside_on, resolve_on,
};

use crate::undo_record::{Folders, Move, Record};
use crate::{RecordKey, SearchError};

/// How the record is called in the folder that images are moved to.
pub const UNDO_FILE: &str = "undo.jsonl";
/// More than two long paths for each of a million images.
const MOST_BYTES: u64 = 1 << 32;
/// Names tried where one is taken.
const TRIES: usize = 10_000;

/// An image that is to be moved.
#[derive(Clone, Debug)]
pub struct ToMove {
    /// Where it lies.
    pub path: PathBuf,
    /// Its name, by which it will lie in the other folder; without what would lead out of that.
    pub name: String,
    /// The file as it was when it was compared: another is not moved.
    pub stamp: Option<FileStamp>,
    /// A link among the images that leads to it, and would lead nowhere: it is not moved.
    pub link: Option<PathBuf>,
    /// The image that is kept in its stead, as it was: without it, or where it has changed, nothing
    /// is moved.
    pub kept: Option<(PathBuf, FileStamp)>,
}

/// What became of images that were to be moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAside {
    /// Where each lay, and where it is now.
    pub moved: Vec<(PathBuf, PathBuf)>,
    /// These were not moved, each with the reason.
    pub left: Vec<(PathBuf, String)>,
}

/// A folder that images are to be moved to.
#[derive(Debug)]
struct Target {
    disk: Arc<dyn FileSystem>,
    /// Without links.
    folder: PathBuf,
    /// The folders that the images are of, without links.
    sources: Vec<PathBuf>,
    /// Names given away.
    taken: HashSet<PathBuf>,
}

/// Moves images of the folders `sources` into `folder`, each under its name, or one like it where
/// that is taken. An image that lies in an archive or on another disk, is a link or what one leads
/// to, is gone or has changed is left where it is, and does not stop the others. A folder inside
/// one of the sources is refused before anything is made. `progress` is told how many are done.
pub fn set_aside(
    disk: &Arc<dyn FileSystem>,
    images: &[ToMove],
    sources: &[PathBuf],
    folder: &Path,
    key: &RecordKey,
    progress: &mut dyn FnMut(usize),
) -> Result<SetAside, SearchError> {
    let mut target = Target::new(disk, sources, folder)?;
    let (mut result, ready) = target.ready(images);
    if ready.is_empty() {
        return Ok(result);
    }
    disk.create_folders(&target.folder).map_err(SearchError::io(&target.folder))?;
    let path = target.folder.join(UNDO_FILE);
    let (mut file, mut record) = open_record(disk, &path, &target.folder, key)?;
    let mut append = |line: std::io::Result<String>| {
        line.and_then(|line| file.append(line.as_bytes()))
            .and_then(|()| file.sync())
            .map_err(SearchError::io(&path))
    };
    let folders =
        Folders { sources: folders_of(&target.sources, &ready), target: target.folder.clone() };
    append(record.begin(key, folders))?;
    for (done, (image, from)) in ready.into_iter().enumerate() {
        let moved = target.place(&image.name).and_then(|place| {
            let within = folder_of(&place);
            disk.create_folders(within).map_err(said)?;
            Ok(place)
        });
        let moved = match moved {
            Err(why) => Err(why),
            Ok(place) => {
                let to = place.strip_prefix(&target.folder).unwrap_or(&place);
                append(record.add(key, &from, to))?;
                // Between the first look and now the record was written and synced.
                movable(&**disk, image).and_then(|()| {
                    move_file(&**disk, &from, &place).map_err(said)?;
                    Ok(place)
                })
            }
        };
        match moved {
            Ok(place) => result.moved.push((image.path.clone(), place)),
            Err(why) => result.left.push((image.path.clone(), why)),
        }
        progress(done + 1);
    }
    Ok(result)
}

/// What [`set_aside`] would do; nothing is made or moved. `key` is the one it would sign with,
/// where that is there.
pub fn would_set_aside(
    disk: &Arc<dyn FileSystem>,
    images: &[ToMove],
    sources: &[PathBuf],
    folder: &Path,
    key: Option<&RecordKey>,
) -> Result<SetAside, SearchError> {
    let mut target = Target::new(disk, sources, folder)?;
    read_record(&**disk, &target.folder.join(UNDO_FILE), &target.folder, key)?;
    let (mut result, ready) = target.ready(images);
    for (image, _) in ready {
        match target.place(&image.name) {
            Ok(place) => result.moved.push((image.path.clone(), place)),
            Err(why) => result.left.push((image.path.clone(), why)),
        }
    }
    Ok(result)
}

impl Target {
    fn new(
        disk: &Arc<dyn FileSystem>,
        sources: &[PathBuf],
        folder: &Path,
    ) -> Result<Target, SearchError> {
        let resolved = |path: &Path| resolve_on(&**disk, path).map_err(SearchError::io(path));
        let mut sources: Vec<PathBuf> =
            sources.iter().map(|s| resolved(s)).collect::<Result<_, _>>()?;
        sources.sort_unstable();
        sources.dedup_by(|inner, outer| inner.starts_with(outer));
        let (disk, taken) = (disk.clone(), HashSet::new());
        let target = Target { disk, folder: resolved(folder)?, sources, taken };
        match target.source_of(&target.folder) {
            None => Ok(target),
            Some(source) => Err(SearchError::Impossible(format!(
                "{}: lies in the folder of the pictures, {}, where they would be found again; choose another",
                folder.display(),
                source.display()
            ))),
        }
    }

    fn source_of(&self, place: &Path) -> Option<&PathBuf> {
        self.sources.iter().find(|source| place.starts_with(source))
    }

    /// The images that can be moved, each with the place it lies in without links, and those that
    /// cannot.
    fn ready<'a>(&self, images: &'a [ToMove]) -> (SetAside, Vec<(&'a ToMove, PathBuf)>) {
        let (mut result, mut ready) = (SetAside::default(), vec![]);
        let there = self.folder.ancestors().find_map(|folder| self.disk.stamp(folder).ok());
        let elsewhere = |image: &ToMove| {
            let stamp = self.disk.stamp(&image.path).map_err(said)?;
            match there.is_some_and(|there| there.id.device != stamp.id.device) {
                true => Err(said(ErrorKind::CrossesDevices.into())),
                false => Ok(()),
            }
        };
        for image in images {
            let from = movable(&*self.disk, image).and_then(|()| {
                elsewhere(image)?;
                let folder = resolve_on(&*self.disk, folder_of(&image.path));
                let name = image.path.file_name().ok_or("its name is none of a file")?;
                Ok(folder.map_err(said)?.join(name))
            });
            match from {
                Ok(from) => ready.push((image, from)),
                Err(why) => result.left.push((image.path.clone(), why)),
            }
        }
        (result, ready)
    }

    /// A place in the folder that nothing has: by a name, or with a number before the ending.
    fn place(&mut self, name: &str) -> Result<PathBuf, String> {
        let name = picture_named(Path::new(""), name);
        let wanted = self.folder.join(below(&name));
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
        // A link that leads nowhere is nothing, and has its name.
        let free = |place: &PathBuf| {
            let link = || !matches!(self.disk.read_link(place), Ok(None));
            !self.taken.contains(place) && !self.disk.exists(place) && !link()
        };
        let place = (1..=TRIES).map(numbered).find(free);
        let place = place.ok_or_else(|| {
            let path = wanted.display();
            format!("{path}: this name and {TRIES} like it are taken")
        })?;
        match resolve_inside_on(&*self.disk, &self.folder, &place) {
            Ok(resolved) if resolved == place && self.source_of(&place).is_none() => {
                self.taken.insert(place.clone());
                Ok(place)
            }
            Ok(_) => Err(format!(
                "{}: lies in the folder of the pictures, or behind a link",
                place.display()
            )),
            Err(e) => Err(said(e)),
        }
    }
}

/// A name without its root and without ways up.
fn below(name: &Path) -> PathBuf {
    let normal = |part: &Component| matches!(part, Component::Normal(_));
    name.components().filter(normal).collect()
}

/// The folders that images are of: the sources, and of an image that lies in none of them its own.
fn folders_of(sources: &[PathBuf], images: &[(&ToMove, PathBuf)]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = sources.to_vec();
    for (_, from) in images {
        if !folders.iter().any(|folder| from.starts_with(folder)) {
            folders.push(folder_of(from).into());
        }
    }
    folders
}

/// The record in a folder that images are moved to, made where there is none and held, so that no
/// other process adds to it.
fn open_record(
    disk: &Arc<dyn FileSystem>,
    path: &Path,
    folder: &Path,
    key: &RecordKey,
) -> Result<(AppendFile, Record), SearchError> {
    read_record(&**disk, path, folder, Some(key))?;
    let mut file = AppendFile::open(disk.clone(), path).map_err(SearchError::io(path))?;
    if !file.hold().map_err(SearchError::io(path))? {
        return Err(no_record(path, "another process is moving files there".into()));
    }
    // Whoever held it before may have added to it.
    let record = read_record(&**disk, path, folder, Some(key))?;
    // Half a line that an interruption left is cut off: its image was not moved.
    file.truncate(record.length as u64).map_err(SearchError::io(path))?;
    Ok((file, record))
}

/// The record that is there, where moves may be added to it; an empty one where there is none.
fn read_record(
    disk: &dyn FileSystem,
    path: &Path,
    folder: &Path,
    key: Option<&RecordKey>,
) -> Result<Record, SearchError> {
    let link = disk.read_link(path).map_err(SearchError::io(path))?;
    match disk.kind(path).map_err(SearchError::io(path))? {
        Kind::Nothing if link.is_none() => return Ok(Record::default()),
        Kind::File if link.is_none() => {}
        _ => return Err(no_record(path, "is no regular file".into())),
    }
    let bytes = read_at_most_on(disk, path, MOST_BYTES).map_err(SearchError::io(path))?;
    let record = Record::read(&bytes, key).map_err(|why| no_record(path, why))?;
    let elsewhere = record.folders.iter().any(|f| f.target != folder);
    let elsewhere = elsewhere.then(|| "this record was written in another folder".to_string());
    match record.unconfirmed.clone().or(elsewhere) {
        Some(why) => Err(no_record(path, why)),
        None => Ok(record),
    }
}

fn no_record(path: &Path, reason: String) -> SearchError {
    SearchError::refused(path, format!("{reason}; choose another folder"))
}

/// Why an image cannot be moved, where it cannot.
fn movable(disk: &dyn FileSystem, image: &ToMove) -> Result<(), String> {
    let path = &image.path;
    if is_member(path) {
        return Err("it lies in an archive, out of which no picture can be moved".into());
    }
    if disk.read_link(path).map_err(said)?.is_some() {
        return Err("it is a link, which may lead nowhere from another place".into());
    }
    match disk.kind(path).map_err(said)? {
        Kind::File => {}
        Kind::Nothing => return Err("it is not there any more".into()),
        Kind::Folder | Kind::Other => return Err("it is no file".into()),
    }
    if let Some(link) = &image.link {
        return Err(format!("{} is a link to it, and would lead nowhere", link.display()));
    }
    if image.stamp.is_some() && disk.stamp(path).ok() != image.stamp {
        return Err("it has changed since it was compared".into());
    }
    match &image.kept {
        Some((kept, stamp)) if disk.stamp(kept).ok() != Some(*stamp) => Err(format!(
            "{}, which was to be kept, is gone or has changed since it was compared",
            kept.display()
        )),
        _ => Ok(()),
    }
}

/// What the system said, in a user's words.
fn said(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::CrossesDevices => {
            "the other folder lies on another disk; choose one on the same".into()
        }
        _ => error.to_string(),
    }
}

/// What became of images that were to be put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// So many were moved back.
    pub moved: usize,
    /// So many are in their old place already.
    pub there: usize,
    /// These are not, each with the reason.
    pub left: Vec<(PathBuf, String)>,
}

/// Puts back what the record `undo.jsonl` of [`set_aside`] says was moved, the last first. A record
/// that `key` does not confirm is an [error](SearchError::UnconfirmedRecord) that lists the moves,
/// unless it is trusted (`trust`): then no name may lead through a link. A record that was changed
/// moves nothing.
pub fn undo(
    disk: &dyn FileSystem,
    record: &Path,
    key: Option<&RecordKey>,
    trust: bool,
) -> Result<PutBack, SearchError> {
    let bytes = read_at_most_on(disk, record, MOST_BYTES).map_err(SearchError::io(record))?;
    let bad = |reason| SearchError::refused(record, reason);
    let mut read = Record::read(&bytes, key).map_err(bad)?;
    let place = resolve_on(disk, record).map_err(SearchError::io(record))?;
    let folder = folder_of(&place);
    let elsewhere = read.folders.iter().find(|f| f.target != folder);
    if let Some(other) = elsewhere.filter(|_| read.unconfirmed.is_none()) {
        let there = other.target.display();
        let why = format!("this record was written in {there}, and lies elsewhere now");
        read.unconfirmed = Some(why);
    }
    if let Some(reason) = read.unconfirmed.as_ref().filter(|_| !trust && !read.moves.is_empty()) {
        let moves = read.moves.iter().rev();
        return Err(SearchError::UnconfirmedRecord {
            path: record.into(),
            reason: reason.clone(),
            moves: moves.map(|m| (folder.join(&m.to), m.from.clone())).collect(),
        });
    }
    let mut result = PutBack::default();
    let mut seen = HashSet::new();
    for moved in read.moves.iter().rev() {
        // What lies under a name is the image that was given it last.
        let latest = seen.insert(&moved.to);
        let places = places(disk, &read, moved, folder);
        match places.and_then(|(from, to)| put_back(disk, &from, to.as_deref().filter(|_| latest)))
        {
            Ok(true) => result.moved += 1,
            Ok(false) => result.there += 1,
            Err(why) => result.left.push((moved.from.clone(), why)),
        }
    }
    Ok(result)
}

/// Where an image lay, and where it was moved to, without links; an error where a name leads out of
/// the folders that the record names.
fn places(
    disk: &dyn FileSystem,
    record: &Record,
    moved: &Move,
    folder: &Path,
) -> Result<(PathBuf, Option<PathBuf>), String> {
    if !moved.from.is_absolute() {
        return Err("its old place is no whole path".into());
    }
    if moved.to.as_os_str().is_empty() || below(&moved.to) != moved.to {
        return Err(format!("{} leads out of its folder", moved.to.display()));
    }
    let plain = |path: &Path| match resolve_on(disk, path).map_err(said)? == path {
        true => Ok(path.to_path_buf()),
        false => Err(format!("{} leads through a link", path.display())),
    };
    let to = plain(&folder.join(&moved.to))?;
    if record.unconfirmed.is_some() {
        return Ok((plain(&moved.from)?, Some(to)));
    }
    let name = moved.from.file_name().ok_or("its old place is no name of a file")?;
    let home = folder_of(&moved.from);
    let sources = moved.folders.map_or(&[][..], |f| &record.folders[f].sources);
    let inside = sources.iter().find_map(|source| {
        // The folder itself is inside, too.
        resolve_inside_on(disk, source, &home.join(name)).ok()
    });
    let leads_out = || "its old place leads out of the folders it was moved from".to_string();
    let from = inside.ok_or_else(leads_out)?;
    match disk.read_link(&home.join(name)).map_err(said)? {
        None => Ok((from, Some(to))),
        Some(_) => Err("a link has its place".into()),
    }
}

/// Whether it had to be moved; `to` is none where another image was given that name since.
fn put_back(disk: &dyn FileSystem, from: &Path, to: Option<&Path>) -> Result<bool, String> {
    let at_home = disk.kind(from).map_err(said)?;
    let aside = match to {
        Some(to) => disk.kind(to).map_err(said)?,
        None => Kind::Nothing,
    };
    match (at_home, aside, to) {
        (Kind::Nothing, Kind::File, Some(to)) => {
            disk.create_folders(folder_of(from)).map_err(said)?;
            move_file(disk, to, from).map_err(said)?;
            Ok(true)
        }
        (Kind::File, Kind::File, Some(to)) => second_name(disk, from, to).map(|()| false),
        (Kind::File, Kind::Nothing, _) => Ok(false),
        (Kind::Nothing, ..) if aside == Kind::Nothing => Err("it is neither here nor there".into()),
        (Kind::Folder | Kind::Other, ..) => Err("something else has its place".into()),
        _ => Err("something else lies where it was moved to".into()),
    }
}

/// On a disk without a rename that replaces nothing, an interruption may leave an empty file where
/// an image should have gone, and one of earlier versions may have left a file under both names.
/// What is left over stays: to remove a file is right only where it is surely not the image.
fn second_name(disk: &dyn FileSystem, from: &Path, to: &Path) -> Result<(), String> {
    let [home, aside] = [from, to].map(|path| disk.length(path).map_err(said));
    let (home, aside) = (home?, aside?);
    if home == 0 && aside > 0 {
        return Err("an empty file has its place; remove that and ask again".into());
    }
    let same = || match [from, to].map(|path| disk.read(path)) {
        [Ok(a), Ok(b)] => Ok(a == b),
        [Err(e), _] | [_, Err(e)] => Err(said(e)),
    };
    match aside == 0 || (home == aside && same()?) {
        true => Ok(()),
        false => Err("another file has its place; nothing is overwritten".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::name_of;
    use anchorhood_storage::{AtomicFile, Disk, Forgetful, attack};

    const PICTURES: [(&str, &str); 3] = [
        ("/pictures/a/x.png", "a/x.png"),
        ("/pictures/b/x.png", "x.png"),
        ("/pictures/c.png", "x.png"),
    ];

    fn key() -> RecordKey {
        RecordKey::new(b"a key of the tests")
    }

    fn fill(disk: &Forgetful) {
        for (path, _) in PICTURES {
            disk.create_folders(folder_of(Path::new(path))).unwrap();
            AtomicFile::write_on(disk, Path::new(path), path.as_bytes()).unwrap();
        }
    }

    fn prepared() -> Forgetful {
        let disk = Forgetful::new();
        fill(&disk);
        disk
    }

    fn to_move(path: impl Into<PathBuf>, name: &str) -> ToMove {
        ToMove { path: path.into(), name: name.into(), stamp: None, link: None, kept: None }
    }

    fn pictures() -> Vec<ToMove> {
        PICTURES.map(|(path, name)| to_move(path, name)).into()
    }

    fn record() -> PathBuf {
        Path::new("/aside").join(UNDO_FILE)
    }

    fn aside(
        disk: &Arc<dyn FileSystem>,
        images: &[ToMove],
        sources: &[PathBuf],
        folder: &Path,
    ) -> Result<SetAside, SearchError> {
        set_aside(disk, images, sources, folder, &key(), &mut |_| {})
    }

    fn move_all(disk: &Arc<dyn FileSystem>) -> Result<SetAside, SearchError> {
        aside(disk, &pictures(), &["/pictures".into()], Path::new("/aside"))
    }

    fn undo_all(disk: &dyn FileSystem) -> Result<PutBack, SearchError> {
        undo(disk, &record(), Some(&key()), false)
    }

    /// Everything that can happen to a file happens, to the way there and to the way back: no
    /// picture is lost or changed, and the same command again brings all of them back.
    #[test]
    fn no_picture_is_ever_lost() {
        let disks = [(Forgetful::new(), true), (Forgetful::without_rename_new(), false)];
        for (start, renames) in disks {
            fill(&start);
            let there = |disk: Arc<dyn FileSystem>| move_all(&disk).is_ok();
            let all_back = |disk: &Forgetful, what: &str| {
                if disk.exists(&record()) {
                    let mut done = undo_all(disk).unwrap_or_else(|e| panic!("{what}: {e}"));
                    // Without such a rename, an empty file may have a picture's place, and is
                    // named.
                    let left = done.left.iter().map(|(path, _)| path);
                    for path in left.filter(|_| !renames).cloned().collect::<Vec<_>>() {
                        assert_eq!(disk.length(&path).unwrap(), 0, "{what}");
                        disk.remove(&path).unwrap();
                        done = undo_all(disk).unwrap();
                    }
                    assert_eq!(done.left, [], "{what}");
                }
                for (path, _) in PICTURES {
                    let bytes = disk.read(Path::new(path));
                    assert_eq!(bytes.unwrap(), path.as_bytes(), "{what}: {path}");
                }
            };
            let mut faults = attack(&start, there, |disk, _, what| all_back(disk, what));
            assert!(there(start.shared()));
            let back = |disk: Arc<dyn FileSystem>| undo_all(&*disk).is_ok();
            faults += attack(&start, back, |disk, _, what| all_back(disk, what));
            println!("{faults} faults");
            assert!(faults > 150, "{faults}");
        }
    }

    /// An interrupted move goes on in the same record, which is still believed.
    #[test]
    fn an_interrupted_move_goes_on() {
        let start = prepared();
        let there = |disk: Arc<dyn FileSystem>| move_all(&disk).is_ok();
        attack(&start, there, |disk, _, what| {
            move_all(&disk.shared()).unwrap_or_else(|e| panic!("{what}: {e}"));
            let done = undo_all(disk).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(done.left, [], "{what}");
            for (path, _) in PICTURES {
                assert!(disk.exists(Path::new(path)), "{what}: {path}");
            }
        });
    }

    #[test]
    fn names_are_kept_apart_and_nothing_is_overwritten() {
        let disk = prepared();
        let done = move_all(&disk.shared()).unwrap();
        let places: Vec<PathBuf> = done.moved.into_iter().map(|(_, place)| place).collect();
        let expected = ["/aside/a/x.png", "/aside/x.png", "/aside/x (2).png"];
        assert_eq!(places, expected.map(PathBuf::from));
        let again = move_all(&disk.shared()).unwrap();
        assert_eq!((again.moved.len(), again.left.len()), (0, 3));
        AtomicFile::write_on(&disk, Path::new("/pictures/c.png"), b"another").unwrap();
        let done = undo_all(&disk).unwrap();
        assert_eq!((done.moved, done.there, done.left.len()), (2, 0, 1));
        assert!(done.left[0].1.contains("nothing is overwritten"));
        assert_eq!(disk.read(Path::new("/pictures/c.png")).unwrap(), b"another");
        let again = undo_all(&disk).unwrap();
        assert_eq!((again.moved, again.there, again.left.len()), (0, 2, 1));
    }

    #[test]
    fn names_that_lead_out_are_moved_below_the_target() {
        for name in ["/pictures/c.png", "../../c.png", "a/../../c.png"] {
            let disk = prepared();
            let images = [to_move("/pictures/gone.png", "g.png"), to_move("/pictures/c.png", name)];
            let target = Path::new("/aside");
            let done = aside(&disk.shared(), &images, &[], target).unwrap();
            assert_eq!(done.left.len(), 1, "one bad line does not stop the others");
            let place = &done.moved[0].1;
            assert!(place.starts_with(target) && place.file_name() == Path::new(name).file_name());
            assert!(!disk.exists(Path::new("/pictures/c.png")));
            let back = undo_all(&disk).unwrap();
            assert_eq!((back.moved, back.left.len()), (1, 0), "{name}");
            assert!(disk.exists(Path::new("/pictures/c.png")));
        }
    }

    #[test]
    fn a_file_that_changed_since_it_was_compared_stays() {
        let disk = prepared();
        let path = Path::new("/pictures/c.png");
        let mut image = to_move(path, "c.png");
        image.stamp = Some(disk.stamp(path).unwrap());
        AtomicFile::write_on(&disk, path, b"another").unwrap();
        // And one whose kept image is another now, or gone.
        let mut images = vec![image];
        for kept in ["/pictures/c.png", "/pictures/gone.png"] {
            let mut copy = to_move("/pictures/a/x.png", "x.png");
            copy.kept = Some((kept.into(), images[0].stamp.unwrap()));
            images.push(copy);
        }
        let done = aside(&disk.shared(), &images, &[], Path::new("/aside"));
        assert_eq!(done.unwrap().left.len(), 3);
        assert_eq!(disk.read(path).unwrap(), b"another");
        assert!(!disk.exists(Path::new("/aside")));
    }

    /// An older line of the record does not claim an image that was given its name since.
    #[test]
    fn a_name_belongs_to_the_image_that_was_given_it_last() {
        let disk = prepared();
        let (x, y) = (Path::new("/pictures/x.png"), Path::new("/pictures/y.png"));
        let target = Path::new("/aside");
        for path in [x, y] {
            AtomicFile::write_on(&disk, path, name_of(path.as_os_str()).as_bytes()).unwrap();
            aside(&disk.shared(), &[to_move(path, "s.png")], &[], target).unwrap();
            if path == x {
                disk.rename(&target.join("s.png"), Path::new("/pictures/kept.png")).unwrap();
            }
        }
        // Its own place was taken meanwhile, so that it stays; the first is nowhere, and does not
        // get it.
        AtomicFile::write_on(&disk, y, b"another").unwrap();
        let done = undo_all(&disk).unwrap();
        assert_eq!((done.moved, done.left.len()), (0, 2));
        assert!(!disk.exists(x));
    }

    #[test]
    fn records_that_are_none_are_refused() {
        let read = |text: &str, trust| {
            let disk = Forgetful::new();
            AtomicFile::write_on(&disk, Path::new("/undo.jsonl"), text.as_bytes()).unwrap();
            undo(&disk, Path::new("/undo.jsonl"), Some(&key()), trust)
        };
        assert_eq!(read("", false).unwrap(), PutBack::default());
        let cut = r#"{"from":"/a","to":"b"#;
        assert_eq!(read(cut, false).unwrap(), PutBack::default());
        for none in [format!("{cut}\n"), "rm -rf\n".into()] {
            let refused = read(&none, true).unwrap_err();
            assert!(matches!(refused, SearchError::Impossible(_)), "{refused}");
        }
        for out in ["../x", "/etc/passwd", "a/../../b", ""] {
            let text = format!("{{\"from\":\"/a\",\"to\":\"{out}\"}}\n");
            let refused = read(&text, false).unwrap_err();
            assert!(matches!(refused, SearchError::UnconfirmedRecord { .. }));
            assert_eq!(read(&text, true).unwrap().left.len(), 1, "{out}");
        }
    }

    #[cfg(unix)]
    fn real_folder() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        (place, root)
    }

    /// A real folder `pictures` with two pictures, moved to `copies`.
    #[cfg(unix)]
    fn moved_on_disk() -> (tempfile::TempDir, PathBuf) {
        let (place, root) = real_folder();
        std::fs::create_dir(root.join("pictures")).unwrap();
        let images = ["a.png", "b.png"].map(|name| {
            let path = root.join("pictures").join(name);
            std::fs::write(&path, name).unwrap();
            to_move(path, name)
        });
        let sources = [root.join("pictures")];
        let done = aside(&Disk::shared(), &images, &sources, &root.join("copies"));
        assert_eq!(done.unwrap().moved.len(), 2);
        (place, root)
    }

    #[cfg(unix)]
    #[test]
    fn a_forged_record_moves_nothing_and_a_trusted_one_follows_no_link() {
        use std::os::unix::fs::symlink;
        let (_place, root) = real_folder();
        for folder in ["private", "start", "copies"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("private/key"), "secret").unwrap();
        std::fs::write(root.join("copies/program"), "evil").unwrap();
        symlink(root.join("private"), root.join("copies/link")).unwrap();
        symlink(root.join("start"), root.join("copies/out")).unwrap();
        let line = |from: &str, to: &str| {
            let from = root.join(from);
            format!("{{\"from\":\"{}\",\"to\":\"{to}\"}}\n", from.display())
        };
        let forged = line("stolen", "link/key") + &line("copies/out/program", "program");
        let path = root.join("copies/undo.jsonl");
        let nothing = || {
            assert!(root.join("private/key").exists() && root.join("copies/program").exists());
        };
        std::fs::write(&path, &forged).unwrap();
        let refused = undo(&Disk, &path, Some(&key()), false).unwrap_err();
        let SearchError::UnconfirmedRecord { moves, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!(moves.len(), 2);
        nothing();
        let done = undo(&Disk, &path, Some(&key()), true).unwrap();
        assert_eq!((done.moved, done.left.len()), (0, 2));
        nothing();
        // Trusted, and without a link, it does what it says.
        std::fs::write(&path, line("back", "program")).unwrap();
        assert_eq!(undo(&Disk, &path, None, true).unwrap().moved, 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_line_added_to_a_record_is_refused_and_so_is_a_link_put_in_its_folders() {
        use std::os::unix::fs::symlink;
        let (_place, root) = moved_on_disk();
        let path = root.join("copies/undo.jsonl");
        let whole = std::fs::read_to_string(&path).unwrap();
        let added =
            format!("{whole}{{\"from\":\"{}\",\"to\":\"a.png\"}}\n", root.join("x").display());
        std::fs::write(&path, added).unwrap();
        for trust in [false, true] {
            let refused = undo(&Disk, &path, Some(&key()), trust).unwrap_err();
            assert!(matches!(refused, SearchError::Impossible(_)), "{refused}");
        }
        assert!(root.join("copies/a.png").exists());
        std::fs::write(&path, &whole).unwrap();

        // The folder of the pictures leads elsewhere now, and so does a moved picture.
        let elsewhere = root.join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::rename(root.join("copies/a.png"), root.join("a.png")).unwrap();
        symlink(root.join("a.png"), root.join("copies/a.png")).unwrap();
        let done = undo(&Disk, &path, Some(&key()), false).unwrap();
        assert_eq!((done.moved, done.left.len()), (1, 1));
        assert!(root.join("a.png").exists() && root.join("pictures/b.png").exists());

        // The record in another folder than it was written in.
        let copied = root.join("other");
        std::fs::create_dir(&copied).unwrap();
        std::fs::write(copied.join("undo.jsonl"), &whole).unwrap();
        let refused = undo(&Disk, &copied.join("undo.jsonl"), Some(&key()), false).unwrap_err();
        assert!(matches!(refused, SearchError::UnconfirmedRecord { .. }));
    }

    #[cfg(unix)]
    #[test]
    fn a_source_folder_that_moved_behind_a_link_is_still_its_own() {
        let (_place, root) = moved_on_disk();
        std::fs::rename(root.join("pictures"), root.join("new home")).unwrap();
        std::os::unix::fs::symlink("new home", root.join("pictures")).unwrap();
        let done = undo(&Disk, &root.join("copies/undo.jsonl"), Some(&key()), false).unwrap();
        assert_eq!((done.moved, done.left.len()), (2, 0));
        assert!(root.join("new home/a.png").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_target_among_the_images_is_refused_however_it_is_named() {
        use std::os::unix::fs::symlink;
        let (_place, root) = real_folder();
        std::fs::create_dir(root.join("pictures")).unwrap();
        std::fs::write(root.join("pictures/a.png"), "a").unwrap();
        symlink("pictures", root.join("link")).unwrap();
        symlink("pictures/not yet", root.join("dangling")).unwrap();
        let images = [to_move(root.join("pictures/a.png"), "a.png")];
        let sources = [root.join("pictures")];
        let try_to = |folder: &str| aside(&Disk::shared(), &images, &sources, &root.join(folder));
        for inside in
            ["pictures", "link", "link/new/deep", "dangling", "dangling/x", "x/../pictures"]
        {
            let refused = try_to(inside).unwrap_err();
            assert!(refused.is_usage(), "{inside}: {refused}");
            assert_eq!(std::fs::read_dir(root.join("pictures")).unwrap().count(), 1);
        }
        // Of the folder above, a place among the images is not taken.
        let images = [to_move(root.join("pictures/a.png"), "pictures/a.png")];
        let done = aside(&Disk::shared(), &images, &sources, &root);
        assert_eq!(done.unwrap().left.len(), 1);
        assert!(root.join("pictures/a.png").exists());
    }

    /// /dev/shm is another disk on Linux.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_dry_run_names_what_lies_on_another_disk() {
        let (_place, root) = real_folder();
        std::fs::write(root.join("a.png"), "a").unwrap();
        let device = |path: &Path| Disk.stamp(path).ok().map(|stamp| stamp.id.device);
        let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
            return; // a machine without it
        };
        let images = [to_move(root.join("a.png"), "a.png")];
        let target = other.path().join("copies/deep");
        let would = would_set_aside(&Disk::shared(), &images, &[], &target, None).unwrap();
        if device(other.path()) != device(&root) {
            assert_eq!((would.moved.len(), would.left.len()), (0, 1));
            assert_eq!(aside(&Disk::shared(), &images, &[], &target).unwrap(), would);
            assert!(!target.exists());
        }
    }

    /// What a list, or a link to a folder, names lies elsewhere than the list.
    #[cfg(unix)]
    #[test]
    fn a_target_inside_any_of_the_sources_is_refused() {
        let (_place, root) = real_folder();
        for folder in ["photos/sub", "photos2", "list"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../photos2", root.join("photos/link")).unwrap();
        let sources = ["photos/sub", "photos/link", "photos"].map(|folder| root.join(folder));
        let would =
            |to: &str| would_set_aside(&Disk::shared(), &[], &sources, &root.join(to), None);
        for inside in ["photos/copies", "photos2/copies", "photos/sub"] {
            assert!(would(inside).unwrap_err().is_usage(), "{inside}");
        }
        for free in ["photos3", "list/copies", "copies"] {
            would(free).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_what_is_no_file_are_left_and_named() {
        let (_place, root) = real_folder();
        std::os::unix::fs::symlink("x.png", root.join("link.png")).unwrap();
        std::fs::create_dir(root.join("folder.png")).unwrap();
        std::fs::write(root.join("good.png"), "good").unwrap();
        let names = ["link.png", "gone.png", "folder.png", "good.png"];
        let images = names.map(|name| to_move(root.join(name), name));
        let disk = Disk::shared();
        let target = root.join("aside");
        let would = would_set_aside(&disk, &images, &[], &target, None).unwrap();
        assert!(!target.exists() && would.moved.len() == 1 && would.left.len() == 3);
        let done = aside(&disk, &images[..3], &[], &target).unwrap();
        assert_eq!((done.moved.len(), done.left.len()), (0, 3));
        assert!(!target.exists());
        assert_eq!(aside(&disk, &images, &[], &target).unwrap(), would);

        // A record that is a link or a pipe is not written to.
        for other in ["to link", "to pipe"] {
            let target = root.join(other);
            std::fs::create_dir(&target).unwrap();
            let record = target.join(UNDO_FILE);
            std::fs::write(root.join("x.png"), "x").unwrap();
            match other {
                "to link" => std::os::unix::fs::symlink(root.join("x.png"), record).unwrap(),
                _ => {
                    let made = std::process::Command::new("mkfifo").arg(record).status();
                    assert!(made.unwrap().success());
                }
            }
            let images = [to_move(target.join("y.png"), "y.png")];
            std::fs::write(&images[0].path, "y").unwrap();
            assert!(aside(&disk, &images, &[], &target).unwrap_err().is_usage());
            let would = would_set_aside(&disk, &images, &[], &target, Some(&key()));
            assert!(would.unwrap_err().is_usage());
            assert_eq!(std::fs::read(root.join("x.png")).unwrap(), b"x");
        }
    }
}
