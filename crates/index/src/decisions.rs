//! What a user decided about images: that two of them are no duplicates, although they look like
//! it.
//!
//! Decisions lie in a file of lines of JSON in the user's data folder, never in a cache. An image
//! is meant by the folder that it lies in, at any depth, and the bytes of its file: a decision
//! survives another model, another name and another index. Each line has a checksum, and is there
//! whole or not at all; a line taken out by hand is a decision taken back.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anchorhood_data::{name_of, picture_named};
use anchorhood_storage::{
    AppendFile, Disk, FileSystem, checksum, data_folder, folder_of, read_at_most_on, resolve_on,
};
use serde::{Deserialize, Serialize};

use crate::SearchError;
use crate::checked_lines::{split_check, to_json, whole_lines, with_check};

const FORMAT: &str = "{\"format\":\"anchorhood-decisions\",\"version\":1}";
/// Some hundred thousand decisions.
const MOST_BYTES: u64 = 1 << 28;
/// How long another process may write before it is thought to hang.
const PATIENCE: Duration = Duration::from_secs(10);

/// An image as a decision means it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecidedImage {
    /// The folder that it lies in, at any depth; without links.
    pub folder: PathBuf,
    /// The checksum of its file, as an index keeps it.
    pub content: u64,
}

/// The decisions of a user.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// Of each pair of contents, the lower first, the pairs of folders.
    not_duplicates: HashMap<[u64; 2], Vec<[PathBuf; 2]>>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    not_duplicates: [Image; 2],
}

#[derive(Serialize, Deserialize)]
struct Image {
    folder: String,
    content: String,
}

impl Decisions {
    /// The file in the user's data folder; none where there is no such folder. It need not be
    /// there.
    pub fn file_of_user() -> Option<PathBuf> {
        Some(data_folder()?.join("decisions.jsonl"))
    }

    /// Reads the file in the user's data folder; where there is no such folder, none was made.
    pub fn of_user() -> Result<Decisions, SearchError> {
        Decisions::file_of_user()
            .map_or(Ok(Decisions::default()), |path| Decisions::load(&Disk, &path))
    }

    /// Reads a file of decisions; where there is none, none was made.
    pub fn load(disk: &dyn FileSystem, path: &Path) -> Result<Decisions, SearchError> {
        match read_at_most_on(disk, path, MOST_BYTES) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Decisions::default()),
            Err(e) => Err(SearchError::io(path)(e)),
            Ok(bytes) => Ok(read(path, &bytes)?.0),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.not_duplicates.is_empty()
    }

    /// Whether it was said of two images that they are no duplicates; each is given by its place,
    /// without links, and its content.
    pub fn separates(&self, a: (&Path, u64), b: (&Path, u64)) -> bool {
        let [a, b] = if a.1 <= b.1 { [a, b] } else { [b, a] };
        let Some(folders) = self.not_duplicates.get(&[a.1, b.1]) else {
            return false;
        };
        let inside = |[first, second]: &[PathBuf; 2]| {
            let straight = a.0.starts_with(first) && b.0.starts_with(second);
            let crossed = a.0.starts_with(second) && b.0.starts_with(first);
            straight || (a.1 == b.1 && crossed)
        };
        folders.iter().any(inside)
    }

    /// Whether some decision is about images of these contents.
    pub(crate) fn knows(&self, a: u64, b: u64) -> bool {
        self.not_duplicates.contains_key(&[a.min(b), a.max(b)])
    }

    fn add(&mut self, mut pair: [DecidedImage; 2]) -> bool {
        pair.sort_unstable_by_key(|image| image.content);
        let contents = [pair[0].content, pair[1].content];
        let folders = pair.map(|image| image.folder);
        let known = self.not_duplicates.entry(contents).or_default();
        let new = !known.contains(&folders);
        if new {
            known.push(folders);
        }
        new
    }
}

