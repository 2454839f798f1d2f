//! What has been embedded so far, kept beside the result until that is whole: an interrupted job
//! goes on from it.
//!
//! The file is a line of JSON that says which job this is, then records: length and CRC-32 of the
//! body (4 bytes each, little endian), and the body. A record cut off by a crash or a full disk
//! fails its check; it and what follows are thrown away and computed again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anchorhood_data::{PREPROCESSING, name_of};
use anchorhood_storage::{AppendFile, Bytes, Disk, FileSystem};
use serde::{Deserialize, Serialize};

use crate::SearchError;
use crate::checked_lines::to_json;

const FORMAT: &str = "anchorhood-journal-1";
/// No record is longer: a vector, a name and a thumbnail.
const LONGEST: usize = 1 << 26;
/// The first line is no longer.
const LONGEST_LINE: usize = 1 << 16;
/// Bytes that wait to be written together.
const TOGETHER: usize = 1 << 18;

/// Which job a journal is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    format: String,
    /// The model's fingerprint.
    pub model: String,
    /// The layer, where it is not the last.
    pub layer: Option<String>,
    /// Length of a vector.
    pub dim: usize,
    /// The folder of pictures.
    pub folder: String,
    /// Pixels a side of thumbnails, where there are some.
    pub thumbnail: Option<usize>,
    /// By which preprocessing images are decoded and resized; none in a journal of before it was
    /// kept.
    #[serde(default)]
    preprocessing: u32,
}

impl JournalHeader {
    /// A job.
    pub fn new(
        model: &str,
        layer: Option<&str>,
        dim: usize,
        folder: &Path,
        thumbnail: Option<usize>,
    ) -> Self {
        JournalHeader {
            format: FORMAT.into(),
            model: model.into(),
            layer: layer.map(str::to_owned),
            dim,
            folder: name_of(folder.as_os_str()),
            thumbnail,
            preprocessing: PREPROCESSING,
        }
    }

    /// In which way another job differs.
    fn difference(&self, wanted: &JournalHeader) -> Option<String> {
        let layer = |h: &JournalHeader| h.layer.clone().unwrap_or("the last".into());
        if (&self.format, self.preprocessing) != (&wanted.format, wanted.preprocessing) {
            return Some("it is of another version of the program".into());
        }
        if self.model != wanted.model {
            return Some("with another model".into());
        }
        if self.folder != wanted.folder {
            return Some(format!("of another folder ({})", self.folder));
        }
        if self.layer != wanted.layer {
            return Some(format!("of layer {}, not {}", layer(self), layer(wanted)));
        }
        (self != wanted).then(|| "with other thumbnails or vectors of another length".into())
    }
}

/// What became of one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The picture, relative to the folder.
    pub name: String,
    /// Changes whenever the file does.
    pub stamp: u64,
    /// A checksum of the file's bytes; 0 where unknown.
    pub content_sum: u64,
    /// Its height and width, the right way up; zeros where unknown.
    pub height_and_width: [u32; 2],
    /// Its vector, or why there is none.
    pub vector: Result<Vec<f32>, String>,
    /// A small JPEG of it; empty where none was asked for.
    pub thumbnail: Vec<u8>,
}

/// What was found in a journal that was there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Pictures done.
    pub pictures: usize,
    /// Bytes at its end that were no whole record, and are thrown away.
    pub lost_bytes: u64,
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: AppendFile,
    /// Records on their way into the file.
    waiting: Vec<u8>,
    /// The file, since something was last read from it.
    bytes: Option<Bytes>,
    known: HashMap<String, Known>,
}

/// Where a picture's latest entry is.
#[derive(Clone, Copy, Debug)]
struct Known {
    stamp: u64,
    at: usize,
    good: bool,
}

impl Journal {
    /// Where the journal of a result lies.
    pub fn place(result: &Path) -> PathBuf {
        let name = result.file_name().unwrap_or_default().to_string_lossy();
        result.with_file_name(format!(".{name}.journal"))
    }

    /// Opens the journal at `path`, or begins one. One of another job is an error.
    pub fn open(path: &Path, wanted: &JournalHeader) -> Result<(Journal, Recovered), SearchError> {
        Journal::open_on(Disk::shared(), path, wanted)
    }

