//! What has been embedded so far, kept beside the result until that is whole: an interrupted job goes on from it.
//!
//! The file is a line of JSON that says which job this is, then records: length and CRC-32 of the body (4 bytes each, little
//! endian), and the body. A record cut off by a crash or a full disk fails its check; it and what follows are thrown away
//! and computed again.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SearchError;

const FORMAT: &str = "anchorhood-journal-1";
/// No record is longer: a vector, a name and a thumbnail.
const LONGEST: u32 = 1 << 26;

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
            folder: folder.display().to_string(),
            thumbnail,
        }
    }

    /// In which way another job differs.
    fn difference(&self, wanted: &JournalHeader) -> Option<String> {
        let layer = |h: &JournalHeader| h.layer.clone().unwrap_or("the last".into());
        if self.format != wanted.format {
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
    path: PathBuf,
    writer: BufWriter<File>,
    reader: File,
    end: u64,
    known: HashMap<String, Known>,
}

/// Where a picture's latest entry is.
#[derive(Clone, Copy, Debug)]
struct Known {
    stamp: u64,
    at: u64,
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
        let io = |e| SearchError::io(path)(e);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        // A file system without locks is no reason to refuse.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let busy = "another program is at this job; wait for it, or choose another name";
            return Err(io(std::io::Error::other(busy)));
        }
        let length = file.metadata().map_err(io)?.len();
        let mut known = HashMap::new();
        let end = match read_all(&mut file, wanted, &mut known).map_err(io)? {
            Found::Job(end) => end,
            Found::Nothing => {
                file.set_len(0).map_err(io)?;
                file.seek(SeekFrom::Start(0)).map_err(io)?;
                let mut line = serde_json::to_vec(wanted).expect("plain values become JSON");
                line.push(b'\n');
                file.write_all(&line).map_err(io)?;
                line.len() as u64
            }
            Found::Other(what) => {
                let path = path.into();
                return Err(SearchError::OtherJob { path, what });
            }
        };
        file.set_len(end).map_err(io)?;
        file.seek(SeekFrom::Start(end)).map_err(io)?;
        let recovered = Recovered {
            pictures: known.len(),
            lost_bytes: length.saturating_sub(end),
        };
        let journal = Journal {
            path: path.into(),
            reader: File::open(path).map_err(io)?,
            writer: BufWriter::with_capacity(1 << 18, file),
            end,
            known,
        };
        Ok((journal, recovered))
    }

    /// Keeps an entry.
    pub fn append(&mut self, entry: &Entry) -> Result<(), SearchError> {
        let body = encode(entry);
        let mut head = (body.len() as u32).to_le_bytes().to_vec();
        head.extend(crc32fast::hash(&body).to_le_bytes());
        let written = (self.writer.write_all(&head)).and_then(|()| self.writer.write_all(&body));
        written.map_err(SearchError::io(&self.path))?;
        let known = Known::of(entry, self.end);
        self.known.insert(entry.name.clone(), known);
        self.end += (head.len() + body.len()) as u64;
        Ok(())
    }

    /// Hands everything to the system, so that a crash of the program loses nothing of it.
    pub fn flush(&mut self) -> Result<(), SearchError> {
        self.writer.flush().map_err(SearchError::io(&self.path))
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
        let mut read = || {
            self.reader.seek(SeekFrom::Start(at))?;
            read_record(&mut self.reader)
        };
        let body = read().map_err(SearchError::io(&self.path))?;
        let entry = body.and_then(|body| decode(&body));
        let gone = || SearchError::Io {
            path: self.path.clone(),
            source: std::io::Error::other("the journal was changed while it was in use"),
        };
        entry.map(Some).ok_or_else(gone)
    }

    /// Removes the file: the result is whole.
    pub fn remove(self) -> Result<(), SearchError> {
        let path = self.path.clone();
        drop(self);
        fs::remove_file(&path).map_err(SearchError::io(&path))
    }
}

