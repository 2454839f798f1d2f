//! The record of pictures that were moved aside. On a disk in memory: it says where files are to
//! go.

use std::path::{Path, PathBuf};

use anchorhood_files::{AtomicFile, FileSystem, Forgetful, Kind};
use anchorhood_search::undo;

const PICTURES: [&str; 3] = ["/aside/a.png", "/aside/b/c.png", "/pictures/d.png"];

/// Whatever the record says, every picture is still there, somewhere, whole.
pub fn read(bytes: &[u8]) -> Option<()> {
    let disk = Forgetful::new();
    for folder in ["/aside/b", "/pictures"] {
        disk.create_folders(Path::new(folder)).expect("an empty disk");
    }
    for picture in PICTURES {
        let written = AtomicFile::write_on(&disk, Path::new(picture), picture.as_bytes());
        written.expect("an empty disk");
    }
    let record = Path::new("/aside/undo.jsonl");
    AtomicFile::write_on(&disk, record, bytes).expect("an empty disk");
    let undone = undo(&disk, record, None, true);
    let mut left = vec![];
    files(&disk, Path::new("/"), &mut left);
    for picture in PICTURES {
        let is_it = |file: &PathBuf| disk.read(file).is_ok_and(|b| b == picture.as_bytes());
        assert!(left.iter().any(is_it), "{picture} is gone");
    }
    undone.ok().map(|_| ())
}

fn files(disk: &Forgetful, folder: &Path, found: &mut Vec<PathBuf>) {
    for path in disk.list(folder).unwrap_or_default() {
        match disk.kind(&path) {
            Ok(Kind::Folder) => files(disk, &path, found),
            _ => found.push(path),
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = [
        "{\"from\":\"/pictures/a.png\",\"to\":\"a.png\"}\n{\"from\":\"/pictures/new/c.png\",\"to\":\"b/c.png\"}\n",
        "{\"from\":\"/pictures/d.png\",\"to\":\"a.png\"}\n{\"from\":\"/x\\\\xff.png\",\"to\":\"undo.jsonl\"}\n",
        "{\"from\":\"/aside/a.png\",\"to\":\"a.png\"}\n{\"from\":\"/aside/b/c.png\",\"to\":\"a.png\"}\n",
        "{\"from\":\"/a\",\"to\":\"../pictures/d.png\"}\n{\"from\":\"/pictures/a",
    ];
    let signed = "{\"format\":\"anchorhood-undo\",\"version\":2,\"key\":\"0\",\"sources\":[\"/pictures\"],\"target\":\"/aside\",\"check\":\"0\"}\n\
        {\"from\":\"/pictures/a.png\",\"to\":\"a.png\",\"check\":\"0\"}\n";
    let files = files.into_iter().chain([signed]);
    files.map(|text| text.as_bytes().to_vec()).collect()
}
