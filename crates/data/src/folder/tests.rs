//! Folders as people have them: every format, odd pixels, odd names, broken files.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

use super::*;
use crate::files::open_within;
use crate::test_folder::{TestFolder, assert_same, encoded, png_of, with_exif};
use crate::{CropsFrom, Dataset, LoadOptions, Progress};

const QUIET: &Progress = &|_, _| {};

fn open(root: &Path, options: &LoadOptions, progress: &Progress) -> Result<Dataset, DataError> {
    crate::files::open(list(root, options.labels)?, options, progress)
}

/// Left half red, right half blue.
fn halves() -> DynamicImage {
    let colour = |x, _| Rgb(if x < 20 { [255, 0, 0] } else { [0, 0, 255] });
    DynamicImage::ImageRgb8(RgbImage::from_fn(40, 40, colour))
}

fn load(root: &Path) -> Result<Dataset, DataError> {
    open(root, &LoadOptions::default(), QUIET)
}

/// With at most `most` bytes of memory for pixels.
fn load_within(root: &Path, options: &LoadOptions, most: u64) -> Dataset {
    open_within(list(root, LabelChoice::Auto).unwrap(), options, QUIET, most).unwrap()
}

/// The colour in the middle of each quarter: top left, top right, bottom left, bottom right.
fn quarters(picture: &[u8]) -> [[u8; 3]; 4] {
    [(8, 8), (8, 24), (24, 8), (24, 24)].map(|(y, x)| {
        let at = (y * 32 + x) * 3;
        [picture[at], picture[at + 1], picture[at + 2]]
    })
}

fn near(a: [u8; 3], b: [u8; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 12)
}

#[test]
fn every_format_is_read() {
    let dir = TestFolder::new();
    for (name, format) in [
        ("a.JPG", ImageFormat::Jpeg),
        ("b.png", ImageFormat::Png),
        ("c.webp", ImageFormat::WebP),
        ("d.bmp", ImageFormat::Bmp),
        ("e.gif", ImageFormat::Gif),
        ("f.TIF", ImageFormat::Tiff),
        ("a png.jpeg", ImageFormat::Png),
    ] {
        dir.put(name, &encoded(&halves(), format));
    }
    let data = load(&dir).unwrap();
    assert_eq!(
        data.train.names,
        ["a png.jpeg", "a.JPG", "b.png", "c.webp", "d.bmp", "e.gif", "f.TIF"]
    );
    assert!(data.train.labels.is_none() && data.test.is_none() && data.skipped.is_empty());
    for i in 0..7 {
        let seen = quarters(data.train.pictures.picture(i));
        let (red, blue) = ([255, 0, 0], [0, 0, 255]);
        let right =
            near(seen[0], red) && near(seen[2], red) && near(seen[1], blue) && near(seen[3], blue);
        assert!(right, "{}: {seen:?}", data.train.names[i]);
    }
}

/// A JPEG with an EXIF block that says how the camera was held.
fn turned(orientation: u8) -> Vec<u8> {
    let tag = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0";
    let exif = [&tag[..], &[orientation, 0, 0, 0, 0, 0, 0]].concat();
    with_exif(&encoded(&halves(), ImageFormat::Jpeg), &exif)
}

#[test]
fn the_cameras_orientation_is_undone() {
    let (red, blue) = ([255, 0, 0], [0, 0, 255]);
    for (orientation, expected) in [
        (1, [red, blue, red, blue]),
        (2, [blue, red, blue, red]),
        (3, [blue, red, blue, red]),
        (6, [red, red, blue, blue]),
        (8, [blue, blue, red, red]),
    ] {
        let dir = TestFolder::new();
        dir.put("a.jpg", &turned(orientation));
        let data = load(&dir).unwrap();
        let seen = quarters(data.train.pictures.picture(0));
        let right = seen.into_iter().zip(expected).all(|(a, b)| near(a, b));
        assert!(right, "orientation {orientation}: {seen:?}");
    }
}

#[test]
fn statistics_are_the_folders_own() {
    let dir = TestFolder::new();
    dir.png("only.png");
    let data = load(&dir).unwrap();
    assert_eq!(data.train.pictures.len(), 1);
    assert_eq!(data.mean, [200.0, 100.0, 50.0].map(|v: f32| v / 255.0));
    assert!(data.std.iter().all(|&s| s > 0.0));
    assert_eq!(data.name, dir.file_name().unwrap().to_string_lossy());
}

