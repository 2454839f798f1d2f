//! Published sets in the exact form of their official archives, a few pictures each, whole and
//! damaged. The fixtures come from tools/golden/set_fixtures.py, which says what their bytes are.

use std::fs;
use std::path::{Path, PathBuf};

use anchorhood_data::{Dataset, LoadOptions, Split, check, open, pack};
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    PathBuf::from(folder).join(name)
}

/// A copy of a fixture to damage.
fn copy(name: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    anchorhood_testing::copy_folder(&fixture(name), dir.path());
    dir
}

fn load(spec: &Path) -> Dataset {
    open(spec.to_str().unwrap(), &LoadOptions::default()).unwrap()
}

fn refusal(spec: impl AsRef<Path>) -> String {
    let said = open(spec.as_ref().to_str().unwrap(), &LoadOptions::default());
    said.expect_err("it was opened").to_string()
}

fn says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

fn refused(spec: impl AsRef<Path>, parts: &[&str]) {
    says(&refusal(spec), parts);
}

fn labels(split: &Split) -> &[u32] {
    split.labels.as_ref().unwrap().values()
}

/// Whether picture `i` is the plain one that the script draws.
fn is_plain(split: &Split, i: usize, class: u8, number: u8) {
    let expected = [40 * class + 40, 20 * number, 128];
    let middle = split.pictures.picture_len() / 2 / 3 * 3;
    let found = &split.pictures.picture(i)[middle..][..3];
    let near = found.iter().zip(expected).all(|(a, b)| a.abs_diff(b) < 8);
    assert!(near, "picture {i}: {found:?}, expected {expected:?}");
}

#[test]
fn svhn_pixels_and_digits() {
    let data = load(&fixture("svhn"));
    assert_eq!((data.name.as_str(), data.mean), ("svhn", [0.4377, 0.4438, 0.4728]));
    let test = data.test.unwrap();
    assert_eq!((data.train.pictures.len(), test.pictures.len()), (4, 3));
    assert_eq!(labels(&data.train), [0, 7, 4, 1]);
    assert_eq!(labels(&test), [4, 1, 8]);
    for (f, split) in [(0, &data.train), (1, &test)] {
        for n in 0..split.pictures.len() {
            for (at, &value) in split.pictures.picture(n).iter().enumerate() {
                let (r, c, k) = (at / 96, at / 3 % 32, at % 3);
                let expected = (f * 83 + n * 29 + k * 61 + r * 5 + c * 3) % 256;
                assert_eq!(usize::from(value), expected, "file {f}, picture {n}, byte {at}");
            }
        }
    }
}

#[test]
fn svhn_extra_is_only_for_those_who_ask() {
    let place = fixture("svhn").display().to_string();
    let options = LoadOptions::default();
    let more = open(&format!("svhn+extra:{place}"), &options).unwrap();
    assert_eq!(labels(&more.train), [0, 7, 4, 1, 8, 5]);
    let dir = copy("svhn");
    fs::remove_file(dir.path().join("extra_32x32.mat")).unwrap();
    refused(format!("svhn+extra:{}", dir.path().display()), &["extra_32x32.mat is missing"]);
    assert_eq!(load(dir.path()).train.pictures.len(), 4);
}

#[test]
fn svhn_limits_take_the_first_and_sizes_resize() {
    let options = LoadOptions { limit: Some(2), size: Some(16), ..LoadOptions::default() };
    let data = open(fixture("svhn").to_str().unwrap(), &options).unwrap();
    assert_eq!(labels(&data.train), [0, 7]);
    assert_eq!(data.train.pictures.width(), 16);
}

#[test]
fn svhn_of_another_version_or_cut_or_swapped() {
    let dir = copy("svhn");
    let train = dir.path().join("train_32x32.mat");
    for (name, expected) in [
        ("v73.mat", "MATLAB 7.3 file (HDF5); expected version 5"),
        ("v4.mat", "version 4"),
        ("plain.mat", "expected a variable called X"),
    ] {
        fs::copy(fixture("mat").join(name), &train).unwrap();
        refused(&dir, &["train_32x32.mat", expected]);
    }
    let whole = fs::read(fixture("svhn").join("train_32x32.mat")).unwrap();
    fs::write(&train, &whole[..whole.len() / 2]).unwrap();
    refused(&dir, &["train_32x32.mat", "fetch it again"]);
    fs::copy(fixture("dogs").join("train_list.mat"), &train).unwrap();
    refused(&dir, &["train_32x32.mat", "called X"]);
    fs::remove_file(dir.path().join("test_32x32.mat")).unwrap();
    refused(&dir, &["test_32x32.mat is missing"]);
}

