//! Readers whose targets are short.

use std::path::{Path, PathBuf};

use anchorhood_data::{LabelChoice, Picture, encode_png, find_pictures, unseen};
use anchorhood_engine::reread_autotune_cache;
use anchorhood_index::fuzzing::small_model;
use anchorhood_index::{
    DecidedImage, Decisions, GivenLabels, IndexedFolder, Model, decide_not_duplicates, undo,
};
use anchorhood_storage::{AtomicFile, FileSystem, Forgetful, Kind, checksum};

use super::container::bytes_of;
use super::fixture;
use super::unpack::tar_of;
use crate::repair;
use crate::scratch::with_file;

fn texts<const N: usize>(seeds: [&str; N]) -> Vec<Vec<u8>> {
    seeds.map(|text| text.as_bytes().to_vec()).into()
}

// ---- labels that a person gave: a CSV file ----

pub fn labels(bytes: &[u8]) -> Option<()> {
    let names = ["a.png", "b/c.png"].map(String::from);
    with_file("a.csv", bytes, |path| {
        let labels = GivenLabels::read(path);
        let folders = ["a", "b"]
            .map(|label| IndexedFolder { label: label.into(), ..IndexedFolder::alone("pictures") });
        let found = labels.and_then(|labels| labels.of(&names, &folders));
        found.ok().map(|found| assert_eq!(found.len(), names.len()))
    })
}

pub fn label_seeds() -> Vec<Vec<u8>> {
    texts([
        "path,label\na.png,cat\n\"b/c.png\",\"a \"\"dog\"\"\"\n",
        "a.png,cat\nb/c.png,\n",
        "class,x,file\ncat,1,a.png\n",
        "a.png\n",
    ])
}

// ---- lists of files ----

/// Every name can be shown anywhere, and is there once. No file is opened: a list may name any. One
/// must be there: the list itself.
pub fn list(bytes: &[u8]) -> Option<()> {
    with_file("a.txt", bytes, |path| {
        let found = find_pictures(path, LabelChoice::Auto).ok()?.files();
        let names = found.iter().map(|file| &file.name);
        assert!(names.is_sorted_by(|a, b| a < b));
        assert!(!found.iter().any(|f| f.name.contains(unseen)));
        Some(())
    })
}

pub fn list_seeds() -> Vec<Vec<u8>> {
    texts([
        "a.jpg\nb/c.png\na.txt\n",
        "# mine\n./a.jpg\tcat\r\n/x/b.jpg\tdog\n\n../c.jpg\tcat\na.txt\tcat\n",
        "Фото 写真.jpg\tü\nback\\x5c.jpg\n2019/05/a.jpg\n2020/06/b.jpg\na.txt\n",
    ])
}

// ---- tar archives of pictures and labels, as they lie beside folders ----

/// No name leads out.
pub fn archive(bytes: &[u8]) -> Option<()> {
    with_file("a.tar", bytes, |path| {
        let found = find_pictures(path, LabelChoice::Auto).ok()?.files();
        let readable = found.iter().take(4).filter(|file| {
            assert!(!file.name.split('/').any(|part| part.starts_with('.')));
            Picture::read(&file.path).is_ok()
        });
        (readable.count() == found.len()).then_some(())
    })
}

