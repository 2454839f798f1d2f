//! The record of moved images, `undo.jsonl`: who wrote it, which folders it is about, and where
//! each image went.
//!
//! Each line ends with an HMAC-SHA256 of itself and of the line before, by a key that only the user
//! may read. So a record that somebody else wrote, or a line that was changed, added, exchanged or
//! taken out of the middle, is not [believed](Record::read).

use std::io;
use std::path::{Path, PathBuf};

use anchorhood_data::{name_of, picture_named};
use anchorhood_storage::{data_folder, private_file, read_at_most};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::SearchError;
use crate::checked_lines::{split_check, to_json, whole_lines, with_check};

const FORMAT: &str = "anchorhood-undo";
const VERSION: u32 = 2;
const KEY_BYTES: usize = 32;

/// The user's key: a record that it confirms was written by this user's program.
#[derive(Clone, Debug)]
pub struct RecordKey {
    id: String,
    key: hmac::Key,
}

impl RecordKey {
    /// A key from secret bytes.
    pub fn new(secret: &[u8]) -> RecordKey {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let mut id = hex(hmac::sign(&key, b"id").as_ref());
        id.truncate(16);
        RecordKey { id, key }
    }

    /// The key in the user's data folder; made there where there is none.
    pub fn of_user() -> Result<RecordKey, SearchError> {
        let path = key_path()?;
        let make = || {
            let mut secret = vec![0; KEY_BYTES];
            let drawn = SystemRandom::new().fill(&mut secret);
            drawn.map_err(|_| io::Error::other("the system gives no random numbers"))?;
            Ok(secret)
        };
        let secret = private_file(&path, &make).map_err(SearchError::io(&path))?;
        RecordKey::checked(&path, &secret)
    }

    /// The key in the user's data folder, where there are both.
    pub fn of_user_if_there() -> Result<Option<RecordKey>, SearchError> {
        let Ok(path) = key_path() else {
            return Ok(None);
        };
        match read_at_most(&path, 1 << 10) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(SearchError::io(&path)(e)),
            Ok(secret) => RecordKey::checked(&path, &secret).map(Some),
        }
    }

    fn checked(path: &Path, secret: &[u8]) -> Result<RecordKey, SearchError> {
        match secret.len() == KEY_BYTES {
            true => Ok(RecordKey::new(secret)),
            false => {
                let why = format!(
                    "this key of the records of moved images has {} bytes instead of {KEY_BYTES}; \
                     remove it, and a new one is made: records of before are then to be trusted by \
                     hand",
                    secret.len()
                );
                Err(SearchError::refused(path, why))
            }
        }
    }

    /// The check of a line that follows a line with the check `before`.
    fn check(&self, before: &str, payload: &str) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(before.as_bytes());
        context.update(b"\n");
        context.update(payload.as_bytes());
        hex(context.sign().as_ref())
    }
}

fn key_path() -> Result<PathBuf, SearchError> {
    let none = || {
        SearchError::Impossible(
            "there is no folder for the key of records: neither XDG_DATA_HOME nor HOME is set"
                .into(),
        )
    };
    Ok(data_folder().ok_or_else(none)?.join("undo.key"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folders of a move: the first line of a record, and of each later move to the same folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    key: String,
    sources: Vec<String>,
    target: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Moved {
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Header(Header),
    Moved(Moved),
}

/// The folders of a move, without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folders {
    pub sources: Vec<PathBuf>,
    pub target: PathBuf,
}

/// An image that was to be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// Its place before, whole.
    pub from: PathBuf,
    /// Its place in the record's folder.
    pub to: PathBuf,
    /// Which of the record's [`Folders`] it belongs to.
    pub folders: Option<usize>,
}

/// A record that was read.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub folders: Vec<Folders>,
    pub moves: Vec<Move>,
    /// Why nothing confirms it, where nothing does.
    pub unconfirmed: Option<String>,
    /// The check of the last line.
    last: String,
    /// Bytes of its whole lines.
    pub length: usize,
}

impl Record {
    /// Reads a record. The last line may have no end: its image was not moved. The error says which
    /// line is no record, or was not written by the key's owner.
    pub fn read(bytes: &[u8], key: Option<&RecordKey>) -> Result<Record, String> {
        let whole = whole_lines(bytes);
        let text = str::from_utf8(whole).map_err(|_| "it is no text in UTF-8")?;
        let mut record = Record { length: whole.len(), ..Record::default() };
        let mut writer = None;
        for (number, line) in (1..).zip(text.lines()) {
            let (payload, check) = match split_check(line) {
                Some((payload, check)) => (payload, Some(check.to_owned())),
                None => (line.to_owned(), None),
            };
            let parsed: Line = serde_json::from_str(&payload)
                .map_err(|e| format!("line {number} is no record of a moved picture: {e}"))?;
            if number == 1 {
                record.unconfirmed = unconfirmed(&parsed, key);
            }
            match (record.unconfirmed.is_none(), key, &check) {
                (false, ..) => {}
                (true, Some(key), Some(check)) if *check == key.check(&record.last, &payload) => {}
                (true, ..) => return Err(changed(number)),
            }
            record.last = check.unwrap_or_default();
            match parsed {
                Line::Header(header) if *writer.get_or_insert(header.key.clone()) == header.key => {
                    record.folders.push(header.folders());
                }
                Line::Header(_) => return Err(changed(number)),
                Line::Moved(moved) => record.moves.push(Move {
                    from: picture_named(Path::new(""), &moved.from),
                    to: picture_named(Path::new(""), &moved.to),
                    folders: record.folders.len().checked_sub(1),
                }),
            }
        }
        Ok(record)
    }

