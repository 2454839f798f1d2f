//! The journal of a job that was interrupted.

use std::path::Path;

use anchorhood_index::{Entry, Journal, JournalHeader};

use crate::scratch::with_file;

/// What no entry of a seed is called.
const ADDED: &str = "added after the attack";

fn header() -> JournalHeader {
    JournalHeader::new("m", Some("conv5"), 2, Path::new("pictures"), Some(64))
}

fn entry(name: &str, vector: Result<Vec<f32>, String>) -> Entry {
    Entry {
        name: name.into(),
        stamp: 5,
        content_sum: 9,
        height_and_width: [480, 640],
        vector,
        thumbnail: vec![1, 2, 3],
    }
}

/// What is whole is kept, what is added to it is found, and then nothing is lost.
pub fn read(bytes: &[u8]) -> Option<()> {
    with_file("a.journal", bytes, |path| {
        let (mut journal, found) = Journal::open(path, &header()).ok()?;
        for name in ["a", "ü b", "c", ""] {
            let _ = journal.has(name, 5) | journal.has_vector(name);
            let entry = journal.read(name).expect("what was found is still there");
            assert!(entry.is_none_or(|entry| entry.name == name));
        }
        let added = entry(ADDED, Ok(vec![1.0, 0.0]));
        let written = journal.append(&added).and_then(|()| journal.flush());
        written.expect("an entry is kept");
        drop(journal);
        let (mut journal, again) = Journal::open(path, &header()).expect("it is the same job");
        assert_eq!((again.pictures, again.lost_bytes), (found.pictures + 1, 0));
        let read = journal.read(ADDED).expect("it is there");
        assert_eq!(read, Some(added));
        Some(())
    })
}

pub fn seeds() -> Vec<Vec<u8>> {
    let whole = with_file("seed.journal", b"", |path| {
        let (mut journal, _) = Journal::open(path, &header()).expect("a new one");
        let entries = [
            entry("a", Ok(vec![1.0, 0.0])),
            entry("ü b", Ok(vec![0.0, -1.0])),
            entry("c", Err("it is no picture".into())),
        ];
        for entry in &entries {
            journal.append(entry).expect("it is kept");
        }
        journal.flush().expect("it is written");
        std::fs::read(path).expect("it is there")
    });
    let end = whole.iter().position(|b| *b == b'\n').unwrap_or_default();
    vec![whole[..=end].to_vec(), whole]
}