#[test]
fn imagenet_flat_validation_has_the_classes_of_the_ground_truth() {
    let data = load(&fixture("imagenet"));
    assert_eq!((data.name.as_str(), data.std), ("imagenet", [0.229, 0.224, 0.225]));
    let (train, test) = (&data.train, data.test.as_ref().unwrap());
    assert_eq!(train.pictures.width(), 224);
    let classes = train.labels.as_ref().unwrap().classes();
    assert_eq!(classes, ["n01440764", "n02119789", "n03000684"]);
    assert_eq!(labels(train), [0, 0, 1, 1, 2, 2]);
    // The ground truth 2, 1, 3, 1 counts kit fox, tench, chain saw.
    assert_eq!(labels(test), [0, 1, 2, 1]);
    assert_eq!(test.names[2], "val/ILSVRC2012_val_00000003.JPEG");
    is_plain(train, 1, 1, 1);
    is_plain(test, 3, 0, 3);
}

#[test]
fn imagenet_foldered_validation() {
    let dir = copy("imagenet");
    let val = dir.path().join("val");
    for (number, synset) in [(1, "n01440764"), (2, "n02119789"), (3, "n03000684"), (4, "n02119789")]
    {
        let name = format!("ILSVRC2012_val_{number:08}.JPEG");
        fs::create_dir_all(val.join(synset)).unwrap();
        fs::rename(val.join(&name), val.join(synset).join(&name)).unwrap();
    }
    let spec = format!("imagenet:{}", dir.path().display());
    let data = open(&spec, &LoadOptions::default()).unwrap();
    assert_eq!(
        (data.name.as_str(), labels(data.test.as_ref().unwrap())),
        ("imagenet", &[0, 1, 1, 2][..])
    );

    fs::rename(val.join("n03000684"), val.join("n09999999")).unwrap();
    refused(&spec, &["val: expected the same class folders", "n09999999 is here and not in train"]);
    fs::remove_dir_all(val.join("n09999999")).unwrap();
    refused(&spec, &["n03000684 is in train and not here"]);
}

#[test]
fn imagenet_without_its_kit_or_with_pictures_missing() {
    let dir = copy("imagenet");
    let truth = "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt";
    fs::remove_file(dir.path().join("val/ILSVRC2012_val_00000002.JPEG")).unwrap();
    refused(
        &dir,
        &["ground_truth.txt: names 4 pictures, of which 1 are not there", "val_00000002.JPEG"],
    );
    fs::write(dir.path().join(truth), "2\n1\n77\n1\n").unwrap();
    refused(&dir, &["ground_truth.txt: line 3: expected a class number of meta.mat, found \"77\""]);
    fs::write(dir.path().join(truth), "2\n1\n").unwrap();
    refused(&dir, &["val_00000003.JPEG: expected", "val_00000002.JPEG, as many as"]);
    fs::remove_dir_all(dir.path().join("ILSVRC2012_devkit_t12")).unwrap();
    refused(&dir, &["val", "unpack ILSVRC2012_devkit_t12.tar.gz"]);
}

#[test]
fn cub_by_its_lists() {
    for place in ["cub200", "cub200/CUB_200_2011"] {
        let data = load(&fixture(place));
        let test = data.test.unwrap();
        assert_eq!((data.name.as_str(), data.train.pictures.height()), ("cub200", 224));
        assert_eq!(labels(&data.train), [0, 0, 1, 1, 2, 2]);
        assert_eq!(labels(&test), [0, 1, 2]);
        assert_eq!(test.labels.as_ref().unwrap().classes()[1], "002.Laysan_Albatross");
        is_plain(&data.train, 3, 1, 2);
        is_plain(&test, 2, 2, 1);
    }
}

#[test]
fn cub_lists_that_make_no_sense() {
    let damage = |file: &str, text: &str| {
        let dir = copy("cub200");
        let path = dir.path().join("CUB_200_2011").join(file);
        let old = fs::read_to_string(&path).unwrap();
        let (from, to) = text.split_once('|').unwrap();
        assert!(old.contains(from));
        fs::write(&path, old.replacen(from, to, 1)).unwrap();
        refusal(&dir)
    };
    for (file, change, said) in [
        ("train_test_split.txt", "3 1|3 7", "line 3: expected 1 (train) or 0 (test), found 7"),
        ("train_test_split.txt", "9 1\n|", "expected a line for each of the 9 pictures"),
        ("image_class_labels.txt", "4 2|4 9", "line 4: expected a class from 1 to 3, found 9"),
        ("image_class_labels.txt", "4 2|5 2", "line 4: expected picture 4, found 5"),
        ("images.txt", "1 001|1 ../001", "line 1: ../001"),
        ("images.txt", "_0001_0.jpg|_9999_0.jpg", "names 6 pictures, of which 1 are not there"),
    ] {
        says(&damage(file, change), &[file, said]);
    }
}