enum Found {
    /// This job, up to this byte.
    Job(u64),
    /// An empty file, or one cut off in its first line.
    Nothing,
    /// Another job: in which way.
    Other(String),
}

fn read_all(
    file: &mut File,
    wanted: &JournalHeader,
    known: &mut HashMap<String, Known>,
) -> std::io::Result<Found> {
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut line = vec![];
    reader.by_ref().take(1 << 16).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Ok(Found::Nothing);
    }
    let Ok(header) = serde_json::from_slice::<JournalHeader>(&line) else {
        return Ok(Found::Other("it is not one of this program".into()));
    };
    if let Some(what) = header.difference(wanted) {
        return Ok(Found::Other(what));
    }
    let mut at = line.len() as u64;
    while let Some(body) = read_record(&mut reader)? {
        let Some(entry) = decode(&body).filter(|e| e.has_dim(wanted.dim)) else {
            break;
        };
        known.insert(entry.name.clone(), Known::of(&entry, at));
        at += 8 + body.len() as u64;
    }
    Ok(Found::Job(at))
}

/// A record's body; nothing where the file ends or the check fails.
fn read_record(reader: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = [0; 8];
    if !filled(reader.read_exact(&mut head))? {
        return Ok(None);
    }
    let (words, _) = head.as_chunks::<4>();
    let (length, sum) = (u32::from_le_bytes(words[0]), u32::from_le_bytes(words[1]));
    if length > LONGEST {
        return Ok(None);
    }
    let mut body = vec![0; length as usize];
    let whole = filled(reader.read_exact(&mut body))?;
    Ok((whole && crc32fast::hash(&body) == sum).then_some(body))
}

fn filled(read: std::io::Result<()>) -> std::io::Result<bool> {
    match read {
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| true),
    }
}

impl Known {
    fn of(entry: &Entry, at: u64) -> Self {
        Known {
            stamp: entry.stamp,
            at,
            good: entry.vector.is_ok(),
        }
    }
}

impl Entry {
    fn has_dim(&self, dim: usize) -> bool {
        self.vector.as_ref().map_or(true, |v| v.len() == dim)
    }
}

/// Stamp, then pieces with their lengths: name, vector, reason, thumbnail, height and width (of which 0.1 knows nothing).
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
    let sides = piece().unwrap_or_default();
    let height_and_width = match sides.as_chunks::<4>() {
        ([height, width], []) => [*height, *width].map(u32::from_le_bytes),
        _ => [0; 2],
    };
    Some(Entry {
        height_and_width,
        name,
        stamp: u64::from_le_bytes(stamp.try_into().ok()?),
        vector: match values.is_empty() {
            true => Err(reason),
            false => Ok(values),
        },
        thumbnail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> JournalHeader {
        JournalHeader::new("m", None, 2, Path::new("pictures"), None)
    }

    fn entry(name: &str, value: f32) -> Entry {
        Entry {
            name: name.into(),
            stamp: 5,
            height_and_width: [480, 640],
            vector: Ok(vec![value, -value]),
            thumbnail: vec![1, 2, 3],
        }
    }

    fn filled() -> (tempfile::TempDir, PathBuf, Vec<Entry>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let mut entries = vec![entry("a", 1.0), entry("ü b", 2.0)];
        entries.push(Entry {
            vector: Err("it is no picture".into()),
            ..entry("c", 0.0)
        });
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
            assert_eq!(
                (again.pictures, again.lost_bytes),
                (recovered.pictures + 1, 0)
            );
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
    fn another_job_is_refused_and_kept() {
        let (_folder, path, _) = filled();
        let before = fs::read(&path).unwrap();
        let other = JournalHeader {
            model: "n".into(),
            ..header()
        };
        let error = Journal::open(&path, &other).unwrap_err();
        assert!(
            matches!(&error, SearchError::OtherJob { what, .. } if what.contains("another model")),
            "{error}"
        );
        let other = JournalHeader {
            folder: "else".into(),
            ..header()
        };
        let error = Journal::open(&path, &other).unwrap_err().to_string();
        assert!(error.contains("another folder"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