#[test]
fn classes_are_first_level_folders() {
    let dir = TestFolder::new();
    for class in ["cat", "dog"] {
        for i in 0..10 {
            dir.png(&format!("{class}/deep/{i}.png"));
        }
    }
    fs::create_dir(dir.join("empty")).unwrap();
    let data = load(&dir).unwrap();
    let test = data.test.unwrap();
    assert_eq!((data.train.pictures.len(), test.pictures.len()), (18, 2));
    for split in [&data.train, &test] {
        let labels = split.labels.as_ref().unwrap();
        assert_eq!(labels.classes(), ["cat", "dog"]);
        for (i, name) in split.names.iter().enumerate() {
            assert!(name.starts_with(&labels.classes()[labels.get(i) as usize]));
        }
    }
    let held = |seed| {
        let options = LoadOptions { seed, ..LoadOptions::default() };
        open(&dir, &options, QUIET).unwrap().test.unwrap().names
    };
    assert_eq!(held(0), test.names);
    assert!((1..9).any(|seed| held(seed) != test.names));
    let options = LoadOptions { held_out: 0.0, ..LoadOptions::default() };
    assert!(open(&dir, &options, QUIET).unwrap().test.is_none());
}

#[test]
fn folders_by_date_are_no_classes_unless_somebody_says_so() {
    let names = ["2018/05/a.png", "2018/06/b.png", "2019/05/a.png"];
    let dir = TestFolder::of(&names, &png_of([9; 3]));
    dir.put("2019/05/b.cr2", b"");
    let opened = |labels| {
        let options = LoadOptions { labels, ..LoadOptions::default() };
        open(&dir, &options, QUIET)
    };
    let data = opened(LabelChoice::Auto).unwrap();
    assert!(data.train.labels.is_none() && data.test.is_none());
    let decided = data.report.labels.unwrap();
    assert!(matches!(decided, FolderLabels::Unlikely(_)), "{decided}");
    assert_eq!(data.report.passed_over.len(), 1);
    let data = opened(LabelChoice::Folders).unwrap();
    assert_eq!(data.train.labels.unwrap().classes(), ["2018", "2019"]);
    dir.png("loose.png");
    let message = opened(LabelChoice::Folders).unwrap_err().to_string();
    assert!(message.contains("1 pictures lie beside"), "{message}");
}

/// Shards of WebDataset in a folder, one of them alone, and the same pictures packed and on demand.
#[test]
fn archives_are_read_like_folders() {
    use crate::files::archive::tests::write;
    let dir = TestFolder::new();
    let colours = [[200, 0, 0], [0, 200, 0], [0, 0, 200], [9, 9, 9]];
    let pictures = colours.map(png_of);
    let [a, b, c, d] = pictures.each_ref().map(Vec::as_slice);
    let shard = dir.join("0.tar");
    write(&shard, &[("a.png", a), ("a.cls", b"1"), ("b.png", b), ("b.cls", b"0")]);
    let json = br#"{"label": 1}"#;
    write(&dir.join("1.tar"), &[("c.png", c), ("c.json", json), ("c.txt", b"x")]);
    let options = LoadOptions { held_out: 0.0, ..LoadOptions::default() };
    let load = |root: &Path, most| load_within(root, &options, most);
    let data = load(&dir, u64::MAX);
    assert_eq!(data.train.names, ["0.tar/a.png", "0.tar/b.png", "1.tar/c.png"]);
    assert_eq!(data.report.labels, Some(FolderLabels::Told(2)));
    let labels = data.train.labels.as_ref().unwrap();
    assert_eq!(
        (labels.classes(), labels.values()),
        (&["0".into(), "1".into()][..], &[1, 0, 1][..])
    );
    for (i, colour) in colours[..3].iter().enumerate() {
        assert_eq!(quarters(data.train.pictures.picture(i)), [*colour; 4]);
    }
    assert_eq!(load(&dir, 1).train.pictures.raw(), data.train.pictures.raw());
    let packed = dir.join("x.pack");
    crate::pack(dir.to_str().unwrap(), &packed, None, false, QUIET).unwrap();
    let packed = crate::open(packed.to_str().unwrap(), &options).unwrap();
    assert_eq!(packed.train.pictures.raw(), data.train.pictures.raw());
    assert_eq!(load(&shard, u64::MAX).train.names, ["a.png", "b.png"]);
    // Without labels beside all of them there are none, and archives are no classes.
    write(&dir.join("1.tar"), &[("d.png", d)]);
    assert!(load(&dir, u64::MAX).train.labels.is_none());
    fs::write(dir.join("2.tar"), b"no archive").unwrap();
    let unreadable = list(&dir, LabelChoice::Auto).unwrap().unreadable;
    assert_eq!(unreadable[0].0, "2.tar");
}

