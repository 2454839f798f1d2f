//! Archives that `data fetch` unpacks.

use std::path::{Path, PathBuf};

use anchorhood_data::{Archive, find_dataset, unpack};
use anchorhood_storage::{FileSystem, Forgetful};

fn archive() -> &'static Archive {
    let dogs = find_dataset("dogs").expect("a published set");
    &dogs.archives[0]
}

/// Whatever it names, nothing is made outside the folder; and what says that it is whole is there
/// or not.
pub fn read(bytes: &[u8]) -> Option<()> {
    let (disk, folder) = (Forgetful::new(), Path::new("/data/dogs"));
    disk.create_folders(folder).expect("memory takes a folder");
    let unpacked = unpack(&disk, bytes, folder, archive());
    let there = |folder: &str| disk.list(Path::new(folder)).expect("a folder");
    assert_eq!(there("/"), [PathBuf::from("/data")]);
    assert_eq!(there("/data"), [folder.to_path_buf()]);
    let whole = archive().creates.is_some_and(|mark| disk.exists(&folder.join(mark)));
    assert_eq!(unpacked.is_ok(), whole, "{unpacked:?}");
    whole.then_some(())
}

/// An archive of these files, whatever their names.
pub fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(vec![]);
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        let added = match header.as_mut_bytes()[..100].get_mut(..name.len()) {
            Some(place) => {
                place.copy_from_slice(name.as_bytes());
                header.set_cksum();
                tar.append(&header, *bytes)
            }
            None => tar.append_data(&mut header, name, *bytes),
        };
        added.expect("memory takes a file");
    }
    tar.into_inner().expect("memory takes all of it")
}

pub fn seeds() -> Vec<Vec<u8>> {
    let long = format!("Images/{}/2.jpg", "long".repeat(40));
    let files: [(&str, &[u8]); 4] = [
        ("Images/a/1.jpg", b"one"),
        (&long, &[7; 600]),
        ("Images/a/1.jpg", b"another"),
        ("readme", b""),
    ];
    let mut folders = tar::Builder::new(vec![]);
    for (name, kind) in
        [("Images/", tar::EntryType::Directory), ("Images/link", tar::EntryType::Symlink)]
    {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(0);
        let added = folders.append_data(&mut header, name, &[][..]);
        added.expect("memory takes an entry");
    }
    let folders = folders.into_inner().expect("memory takes all of it");
    vec![tar_of(&files), folders, tar_of(&[("../../s/a/1.jpg", b"one")])]
}