pub fn archive_seeds() -> Vec<Vec<u8>> {
    let png = encode_png(4, 4, &[7; 48]).expect("a picture");
    let long = format!("{}/b.png", "long".repeat(30));
    vec![
        tar_of(&[("a.png", &png), ("a.cls", b"3\n")]),
        tar_of(&[("x/a.png", &png), ("x/a.json", br#"{"label":"cat"}"#)]),
        tar_of(&[(&long, &png), ("notes.txt", b"hello")]),
        tar_of(&[("./a.png", &png), ("../out.png", &png), (".b.png", &png)]),
    ]
}

// ---- CIFAR's python files ----

pub fn pickle(bytes: &[u8]) -> Option<()> {
    anchorhood_data::fuzzing::pickle(bytes).then_some(())
}

pub fn pickle_seeds() -> Vec<Vec<u8>> {
    // A dictionary in few bytes, with the instructions that no published file has.
    let small = [
        &b"\x80\x02}q\x01(U\x06labels](K\x07M\x01\x02J\xff\xff\xff\xff\x8a\x02\x01\x02e"[..],
        b"X\x0b\x00\x00\x00label_namesr\x05\x00\x00\x00]U\x01aaN\x88G12345678",
        b"\x85\x86uj\x05\x00\x00\x00)s.",
    ];
    vec![
        fixture!("data/tests/fixtures/cifar-10-batches-py/batches.meta"),
        fixture!("data/tests/fixtures/cifar-10-batches-py/test_batch"),
        fixture!("data/tests/fixtures/cifar-100-python/meta"),
        fixture!("data/tests/fixtures/cifar-100-python/test"),
        fixture!("data/tests/fixtures/resaved/protocol-2"),
        fixture!("data/tests/fixtures/resaved/protocol-3"),
        fixture!("data/tests/fixtures/resaved/protocol-4"),
        small.concat(),
    ]
}

// ---- models alone in a file ----

/// What was read is saved, and read again it is the same model.
pub fn model(bytes: &[u8]) -> Option<()> {
    let model = Model::of_bytes(Path::new("a"), bytes.to_vec().into()).ok()?;
    let again = Model::of_bytes(Path::new("b"), saved(&model).into());
    let again = again.expect("what was saved is read");
    assert_eq!(again.fingerprint(), model.fingerprint());
    Some(())
}

fn saved(model: &Model) -> Vec<u8> {
    let (path, disk) = (Path::new("b"), Forgetful::new());
    model.save_on(&disk, path).expect("it is whole");
    bytes_of(path, &disk)
}

pub fn model_seeds() -> Vec<Vec<u8>> {
    vec![saved(&small_model())]
}

// ---- the file of a user's decisions: read, and added to ----

const CHECK: &str = ",\"check\":\"";
const DECISIONS: &str = "/decisions.jsonl";

/// What is no file of decisions stays as it is; one that is can be added to.
pub fn decisions(bytes: &[u8]) -> Option<()> {
    let (disk, path) = (Forgetful::new(), Path::new(DECISIONS));
    AtomicFile::write_on(&disk, path, bytes).expect("an empty disk");
    let whole = Decisions::load(&disk, path).is_ok();
    let image = |content| DecidedImage { folder: "/new".into(), content };
    let added = decide_not_duplicates(&disk.shared(), path, [image(1), image(2)]);
    assert_eq!(whole, added.is_ok());
    assert!(whole || bytes_of(path, &disk) == bytes, "a file of somebody else's was changed");
    let decisions = Decisions::load(&disk, path);
    let place = Path::new("/new/a.png");
    let separates = |decisions: Decisions| decisions.separates((place, 2), (place, 1));
    assert!(!whole || decisions.is_ok_and(separates));
    whole.then_some(())
}

/// Each line with its right checksum.
pub fn repaired_decisions(bytes: &[u8]) -> Option<Vec<u8>> {
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

pub fn decision_seeds() -> Vec<Vec<u8>> {
    let (disk, path) = (Forgetful::new(), Path::new(DECISIONS));
    for content in 0..2 {
        let image = |folder: &str, content| DecidedImage { folder: folder.into(), content };
        let pair = [image("/a", content), image("/b", u64::MAX)];
        decide_not_duplicates(&disk.shared(), path, pair).expect("an empty disk");
    }
    let whole = bytes_of(path, &disk);
    vec![whole[..whole.len() - 9].into(), whole, vec![]]
}

// ---- which of cuDNN's ways was chosen for each convolution, as it is kept between runs ----

/// What was read is written, and read again it is written the same.
pub fn autotune(bytes: &[u8]) -> Option<()> {
    let written = with_file("choices", bytes, reread_autotune_cache)?;
    let again = with_file("choices", &entry(&written), reread_autotune_cache);
    assert_eq!(again, Some(written));
    Some(())
}

fn entry(text: &str) -> Vec<u8> {
    let unchecked = [&[0; 8], text.as_bytes()].concat();
    repair::cache_entry(&unchecked).expect("it has a checksum")
}

pub fn autotune_seeds() -> Vec<Vec<u8>> {
    let task =
        "bf16 batch 128 32×32×8 (3 used) to 32×32×64 kernel [3, 3] stride [1, 1] padding [1, 1]";
    let choices = [
        ("Forward", r#"{"algorithm": [1, 1, 4096]}"#),
        ("Forward added", r#"{"algorithm": [7, 3, 18446744073709551615]}"#),
        ("InputGradient", r#""none""#),
        ("InputGradient added", r#"{"plan": 3}"#),
        ("WeightGradient", r#""ours""#),
    ];
    let line = |(direction, choice): (&str, &str)| format!("\"{direction} {task}\": {choice}");
    let whole = entry(&format!("{{{}}}", choices.map(line).join(", ")));
    let read = with_file("choices", &whole, reread_autotune_cache);
    assert_eq!(read.map(|text| text.matches(" batch 128 ").count()), Some(choices.len()));
    vec![whole, entry("{}")]
}

// ---- the record of pictures that were moved aside, which says where files are to go ----

const PICTURES: [&str; 3] = ["/aside/a.png", "/aside/b/c.png", "/pictures/d.png"];

/// Whatever the record says, every picture is still there, somewhere, whole.
pub fn undoing(bytes: &[u8]) -> Option<()> {
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

pub fn undo_seeds() -> Vec<Vec<u8>> {
    texts([
        "{\"from\":\"/pictures/a.png\",\"to\":\"a.png\"}\n\
         {\"from\":\"/pictures/new/c.png\",\"to\":\"b/c.png\"}\n",
        "{\"from\":\"/pictures/d.png\",\"to\":\"a.png\"}\n\
         {\"from\":\"/x\\\\xff.png\",\"to\":\"undo.jsonl\"}\n",
        "{\"from\":\"/aside/a.png\",\"to\":\"a.png\"}\n\
         {\"from\":\"/aside/b/c.png\",\"to\":\"a.png\"}\n",
        "{\"from\":\"/a\",\"to\":\"../pictures/d.png\"}\n{\"from\":\"/pictures/a",
        "{\"format\":\"anchorhood-undo\",\"version\":2,\"key\":\"0\",\"sources\":[\"/pictures\"],\
         \"target\":\"/aside\",\"check\":\"0\"}\n\
         {\"from\":\"/pictures/a.png\",\"to\":\"a.png\",\"check\":\"0\"}\n",
    ])
}