#[test]
fn a_list_names_files_anywhere() {
    let (dir, elsewhere) = (TestFolder::new(), TestFolder::new());
    dir.png("sub/a.png");
    elsewhere.png("b.png");
    let list = dir.join("mine.txt");
    let there = elsewhere.join("b.png");
    let text = format!("sub/a.png\tx\n{}\ty\n", there.display());
    fs::write(&list, text).unwrap();
    let options = LoadOptions { held_out: 0.0, ..LoadOptions::default() };
    for spec in [list.display().to_string(), format!("files:{}", list.display())] {
        let data = crate::open(&spec, &options).unwrap();
        assert_eq!(data.name, "mine");
        assert_eq!(data.train.labels.unwrap().classes(), ["x", "y"]);
        assert!(data.train.names.contains(&"sub/a.png".to_string()));
        assert!(crate::check(&spec, QUIET).unwrap().is_whole());
    }
}

#[test]
fn given_parts_are_honoured_and_number_classes_alike() {
    for test_name in ["test", "val"] {
        let dir = TestFolder::new();
        for name in ["train/b/1.png", "train/c/1.png", "x/a/1.png", "x/c/1.png", "train/c/2.png"] {
            dir.png(&name.replace('x', test_name));
        }
        let data = load(&dir).unwrap();
        let (train, test) = (data.train, data.test.unwrap());
        assert_eq!(train.names, ["train/b/1.png", "train/c/1.png", "train/c/2.png"]);
        assert_eq!(train.labels.as_ref().unwrap().classes(), ["a", "b", "c"]);
        assert_eq!(train.labels.unwrap().values(), [1, 2, 2]);
        assert_eq!(test.labels.unwrap().values(), [0, 2]);
    }
}

#[test]
fn broken_files_are_skipped_and_named_up_to_a_tenth() {
    let dir = TestFolder::of_images(20);
    dir.put("a text.jpg", b"this is no picture");
    let whole = png_of([1, 2, 3]);
    dir.put("cut ü.png", &whole[..whole.len() / 2]);
    let data = load(&dir).unwrap();
    assert_eq!(data.train.pictures.len(), 20);
    let names: Vec<&str> = data.skipped.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a text.jpg", "cut ü.png"]);
    assert!(data.skipped[0].1.contains("not a JPEG"), "{:?}", data.skipped);
    dir.put("empty.png", b"");
    let message = load(&dir).unwrap_err().to_string();
    assert!(message.contains("3 of 23") && message.contains("a text.jpg"), "{message}");
}

#[cfg(unix)]
#[test]
fn pipes_are_not_waited_for() {
    let dir = TestFolder::of_images(20);
    let at = |name: &str| dir.join(name);
    let pipes = ["pipe.png", "pipe.tar", "pipe.tar.gz", "pipe.pack"].map(at);
    let made = std::process::Command::new("mkfifo").args(&pipes).status();
    if !made.is_ok_and(|status| status.success()) {
        anchorhood_testing::skip("mkfifo is not here");
        return;
    }
    let list = at("list.txt");
    fs::write(&list, "00.png\npipe.png\npipe.tar/a.png\n").unwrap();
    std::os::unix::fs::symlink(&pipes[1], at("link.tar")).unwrap();
    let (sender, loaded) = std::sync::mpsc::channel();
    let folder = dir.to_owned();
    std::thread::spawn(move || -> Result<(), String> {
        let opened = |path: &Path| crate::open(path.to_str().unwrap(), &LoadOptions::default());
        let all = (opened(&folder), opened(&list), pipes.map(|pipe| opened(&pipe)));
        sender.send(all).map_err(|e| e.to_string())
    });
    let (folder, list, pipes) =
        loaded.recv_timeout(std::time::Duration::from_secs(60)).expect("it waits for nobody");
    let folder = folder.unwrap();
    assert_eq!((folder.train.pictures.len(), folder.skipped.len()), (20, 0));
    let special = &folder.report.passed_over[0];
    assert_eq!((special.files, special.why.is_some()), (5, true));
    // Of three files that a list names, two are more than a tenth.
    assert!(list.unwrap_err().to_string().contains("2 of 3 pictures cannot be read"));
    assert!(pipes.iter().all(Result::is_err));
}

#[test]
fn huge_pictures_are_refused_before_memory_is_taken() {
    let mut bmp = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    bmp.extend(30_000_u32.to_le_bytes());
    bmp.extend(30_000_u32.to_le_bytes());
    bmp.extend(b"\x01\0\x18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    let dir = TestFolder::new();
    dir.put("huge.bmp", &bmp);
    let message = load(&dir).unwrap_err().to_string();
    assert!(message.contains("30000×30000 is more than 100 megapixels"), "{message}");
}

#[test]
fn progress_counts_every_file_once() {
    let dir = TestFolder::of_images(9);
    let seen = Mutex::new(Vec::new());
    let progress = |done, total| seen.lock().unwrap().push((done, total));
    open(&dir, &LoadOptions::default(), &progress).unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (1..=9).map(|i| (i, 9)).collect::<Vec<_>>());
}