#[test]
fn dogs_by_their_lists() {
    let data = load(&fixture("dogs"));
    let test = data.test.as_ref().unwrap();
    assert_eq!(data.name, "dogs");
    assert_eq!((labels(&data.train), labels(test)), (&[0, 0, 1, 1][..], &[0, 1][..]));
    assert_eq!(data.train.labels.as_ref().unwrap().classes()[0], "n02085620-Chihuahua");
    is_plain(&data.train, 3, 1, 1);
    is_plain(test, 0, 0, 2);

    let dir = copy("dogs");
    fs::create_dir(dir.path().join("lists")).unwrap();
    for list in ["train_list.mat", "test_list.mat"] {
        fs::rename(dir.path().join(list), dir.path().join("lists").join(list)).unwrap();
    }
    assert_eq!(load(dir.path()).train.names, data.train.names);
    fs::remove_file(dir.path().join("Images/n02085620-Chihuahua/n02085620_3.jpg")).unwrap();
    refused(&dir, &["test_list.mat: names 2 pictures, of which 1", "n02085620_3.jpg"]);
    fs::remove_file(dir.path().join("lists/test_list.mat")).unwrap();
    refused(&dir, &["test_list.mat is missing"]);
}

#[test]
fn a_name_with_a_place_that_holds_something_else() {
    for (spec, needs) in [
        ("svhn", "train_32x32.mat"),
        ("cub200", "images.txt"),
        ("dogs", "train_list.mat"),
        ("imagenet", "n01440764"),
    ] {
        let place = fixture("mat").display().to_string();
        refused(format!("{spec}:{place}"), &["this is not", "expected", needs]);
    }
}

#[test]
fn checks_count_and_name() {
    let report = |path: &Path| check(path.to_str().unwrap(), &|_, _| {}).unwrap();
    let dir = copy("cub200");
    let whole = report(dir.path());
    assert_eq!(whole.splits[0].found, 6);
    assert_eq!(whole.splits[0].expected, Some(5994));
    assert!(!whole.is_whole());
    // Nothing is wrong but how few there are.
    assert_eq!(whole.problems.len(), 1, "{:?}", whole.problems);
    assert!(whole.problems[0].what.contains("expected 200 classes, found 3"));

    let images = dir.path().join("CUB_200_2011/images");
    fs::remove_file(images.join("002.Laysan_Albatross/Laysan_Albatross_0001_100.jpg")).unwrap();
    fs::write(images.join("003.Sooty_Albatross/Sooty_Albatross_0002_201.jpg"), "no").unwrap();
    let boxes = dir.path().join("CUB_200_2011/bounding_boxes.txt");
    fs::write(&boxes, fs::read_to_string(&boxes).unwrap().replacen("12.0", "wide", 1)).unwrap();
    let damaged = report(dir.path());
    assert_eq!((damaged.splits[0].found, damaged.splits[1].found), (5, 2));
    let said = format!("{:?}", damaged.problems);
    says(
        &said,
        &[
            "Laysan_Albatross_0001_100.jpg",
            "is missing",
            "Sooty_Albatross_0002_201.jpg",
            "bounding_boxes.txt",
            "line 1",
        ],
    );

    for name in ["svhn", "imagenet", "dogs"] {
        let report = report(&fixture(name));
        assert!(!report.is_whole() && report.splits[0].found >= 4, "{report:?}");
    }
    let cifar = report(&fixture("cifar-10-batches-py"));
    assert_eq!(cifar.problems.len(), 6, "each file is too short");
}

#[test]
fn packs_are_what_they_were_packed_from() {
    let dir = TempDir::new().unwrap();
    for name in ["svhn", "imagenet", "cub200", "dogs"] {
        let (from, to) = (fixture(name), dir.path().join(format!("{name}.pack")));
        pack(from.to_str().unwrap(), &to, Some(20), false, &|_, _| {}).unwrap();
        for validation in [None, Some(1)] {
            let options = LoadOptions {
                size: Some(20),
                limit: Some(3),
                validation,
                seed: 8,
                ..LoadOptions::default()
            };
            let open = |path: &Path| open(path.to_str().unwrap(), &options).unwrap();
            let (a, b) = (open(&from), open(&to));
            assert_eq!((&a.name, a.mean, a.std), (&b.name, b.mean, b.std));
            assert_eq!(a.train.pictures.len(), 3 - validation.unwrap_or(0));
            let tests = (a.test.as_ref().unwrap(), b.test.as_ref().unwrap());
            assert!(validation.is_none_or(|n| n == tests.0.pictures.len()));
            for (a, b) in [(&a.train, &b.train), tests] {
                assert_eq!((&a.names, &a.labels), (&b.names, &b.labels), "{name}");
                assert_eq!(a.pictures.raw(), b.pictures.raw(), "{name}");
            }
        }
    }
}
