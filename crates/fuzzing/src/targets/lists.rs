//! The lists of CUB-200, Stanford Dogs and ImageNet: texts and MATLAB files that name pictures and
//! their classes.
//!
//! An input is all files of one set, one after the other; its first byte says of which.

use std::io::{Read, Write};
use std::path::{Component, Path};

use anchorhood_data::{LoadOptions, Split, check, encode_png, open};
use flate2::read::ZlibDecoder;
use tempfile::TempDir;

use super::pack::look;

/// A set, where it lies, the folder of its lists, and the lists.
type Set = (&'static str, &'static str, &'static str, &'static [&'static str]);

const SETS: [Set; 4] = [
    (
        "cub200",
        "cub200",
        "CUB_200_2011",
        &[
            "images.txt",
            "image_class_labels.txt",
            "train_test_split.txt",
            "classes.txt",
            "bounding_boxes.txt",
        ],
    ),
    ("dogs", "dogs", "", &["train_list.mat", "test_list.mat"]),
    (
        "imagenet",
        "imagenet",
        "ILSVRC2012_devkit_t12/data",
        &["ILSVRC2012_validation_ground_truth.txt", "meta.mat"],
    ),
    // Its pictures to test on lie in class folders, as many have sorted them.
    (
        "imagenet",
        "imagenet in folders",
        "ILSVRC2012_devkit_t12/data",
        &["ILSVRC2012_validation_ground_truth.txt", "meta.mat"],
    ),
];

/// What lies between two files.
const BETWEEN: &[u8] = b"\n=====\n";

thread_local! {
    /// The pictures that the seeds name, on a disk of each thread's own.
    static PICTURES: TempDir = {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        for (name, place, ..) in SETS {
            copy(&fixtures().join(name), &folder.path().join(place));
        }
        let val = folder.path().join("imagenet in folders/val");
        std::fs::remove_dir_all(&val).expect("it was copied");
        copy(&fixtures().join("imagenet/train"), &val);
        folder
    };
}

/// Sets among the tests of another crate.
pub fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/fixtures")
}

/// A folder with everything in it; instead of pictures, very small ones.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    let png = encode_png(2, 2, &[9; 12]).expect("a picture");
    for entry in std::fs::read_dir(from).expect("the fixtures are there") {
        let entry = entry.expect("an entry").path();
        let to = to.join(entry.file_name().expect("a name"));
        let extension = entry.extension().map(|e| e.to_ascii_lowercase());
        match extension.and_then(|e| e.into_string().ok()).as_deref() {
            _ if entry.is_dir() => copy(&entry, &to),
            Some("jpg" | "jpeg") => std::fs::write(&to, &png).expect("a file"),
            _ => drop(std::fs::copy(&entry, &to).expect("a file")),
        }
    }
}

/// Everything in the lists has a class of the set and a place in its folder; or there is a reason.
pub fn read(bytes: &[u8]) -> Option<()> {
    let (which, rest) = bytes.split_first()?;
    let (name, place, folder, lists) = SETS[usize::from(*which) % SETS.len()];
    PICTURES.with(|pictures| {
        let root = pictures.path().join(place);
        for (list, part) in lists.iter().zip(parts(rest)) {
            let path = root.join(folder).join(list);
            // Some systems wait for the disk when one is written over.
            let _ = std::fs::remove_file(&path);
            let file = std::fs::File::create(path);
            let written = file.and_then(|mut file| file.write_all(part));
            written.expect("the temporary folder takes a file");
        }
        let spec = format!("{name}:{}", root.display());
        let size = Some(4);
        let options = LoadOptions { size, ..LoadOptions::default() };
        let data = open(&spec, &options);
        let splits = data.iter().flat_map(|data| [Some(&data.train), data.test.as_ref()]);
        splits.flatten().for_each(inside);
        let _ = check(&spec, &|_, _| {}).map(|report| report.is_whole());
        data.is_ok().then_some(())
    })
}

fn inside(split: &Split) {
    look(split);
    for name in &split.names {
        let mut parts = Path::new(name).components();
        assert!(parts.all(|p| matches!(p, Component::Normal(_))), "{name}");
    }
}

/// The files of an input; beyond the last they are empty.
fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let Some(from) = rest else {
            return Some(&[][..]);
        };
        let end = from.windows(BETWEEN.len()).position(|w| w == BETWEEN);
        rest = end.map(|end| &from[end + BETWEEN.len()..]);
        Some(&from[..end.unwrap_or(from.len())])
    })
}

pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |(which, (name, _, folder, lists)): (u8, &Set)| {
        let folder = fixtures().join(name).join(folder);
        let read = |list: &&str| plain(std::fs::read(folder.join(list)).expect("a fixture"));
        let lists: Vec<Vec<u8>> = lists.iter().map(read).collect();
        [vec![which], lists.join(BETWEEN)].concat()
    };
    (0..).zip(&SETS).map(seed).collect()
}

/// A MATLAB file with its variables as they are before they are compressed; any other file as it
/// is.
fn plain(file: Vec<u8>) -> Vec<u8> {
    let Some((header, mut rest)) = file.split_at_checked(128) else {
        return file;
    };
    if !header.starts_with(b"MATLAB 5.0") {
        return file;
    }
    let mut out = header.to_vec();
    while let Some((kind, after)) = rest.split_first_chunk::<4>() {
        let (length, after) = after.split_first_chunk::<4>().expect("a length");
        let (data, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        match u32::from_le_bytes(*kind) {
            15 => drop(ZlibDecoder::new(data).read_to_end(&mut out).expect("zlib")),
            _ => out.extend([kind, length, data].concat()),
        }
        rest = after;
    }
    out
}