/// What does not fit in memory is decoded on demand: everything anyone can see of the set is the
/// same.
#[test]
fn on_demand_gives_what_memory_gives() {
    let dir = TestFolder::new();
    for i in 0..30_u8 {
        let name = format!("{}/{i}.png", ["a", "b", "c"][i as usize % 3]);
        let picture = png_of([i * 8, 255 - i, 40]);
        dir.put(&name, &picture);
    }
    dir.put("b/broken.png", b"no picture");
    let options = LoadOptions { limit: Some(20), seed: 5, ..LoadOptions::default() };
    let load = |most| load_within(&dir, &options, most);
    let (memory, disk) = (load(u64::MAX), load(1000));
    assert!(memory.train.pictures.is_resident() && !disk.train.pictures.is_resident());
    assert_same(&memory, &disk);
    let last = memory.train.pictures.len() - 1;
    assert_eq!(memory.train.pictures.picture(last), disk.train.pictures.picture(last));
    assert!(batches(&memory) == batches(&disk));
}

fn batches(data: &Dataset) -> Vec<crate::Batch> {
    let loader = crate::DataLoader {
        images: data.train.pictures.clone(),
        views: crate::Views::same(crate::Augmentation::default(), 2).unwrap(),
        mean: data.mean,
        std: data.std,
        seed: 1,
        batch: 6,
        part: 0..6,
        threads: 1,
    };
    loader.prefetch(0, 0).unwrap().take(7).collect()
}

/// Squares stay what they are; what crops are cut from is more, in memory and on demand alike,
/// after some pictures were chosen and others could not be read.
#[test]
fn crops_are_cut_from_whole_pictures() {
    let dir = TestFolder::new();
    for i in 0..14_u32 {
        let (width, height) = [(90, 60), (60, 100), (40, 40)][i as usize % 3];
        let noise =
            |x: u32, y: u32| Rgb([x * 3 + i, y * 2, ((x * y * 7919) >> 3) + i].map(|v| v as u8));
        let picture = RgbImage::from_fn(width, height, noise).into();
        dir.put(&format!("{i:02}.png"), &encoded(&picture, ImageFormat::Png));
    }
    dir.put("03 broken.png", b"no picture");
    let load = |crops, most| {
        let options = LoadOptions { crops, limit: Some(14), ..LoadOptions::default() };
        load_within(&dir, &options, most)
    };
    let squares = load(CropsFrom::Square, u64::MAX);
    let (memory, disk) = (load(CropsFrom::Picture, u64::MAX), load(CropsFrom::Picture, 0));
    assert!(!squares.train.pictures.items_are_slots());
    for whole in [&memory, &disk] {
        assert!(whole.train.pictures.items_are_slots());
        assert_eq!(whole.train.pictures.raw(), squares.train.pictures.raw());
    }
    assert!(memory.train.pictures.is_resident() && !disk.train.pictures.is_resident());
    let seen = batches(&memory);
    assert!(seen == batches(&disk) && seen != batches(&squares));
    assert_eq!(seen[0].pixels.len(), 2 * 6 * 32 * 32 * 3);
    // A subset finds its own, and pictures that are all too small have nothing but squares.
    let (mut a, mut b) = (vec![], vec![]);
    let chosen = memory.train.pictures.subset(&[9, 1]);
    assert_eq!(chosen.item_in(1, &mut a), disk.train.pictures.item_in(1, &mut b));
    let small = TestFolder::new();
    small.png("a.png");
    let small = open(&small, &LoadOptions::default(), QUIET).unwrap();
    assert!(!small.train.pictures.items_are_slots());
}

#[test]
fn a_picture_that_vanishes_becomes_grey_and_is_named() {
    let dir = TestFolder::of_images(4);
    let pictures = load_within(&dir, &LoadOptions::default(), 0).train.pictures;
    fs::remove_file(dir.join("02.png")).unwrap();
    assert!(pictures.failures().is_empty());
    let mut scratch = Vec::new();
    for _ in 0..2 {
        let grey = pictures.picture_in(2, &mut scratch);
        assert!(grey.iter().all(|&v| v == 128));
    }
    let failures = pictures.failures();
    assert_eq!((failures.len(), failures[0].0.as_str()), (1, "02.png"));
    assert!(pictures.picture(1)[0] == 200);
}