    /// The same on any disk.
    pub fn open_on(
        disk: Arc<dyn FileSystem>,
        path: &Path,
        wanted: &JournalHeader,
    ) -> Result<(Journal, Recovered), SearchError> {
        let io = |e| SearchError::io(path)(e);
        let mut file = AppendFile::open(disk, path).map_err(io)?;
        if !file.hold().map_err(io)? {
            let busy = "another program is at this job; wait for it, or choose another name";
            return Err(io(std::io::Error::other(busy)));
        }
        let length = file.length();
        let mut known = HashMap::new();
        let found = find(&file.map().map_err(io)?, wanted, &mut known);
        match found {
            Found::Job(end) => file.truncate(end as u64).map_err(io)?,
            Found::Nothing => begin(&mut file, wanted).map_err(io)?,
            Found::Other(what) => {
                let path = path.into();
                return Err(SearchError::OtherJob { path, what });
            }
        }
        let recovered =
            Recovered { pictures: known.len(), lost_bytes: length.saturating_sub(file.length()) };
        let journal = Journal { file, waiting: vec![], bytes: None, known };
        Ok((journal, recovered))
    }

    /// Keeps an entry.
    pub fn append(&mut self, entry: &Entry) -> Result<(), SearchError> {
        let at = self.file.length() as usize + self.waiting.len();
        let body = encode(entry);
        self.waiting.extend((body.len() as u32).to_le_bytes());
        self.waiting.extend(crc32fast::hash(&body).to_le_bytes());
        self.waiting.extend(body);
        self.known.insert(entry.name.clone(), Known::of(entry, at));
        if self.waiting.len() < TOGETHER { Ok(()) } else { self.flush() }
    }

    /// Hands everything to the system, so that a crash of the program loses nothing of it.
    pub fn flush(&mut self) -> Result<(), SearchError> {
        self.bytes = None;
        let written = self.file.append(&self.waiting);
        written.map_err(SearchError::io(self.file.path()))?;
        self.waiting.clear();
        Ok(())
    }

    /// Whether a picture with this stamp is done.
    pub fn has(&self, name: &str, stamp: u64) -> bool {
        self.known.get(name).is_some_and(|k| k.stamp == stamp)
    }

    /// Whether a picture has a vector.
    pub fn has_vector(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|k| k.good)
    }

    /// The latest entry of a picture. Flush first.
    pub fn read(&mut self, name: &str) -> Result<Option<Entry>, SearchError> {
        let Some(Known { at, .. }) = self.known.get(name).copied() else {
            return Ok(None);
        };
        let io = |e| SearchError::io(self.file.path())(e);
        let bytes = match self.bytes.take() {
            Some(bytes) => bytes,
            None => self.file.map().map_err(io)?,
        };
        let body = bytes.get(at..).and_then(record);
        let entry = body.and_then(decode);
        self.bytes = Some(bytes);
        let gone = || std::io::Error::other("the journal was changed while it was in use");
        entry.map(Some).ok_or_else(|| io(gone()))
    }

    /// Removes the file: the result is whole.
    pub fn remove(self) -> Result<(), SearchError> {
        let path = self.file.path().to_owned();
        drop(self.bytes);
        self.file.remove().map_err(SearchError::io(&path))
    }
}

/// A first line that survives a power cut: one that was lost would make this the journal of another
/// job.
fn begin(file: &mut AppendFile, wanted: &JournalHeader) -> std::io::Result<()> {
    file.truncate(0)?;
    file.append(format!("{}\n", to_json(wanted)).as_bytes())?;
    file.sync()
}

enum Found {
    /// This job, up to this byte.
    Job(usize),
    /// An empty file, or one that an interruption cut off in its first line.
    Nothing,
    /// Another job: in which way.
    Other(String),
}

