//! A pack gives what its folder gives; a damaged one says so.

use std::fs;
use std::path::{Path, PathBuf};

use anchorhood_storage::random::{Draws, Stream};
use image::{Rgb, RgbImage};
use tempfile::TempDir;

use super::format::{Entry, Index, PartIndex};
use super::*;
use crate::statistics::Sums;
use crate::test_folder::assert_same;
use crate::{DataError, Dataset, LoadOptions};

const QUIET: &crate::Progress = &|_, _| {};

/// Thirty pictures of three classes, and a file that is none.
fn some_folder(root: &Path) {
    for i in 0..30_u32 {
        let folder = root.join(["a", "b", "c"][i as usize % 3]);
        fs::create_dir_all(&folder).unwrap();
        let picture = RgbImage::from_fn(20, 30, |x, y| {
            Rgb([(x * 9) as u8, (y * 7 + i) as u8, (i * 8) as u8])
        });
        picture.save(folder.join(format!("{i}.png"))).unwrap();
    }
    fs::write(root.join("b/broken.png"), "no picture").unwrap();
}

/// A folder to pack, and the file to pack it into.
fn folder_to_pack() -> (TempDir, PathBuf, PathBuf) {
    parts_to_pack(&[""])
}

/// The same with these sub-folders.
fn parts_to_pack(parts: &[&str]) -> (TempDir, PathBuf, PathBuf) {
    let dir = TempDir::new().unwrap();
    let (folder, file) = (dir.path().join("mine"), dir.path().join("mine.pack"));
    parts.iter().for_each(|part| some_folder(&folder.join(part)));
    (dir, folder, file)
}

fn packed(folder: &Path, to: &Path, size: Option<usize>) -> Packed {
    pack(folder.to_str().unwrap(), to, size, false, QUIET).unwrap()
}

fn open_at(path: &Path, options: &LoadOptions) -> Result<Dataset, DataError> {
    crate::open(path.to_str().unwrap(), options)
}

#[test]
fn a_packed_folder_is_the_folder() {
    let (_dir, folder, file) = folder_to_pack();
    let summary = packed(&folder, &file, None);
    assert_eq!((summary.pictures, summary.size), (30, 32));
    assert_eq!(summary.skipped.len(), 1);
    let base = LoadOptions::default();
    for options in [
        base.clone(),
        LoadOptions { seed: 3, limit: Some(11), test_limit: Some(2), ..base.clone() },
        LoadOptions { held_out: 0.0, ..base.clone() },
        LoadOptions { held_out: 0.5, seed: 9, ..base.clone() },
        LoadOptions { validation: Some(7), seed: 5, ..base },
    ] {
        assert_same(&open_at(&folder, &options).unwrap(), &open_at(&file, &options).unwrap());
    }
}

#[test]
fn given_parts_stay_parts_and_sizes_are_kept() {
    let (_dir, folder, file) = parts_to_pack(&["train", "test"]);
    packed(&folder, &file, Some(12));
    let options = LoadOptions { size: Some(12), ..LoadOptions::default() };
    assert_same(&open_at(&folder, &options).unwrap(), &open_at(&file, &options).unwrap());
    assert_eq!(open_at(&file, &LoadOptions::default()).unwrap().train.pictures.height(), 12);
    let other = LoadOptions { size: Some(16), ..LoadOptions::default() };
    let error = open_at(&file, &other).unwrap_err();
    assert!(matches!(error, DataError::PackSize { size: 12, asked: 16, .. }));
    let said = error.to_string();
    assert!(said.contains("12×12, not 16×16"), "{said}");
}