/// Adds the decision that two images are no duplicates to a file, made where there is none. False
/// where it is there already. The file is locked meanwhile, so that no process loses another's
/// decision.
pub fn decide_not_duplicates(
    disk: &Arc<dyn FileSystem>,
    path: &Path,
    pair: [DecidedImage; 2],
) -> Result<bool, SearchError> {
    let failed = |e| SearchError::io(path)(e);
    // A user may keep the file elsewhere, behind a link.
    let path = &resolve_on(&**disk, path).map_err(failed)?;
    let failed = |e| SearchError::io(path)(e);
    let folder = folder_of(path);
    disk.create_folders(folder).map_err(SearchError::io(folder))?;
    let mut file = AppendFile::open(disk.clone(), path).map_err(failed)?;
    let begun = Instant::now();
    while !file.hold().map_err(failed)? {
        if begun.elapsed() > PATIENCE {
            return Err(SearchError::refused(
                path,
                "another process has held this file for 10 seconds",
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let bytes = read_at_most_on(&**disk, path, MOST_BYTES).map_err(failed)?;
    let (mut decisions, whole) = read(path, &bytes)?;
    if !decisions.add(pair.clone()) {
        return Ok(false);
    }
    file.truncate(whole as u64).map_err(failed)?;
    let mut text = String::new();
    if whole == 0 {
        text = format!("{FORMAT}\n");
    }
    text += &line(&pair);
    let written = file.append(text.as_bytes()).and_then(|()| file.sync());
    written.map_err(failed)?;
    Ok(true)
}

fn line(pair: &[DecidedImage; 2]) -> String {
    let image = |image: &DecidedImage| Image {
        folder: name_of(image.folder.as_os_str()),
        content: format!("{:016x}", image.content),
    };
    let text = to_json(&Line { not_duplicates: [image(&pair[0]), image(&pair[1])] });
    with_check(&text, &check(&text))
}

fn check(text: &str) -> String {
    format!("{:032x}", checksum(text.as_bytes()))
}

/// The decisions of a file, and the bytes of its whole lines: the last may have no end, and was
/// never made then.
fn read(path: &Path, bytes: &[u8]) -> Result<(Decisions, usize), SearchError> {
    let whole = whole_lines(bytes);
    let text =
        str::from_utf8(whole).map_err(|_| SearchError::refused(path, "is no text in UTF-8"))?;
    let mut lines = (1..).zip(text.lines());
    let mut decisions = Decisions::default();
    match lines.next() {
        // A power cut may leave a piece of the first line, or zeros.
        None if FORMAT.as_bytes().starts_with(bytes) || zeros(bytes) => {
            return Ok((decisions, 0));
        }
        Some((_, FORMAT)) => {}
        None | Some(_) => {
            let why = "is no file of decisions, or its first line was damaged; name another";
            return Err(SearchError::refused(path, why));
        }
    }
    for (number, line) in lines {
        let damaged = || {
            let why =
                format!("line {number} was damaged; without it the other decisions are whole");
            SearchError::refused(path, why)
        };
        decisions.add(parse(line).ok_or_else(damaged)?);
    }
    Ok((decisions, whole.len()))
}

fn zeros(bytes: &[u8]) -> bool {
    bytes.len() < 1 << 14 && bytes.iter().all(|b| *b == 0)
}

fn parse(line: &str) -> Option<[DecidedImage; 2]> {
    let (text, sum) = split_check(line)?;
    if sum != check(&text) {
        return None;
    }
    let line: Line = serde_json::from_str(&text).ok()?;
    let image = |image: Image| {
        Some(DecidedImage {
            folder: picture_named(Path::new(""), &image.folder),
            content: u64::from_str_radix(&image.content, 16).ok()?,
        })
    };
    let [a, b] = line.not_duplicates;
    Some([image(a)?, image(b)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::{AtomicFile, Forgetful, attack};

    fn pair(n: u64) -> [DecidedImage; 2] {
        [n + 1000, n].map(|content| DecidedImage { folder: "/photos".into(), content })
    }

    const PLACE: &str = "/data/decisions.jsonl";

    fn decide(disk: &Forgetful, n: u64) -> Result<bool, SearchError> {
        decide_not_duplicates(&disk.shared(), Path::new(PLACE), pair(n))
    }

    fn knows(decisions: &Decisions, n: u64) -> bool {
        let path = Path::new("/photos/sub/a.png");
        let [a, b] = [(path, n), (path, n + 1000)];
        assert_eq!(decisions.separates(a, b), decisions.separates(b, a));
        decisions.separates(a, b)
    }

    #[test]
    fn a_decision_holds_in_its_folder_alone() {
        let disk = Forgetful::new();
        assert!(decide(&disk, 1).unwrap() && !decide(&disk, 1).unwrap());
        let decisions = Decisions::load(&disk, Path::new(PLACE)).unwrap();
        assert!(knows(&decisions, 1) && !knows(&decisions, 2));
        let (inside, outside) = (Path::new("/photos/a.png"), Path::new("/photos2/a.png"));
        assert!(!decisions.separates((inside, 1), (outside, 1001)));
    }

    /// Whatever happens to the file, decisions made before are there, and one that was promised is,
    /// too.
    #[test]
    fn no_decision_is_ever_lost() {
        let start = Forgetful::new();
        let place = Path::new(PLACE);
        decide(&start, 1).unwrap();
        for start in [Forgetful::new(), start] {
            let before = start.exists(place);
            let work =
                |disk: Arc<dyn FileSystem>| decide_not_duplicates(&disk, place, pair(2)).is_ok();
            let faults = attack(&start, work, |disk, done, what| {
                let decisions = Decisions::load(disk, place);
                let decisions = decisions.unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(!before || knows(&decisions, 1), "{what}");
                assert!(!done || knows(&decisions, 2), "{what}");
                assert!(decide(disk, 3).unwrap(), "{what}");
                assert!(knows(&Decisions::load(disk, place).unwrap(), 3), "{what}");
            });
            assert!(faults > 15, "{faults}");
        }
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/decisions.jsonl");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for n in 0..10 {
                        let pair = pair(thread * 10 + n);
                        decide_not_duplicates(&Disk::shared(), path, pair).unwrap();
                    }
                });
            }
        });
        let decisions = Decisions::load(&Disk, &path).unwrap();
        assert!((0..40).all(|n| knows(&decisions, n)));
    }

    #[test]
    fn every_damaged_bit_is_noticed_and_other_files_are_left_alone() {
        let disk = Forgetful::new();
        let place = Path::new(PLACE);
        (0..2).for_each(|n| assert!(decide(&disk, n).unwrap()));
        let whole = disk.read(place).unwrap();
        for at in 0..whole.len() - 1 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            AtomicFile::write_on(&disk, place, &bytes).unwrap();
            let error = Decisions::load(&disk, place).unwrap_err();
            assert!(matches!(error, SearchError::Impossible(_)), "byte {at}");
        }
        for other in ["a text\n", "no line"] {
            AtomicFile::write_on(&disk, place, other.as_bytes()).unwrap();
            decide(&disk, 7).unwrap_err();
            assert_eq!(disk.read(place).unwrap(), other.as_bytes());
        }
    }
}