fn find(bytes: &[u8], wanted: &JournalHeader, known: &mut HashMap<String, Known>) -> Found {
    let first = &bytes[..bytes.len().min(LONGEST_LINE)];
    let Some(end) = first.iter().position(|b| *b == b'\n') else {
        return match cut_off_header(first) {
            true => Found::Nothing,
            false => Found::Other("it is not one of this program".into()),
        };
    };
    let Ok(header) = serde_json::from_slice::<JournalHeader>(&bytes[..end]) else {
        return Found::Other("it is not one of this program".into());
    };
    if let Some(what) = header.difference(wanted) {
        return Found::Other(what);
    }
    let mut at = end + 1;
    while let Some(body) = record(&bytes[at..]) {
        let Some(entry) =
            decode(body).filter(|e| e.vector.as_ref().map_or(true, |v| v.len() == wanted.dim))
        else {
            break;
        };
        known.insert(entry.name.clone(), Known::of(&entry, at));
        at += 8 + body.len();
    }
    Found::Job(at)
}

/// Whether bytes without a line's end are what an interruption leaves of a header: its beginning,
/// or zeros. Anything else is somebody's file.
fn cut_off_header(bytes: &[u8]) -> bool {
    let begin = format!("{{\"format\":\"{FORMAT}\",");
    let length = begin.len().min(bytes.len());
    let ours = bytes[..length] == begin.as_bytes()[..length];
    bytes.len() < LONGEST_LINE && (ours || bytes.iter().all(|b| *b == 0))
}

/// The body of the first record; nothing where the bytes end or the check fails.
fn record(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_at_checked(8)?;
    let (words, _) = head.as_chunks::<4>();
    let (length, sum) = (u32::from_le_bytes(words[0]), u32::from_le_bytes(words[1]));
    let length = Some(length as usize).filter(|length| *length <= LONGEST)?;
    let body = rest.get(..length)?;
    (crc32fast::hash(body) == sum).then_some(body)
}

impl Known {
    fn of(entry: &Entry, at: usize) -> Self {
        Known { stamp: entry.stamp, at, good: entry.vector.is_ok() }
    }
}

/// Stamp, then pieces with their lengths: name, vector, reason, thumbnail, height and width,
/// checksum of the file.
fn encode(entry: &Entry) -> Vec<u8> {
    let mut body = entry.stamp.to_le_bytes().to_vec();
    let mut piece = |bytes: &[u8]| {
        body.extend((bytes.len() as u32).to_le_bytes());
        body.extend(bytes);
    };
    piece(entry.name.as_bytes());
    let (vector, reason) = match &entry.vector {
        Ok(vector) => (&vector[..], ""),
        Err(reason) => (&[][..], reason.as_str()),
    };
    let values: Vec<u8> = vector.iter().flat_map(|v| v.to_le_bytes()).collect();
    piece(&values);
    piece(reason.as_bytes());
    piece(&entry.thumbnail);
    let sides = entry.height_and_width.map(u32::to_le_bytes);
    piece(sides.as_flattened());
    piece(&entry.content_sum.to_le_bytes());
    body
}