#[test]
fn a_pack_is_kept_if_nothing_changed_and_never_replaced_silently() {
    let (dir, folder, file) = folder_to_pack();
    let spec = folder.to_str().unwrap();
    assert!(!packed(&folder, &file, None).unchanged);
    assert!(packed(&folder, &file, None).unchanged);
    fs::remove_file(folder.join("a/0.png")).unwrap();
    let error = pack(spec, &file, None, false, QUIET).unwrap_err();
    assert!(matches!(error, DataError::PackExists { .. }), "{error}");
    assert_eq!(pack(spec, &file, None, true, QUIET).unwrap().pictures, 29);
    // Said before the first picture is read, not after the last.
    let read = &|_, _| panic!("a picture was read");
    let said = pack(spec, dir.path(), None, true, read).unwrap_err();
    assert!(said.to_string().contains("is no file"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside it");
}

#[test]
fn a_failure_leaves_nothing() {
    let (dir, folder, _) = folder_to_pack();
    for i in 0..10 {
        fs::write(folder.join(format!("c/broken{i}.png")), "no").unwrap();
    }
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    let result = pack(folder.to_str().unwrap(), &out.join("x.pack"), None, false, QUIET);
    assert!(matches!(result, Err(DataError::Failed(_))));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    let nowhere = dir.path().join("no/such/x.pack");
    assert!(pack(folder.join("a").to_str().unwrap(), &nowhere, None, false, QUIET).is_err());
}

/// The file cut anywhere: refused; a pixel changed: named by the check.
#[test]
fn damage_is_noticed() {
    let (_dir, folder, file) = folder_to_pack();
    packed(&folder, &file, Some(8));
    let whole = fs::read(&file).unwrap();
    for length in (0..whole.len()).step_by(997) {
        fs::write(&file, &whole[..length]).unwrap();
        assert!(Pack::open(&file).is_err(), "cut at {length}");
    }
    let mut damaged = whole.clone();
    damaged[4096 + 2 * 192 + 5] ^= 1;
    fs::write(&file, &damaged).unwrap();
    let broken = Pack::open(&file).unwrap().damaged(&|| ());
    assert_eq!(broken, ["a/15.png"]);
    let options = LoadOptions { held_out: 0.0, ..LoadOptions::default() };
    let data = open_at(&file, &options).unwrap();
    assert!(data.train.pictures.failures().is_empty(), "not touched yet");
    let all = data.train.pictures.raw();
    let grey = all.chunks(192).filter(|p| p.iter().all(|v| *v == 128));
    assert_eq!(grey.count(), 1);
    let why = "its packed pixels are damaged";
    let failures = data.train.pictures.failures();
    assert_eq!(failures, [("a/15.png".into(), why.into())]);
    drop(data);
    fs::write(&file, &whole).unwrap();
    assert!(Pack::open(&file).unwrap().damaged(&|| ()).is_empty());
}

/// Every picture is compared once, however often it is touched, and the name of each is had without
/// going through the others.
#[test]
fn a_wholly_damaged_pack_costs_what_a_whole_one_does() {
    let index = Index {
        size: 1,
        parts: vec![PartIndex {
            rows: [0, 300_000],
            entries: (0..300_000_u32)
                .map(|i| Entry {
                    name: format!("{i}.png"),
                    class: 0,
                    height_and_width: [1, 1],
                    pixels: Ok((i, Sums::default())),
                })
                .collect(),
            ..PartIndex::default()
        }],
        ..Index::default()
    };
    let bytes = vec![0; 4096 + 300_000 * 3];
    let pixels = PackedPixels::new(bytes.into(), index.into());
    for _ in 0..2 {
        assert!((0..pixels.len()).all(|i| pixels.get(i) == [128; 3]));
        assert!(pixels.range(0, pixels.len()).is_none());
    }
    assert_eq!(pixels.compared(), 300_000);
    let failures = pixels.failures();
    assert_eq!(failures.len(), 300_000);
    let named = |(i, (name, _)): (usize, &(String, String))| *name == format!("{i}.png");
    assert!(failures.iter().enumerate().all(named));
}

#[test]
fn another_layout_is_named() {
    let (_dir, folder, file) = folder_to_pack();
    packed(&folder, &file, Some(8));
    let mut bytes = fs::read(&file).unwrap();
    for layout in [1, 9] {
        bytes[8] = layout;
        fs::write(&file, &bytes).unwrap();
        let said = Pack::open(&file).err().unwrap().to_string();
        assert!(
            said.contains(&format!("layout {layout}, and this program reads layout 2")),
            "{said}"
        );
    }
    fs::write(&file, "hello").unwrap();
    let said = open_at(&file, &LoadOptions::default()).unwrap_err().to_string();
    assert!(said.contains("not a packed set"), "{said}");
}

/// Bits anywhere in the file: refused when it is opened, or named when its picture is touched.
#[test]
fn every_flipped_bit_is_noticed() {
    let (_dir, folder, file) = parts_to_pack(&["train", "test"]);
    packed(&folder, &file, Some(8));
    let whole = fs::read(&file).unwrap();
    let noticed = || match open_at(&file, &LoadOptions::default()) {
        Err(DataError::BadFile { .. }) => true,
        Err(other) => panic!("{other}"),
        Ok(data) => {
            let splits = [Some(&data.train), data.test.as_ref()];
            splits.into_iter().flatten().for_each(|s| _ = s.pictures.raw());
            !data.train.pictures.failures().is_empty()
        }
    };
    assert!(!noticed());
    for trial in 0..400 {
        let [at, bit, ..] = Draws::new(5, Stream::Test, 0, trial).block(0);
        let (at, bit) = (at as usize % whole.len(), bit % 8);
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        fs::write(&file, bytes).unwrap();
        assert!(noticed(), "bit {bit} of byte {at}");
    }
}

#[test]
fn what_later_readers_need_is_kept() {
    let (_dir, folder, file) = folder_to_pack();
    packed(&folder, &file, Some(8));
    let pack = Pack::open(&file).unwrap();
    let part = &pack.index.parts[0];
    assert_eq!((part.rows, pack.index.preprocessing), ([0, 31], crate::PREPROCESSING));
    for entry in &part.entries {
        let expected = match entry.name.as_str() {
            "b/broken.png" => [0, 0],
            _ => [30, 20],
        };
        assert_eq!(entry.height_and_width, expected, "{}", entry.name);
    }
    let beyond = Index {
        parts: vec![PartIndex { rows: [1, 31], ..part.clone() }],
        ..Index::clone(&pack.index)
    };
    assert_eq!(Index::decode(&beyond.encode()), None, "rows beyond all");
    assert_eq!(Index::decode(&pack.index.encode()).as_ref(), Some(&*pack.index));
}

/// Every file operation goes wrong in every way, and the power is cut after each: what is there
/// afterwards is no file or the whole one, and packing again gives the same bytes.
#[test]
fn nothing_that_happens_leaves_half_a_pack() {
    use anchorhood_storage::{Disk, FileSystem, Forgetful, attack};
    let (_dir, folder, real) = folder_to_pack();
    let file = Path::new("/mine.pack");
    let pack_to = |disk: &dyn FileSystem| {
        let spec = folder.to_str().unwrap();
        pack_on(disk, spec, file, Some(8), false, QUIET)
    };
    packed(&folder, &real, Some(8));
    let whole = Disk.read(&real).unwrap();
    let faults = attack(
        &Forgetful::new(),
        |disk| pack_to(&*disk).is_ok(),
        |disk, promised, what| {
            let there = disk.read(file).ok();
            assert!(there.is_some() || !promised, "{what}");
            assert!(there.is_none_or(|bytes| bytes == whole), "{what}");
            pack_to(disk).unwrap();
            assert!(disk.read(file).unwrap() == whole, "{what}");
        },
    );
    println!("{faults} faults");
    assert!(faults > 50, "{faults}");
}
