//! The file of a user's decisions: read, and added to.

use std::path::Path;

use anchorhood_files::{AtomicFile, FileSystem, Forgetful, checksum};
use anchorhood_search::{DecidedImage, Decisions, decide_not_duplicates};

const CHECK: &str = ",\"check\":\"";

/// What is no file of decisions stays as it is; one that is can be added to.
pub fn read(bytes: &[u8]) -> Option<()> {
    let (disk, path) = (Forgetful::new(), Path::new("/decisions.jsonl"));
    AtomicFile::write_on(&disk, path, bytes).expect("an empty disk");
    let whole = Decisions::load(&disk, path).is_ok();
    let image = |content| DecidedImage { folder: "/new".into(), content };
    let added = decide_not_duplicates(&disk.shared(), path, [image(1), image(2)]);
    assert_eq!(whole, added.is_ok());
    let left = disk.read(path).expect("it was written");
    assert!(whole || left == bytes, "a file of somebody else's was changed");
    let decisions = Decisions::load(&disk, path);
    let place = Path::new("/new/a.png");
    let separates = |decisions: Decisions| decisions.separates((place, 2), (place, 1));
    assert!(!whole || decisions.is_ok_and(separates));
    whole.then_some(())
}

/// Each line with its right checksum.
pub fn repair(bytes: &[u8]) -> Option<Vec<u8>> {
    let line = |line: &str| match line.rsplit_once(CHECK) {
        Some((open, _)) => {
            let text = format!("{open}}}");
            format!("{open}{CHECK}{:032x}\"}}\n", checksum(text.as_bytes()))
        }
        None => format!("{line}\n"),
    };
    let text: String = str::from_utf8(bytes).ok()?.lines().map(line).collect();
    Some(text.into_bytes())
}

pub fn seeds() -> Vec<Vec<u8>> {
    let disk = Forgetful::new();
    let path = Path::new("/decisions.jsonl");
    for content in 0..2 {
        let image = |folder: &str, content| DecidedImage { folder: folder.into(), content };
        let pair = [image("/a", content), image("/b", u64::MAX)];
        decide_not_duplicates(&disk.shared(), path, pair).expect("an empty disk");
    }
    let whole = disk.read(path).expect("it was written");
    vec![whole[..whole.len() - 9].into(), whole, vec![]]
}