    /// The line that begins a move between folders.
    pub fn begin(&mut self, key: &RecordKey, folders: Folders) -> String {
        let header = Header {
            format: FORMAT.into(),
            version: VERSION,
            key: key.id.clone(),
            sources: folders.sources.iter().map(|f| name_of(f.as_os_str())).collect(),
            target: name_of(folders.target.as_os_str()),
        };
        self.folders.push(folders);
        self.line(key, &to_json(&header))
    }

    /// The line of an image that is about to be moved.
    pub fn add(&mut self, key: &RecordKey, from: &Path, to: &Path) -> String {
        let moved = Moved { from: name_of(from.as_os_str()), to: name_of(to.as_os_str()) };
        self.line(key, &to_json(&moved))
    }

    fn line(&mut self, key: &RecordKey, payload: &str) -> String {
        self.last = key.check(&self.last, payload);
        with_check(payload, &self.last)
    }
}

impl Header {
    fn folders(&self) -> Folders {
        let path = |name: &String| picture_named(Path::new(""), name);
        Folders { sources: self.sources.iter().map(path).collect(), target: path(&self.target) }
    }
}

/// Why a record that begins so cannot be confirmed by the key.
fn unconfirmed(first: &Line, key: Option<&RecordKey>) -> Option<String> {
    match first {
        Line::Moved(_) => Some(
            "nothing says who wrote this record: another program, or a version of this one that did not sign records"
                .into(),
        ),
        Line::Header(header) if header.format != FORMAT || header.version != VERSION => Some(format!(
            "this record has format {} {}, and this program writes {FORMAT} {VERSION}",
            header.format, header.version
        )),
        Line::Header(header) if key.is_none_or(|key| key.id != header.key) => Some(
            "this record was signed by another user, on another machine, or by a key that is gone".into(),
        ),
        Line::Header(_) => None,
    }
}

fn changed(number: usize) -> String {
    format!(
        "line {number} was changed or added after this program wrote the record, so nothing is moved; \
         without line {number} and the lines after it the record is whole"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &RecordKey) -> String {
        let mut record = Record::default();
        let folders = Folders { sources: vec!["/pictures".into()], target: "/aside".into() };
        let mut text = record.begin(key, folders);
        for name in ["a", "b", "c,\"check\":\""] {
            text += &record.add(key, &Path::new("/pictures").join(name), Path::new(name));
        }
        text
    }

    #[test]
    fn what_was_written_is_believed_and_every_change_is_noticed() {
        let key = RecordKey::new(b"secret");
        let text = record(&key);
        let read = Record::read(text.as_bytes(), Some(&key)).unwrap();
        assert_eq!(read.unconfirmed, None);
        assert_eq!(read.moves.len(), 3);
        assert_eq!(read.moves[2].to, Path::new("c,\"check\":\""));
        assert_eq!(read.folders[0].sources, [Path::new("/pictures")]);

        // Any byte, any line taken out (but from the end), any two lines exchanged, a line twice.
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let read = Record::read(&bytes, Some(&key));
            let refused = read.is_err() || read.unwrap().unconfirmed.is_some();
            assert!(refused, "byte {at}");
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (order, n) in [(vec![0, 2, 3], 2), (vec![0, 2, 1, 3], 2), (vec![0, 1, 1], 3)] {
            let other: String = order.iter().map(|i| lines[*i]).collect();
            let refused = Record::read(other.as_bytes(), Some(&key)).unwrap_err();
            assert!(refused.starts_with(&format!("line {n} ")), "{refused}");
        }
        let cut = Record::read(lines[..3].concat().as_bytes(), Some(&key)).unwrap();
        assert_eq!(cut.moves.len(), 2);
        let half = Record::read(&text.as_bytes()[..text.len() - 9], Some(&key)).unwrap();
        assert_eq!(half.moves.len(), 2);
    }

    #[test]
    fn nobody_elses_record_is_confirmed() {
        let text = record(&RecordKey::new(b"another"));
        let key = RecordKey::new(b"secret");
        for key in [None, Some(&key)] {
            let read = Record::read(text.as_bytes(), key).unwrap();
            assert!(read.unconfirmed.is_some() && read.moves.len() == 3);
        }
        let old = b"{\"from\":\"/a\",\"to\":\"b\"}\n";
        assert!(Record::read(old, Some(&key)).unwrap().unconfirmed.is_some());
        // A record signed by another that goes on with lines of this user's is no record.
        let both = text + &record(&key);
        assert!(Record::read(both.as_bytes(), Some(&key)).is_err());
    }
}