fn decode(body: &[u8]) -> Option<Entry> {
    let (stamp, mut rest) = body.split_at_checked(8)?;
    let mut piece = || {
        let (length, after) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (bytes, after) = after.split_at_checked(length)?;
        rest = after;
        Some(bytes)
    };
    let name = String::from_utf8(piece()?.to_vec()).ok()?;
    let (values, _) = piece()?.as_chunks::<4>();
    let values: Vec<f32> = values.iter().map(|v| f32::from_le_bytes(*v)).collect();
    let reason = String::from_utf8(piece()?.to_vec()).ok()?;
    let thumbnail = piece()?.to_vec();
    let ([height, width], []) = piece()?.as_chunks::<4>() else {
        return None;
    };
    Some(Entry {
        content_sum: u64::from_le_bytes(piece()?.try_into().ok()?),
        height_and_width: [*height, *width].map(u32::from_le_bytes),
        name,
        stamp: u64::from_le_bytes(stamp.try_into().ok()?),
        vector: if values.is_empty() { Err(reason) } else { Ok(values) },
        thumbnail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn header() -> JournalHeader {
        JournalHeader::new("m", None, 2, Path::new("pictures"), None)
    }

    fn entry(name: &str, value: f32) -> Entry {
        Entry {
            name: name.into(),
            stamp: 5,
            content_sum: 1 << 63,
            height_and_width: [480, 640],
            vector: Ok(vec![value, -value]),
            thumbnail: vec![1, 2, 3],
        }
    }

    fn filled() -> (tempfile::TempDir, PathBuf, Vec<Entry>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let mut entries = vec![entry("a", 1.0), entry("ü b", 2.0)];
        entries.push(Entry { vector: Err("it is no picture".into()), ..entry("c", 0.0) });
        let (mut journal, recovered) = Journal::open(&path, &header()).unwrap();
        assert_eq!(recovered, Recovered::default());
        for e in &entries {
            journal.append(e).unwrap();
        }
        journal.flush().unwrap();
        (folder, path, entries)
    }

    #[test]
    fn what_was_kept_is_found_again() {
        let (_folder, path, entries) = filled();
        let (mut journal, recovered) = Journal::open(&path, &header()).unwrap();
        assert_eq!((recovered.pictures, recovered.lost_bytes), (3, 0));
        for e in &entries {
            assert_eq!(journal.read(&e.name).unwrap().as_ref(), Some(e));
        }
        assert!(journal.has("a", 5) && !journal.has("a", 6) && !journal.has("d", 5));
        assert!(journal.has_vector("a") && !journal.has_vector("c") && !journal.has_vector("d"));
        assert_eq!(journal.read("d").unwrap(), None);
    }

    #[test]
    fn cut_anywhere_the_whole_records_before_are_kept_and_it_goes_on() {
        let (_folder, path, entries) = filled();
        let whole = fs::read(&path).unwrap();
        let mut seen = [false; 4];
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let (mut journal, recovered) = Journal::open(&path, &header()).unwrap();
            seen[recovered.pictures] = true;
            for e in &entries[..recovered.pictures] {
                assert_eq!(journal.read(&e.name).unwrap().as_ref(), Some(e));
            }
            journal.append(&entry("new", 7.0)).unwrap();
            journal.flush().unwrap();
            drop(journal);
            let (_, again) = Journal::open(&path, &header()).unwrap();
            assert_eq!((again.pictures, again.lost_bytes), (recovered.pictures + 1, 0));
        }
        assert_eq!(seen, [true, true, true, false]);
    }

    #[test]
    fn two_at_one_job_do_not_mix() {
        let (_folder, path, entries) = filled();
        let (mut first, _) = Journal::open(&path, &header()).unwrap();
        let second = Journal::open(&path, &header()).unwrap_err().to_string();
        assert!(second.contains("another program"), "{second}");
        assert_eq!(first.read("a").unwrap().as_ref(), Some(&entries[0]));
        drop(first);
        assert!(Journal::open(&path, &header()).is_ok());
    }

    #[test]
    fn a_flipped_bit_ends_it_there() {
        let (_folder, path, _) = filled();
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        let (_, recovered) = Journal::open(&path, &header()).unwrap();
        assert_eq!(recovered.pictures, 2);
        assert!(recovered.lost_bytes > 0);
    }

    #[test]
    fn a_file_of_somebody_else_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let mut long = format!("{{\"format\":\"{FORMAT}\",").into_bytes();
        long.resize(LONGEST_LINE, b' ');
        for other in [b"a key without a line's end".to_vec(), b"{\"form:".to_vec(), long] {
            fs::write(&path, &other).unwrap();
            let error = Journal::open(&path, &header()).unwrap_err();
            assert!(matches!(error, SearchError::OtherJob { .. }), "{error}");
            assert_eq!(fs::read(&path).unwrap(), other);
        }
        fs::write(&path, [0; 100]).unwrap();
        assert!(Journal::open(&path, &header()).is_ok(), "a power cut may leave zeros");
    }

    #[test]
    fn another_job_is_refused_and_kept() {
        let (_folder, path, _) = filled();
        let before = fs::read(&path).unwrap();
        let other = JournalHeader { model: "n".into(), ..header() };
        let error = Journal::open(&path, &other).unwrap_err();
        assert!(
            matches!(&error, SearchError::OtherJob { what, .. } if what.contains("another model")),
            "{error}"
        );
        let other = JournalHeader { folder: "else".into(), ..header() };
        let error = Journal::open(&path, &other).unwrap_err().to_string();
        assert!(error.contains("another folder"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
