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
    let mut append = |line: String| {
        let written = file.append(line.as_bytes()).and_then(|()| file.sync());
        written.map_err(SearchError::io(&path))
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
mod tests;
