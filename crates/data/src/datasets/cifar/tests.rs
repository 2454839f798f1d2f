//! Small copies of the official files, whole and damaged. The python ones come from
//! tools/golden/cifar_fixtures.py, which says what their bytes are.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::test_folder::fixture;

/// Byte `p` (in planes) of picture `i` of file `f`.
fn pixel(f: usize, i: usize, p: usize) -> u8 {
    ((f * 97 + i * 31 + p * 7) % 251) as u8
}

fn label(f: usize, i: usize, classes: usize) -> u32 {
    ((f * 3 + i * 5) % classes) as u32
}

fn check_split(split: &Split, first_file: usize, classes: usize) {
    let labels = split.labels.as_ref().unwrap();
    assert_eq!(labels.len(), split.pictures.len());
    for n in 0..split.pictures.len() {
        let (f, i) = (first_file + n / 2, n % 2);
        assert_eq!(labels.get(n), label(f, i, classes));
        for (p, rgb) in split.pictures.picture(n).chunks_exact(3).enumerate() {
            let expected = [0, 1, 2].map(|c| pixel(f, i, c * PLANE + p));
            assert_eq!(rgb, expected, "file {f}, picture {i}, pixel {p}");
        }
    }
}

fn small(path: &Path) -> Result<Dataset, DataError> {
    Ok(open_small(path)?.expect("nothing found"))
}

fn check10(path: &Path) {
    let data = small(path).unwrap();
    assert_eq!((data.name.as_str(), data.train.pictures.len()), ("cifar10", 10));
    check_split(&data.train, 0, 10);
    check_split(&data.test.unwrap(), 5, 10);
    let classes = data.train.labels.unwrap().classes().to_vec();
    assert_eq!((classes[0].as_str(), classes[9].as_str()), ("airplane", "truck"));
    assert_eq!(data.mean, [0.4914, 0.4822, 0.4465]);
}

fn check100(path: &Path) {
    let data = small(path).unwrap();
    assert_eq!((data.name.as_str(), data.train.pictures.len()), ("cifar100", 2));
    check_split(&data.train, 0, 100);
    check_split(&data.test.unwrap(), 1, 100);
    assert_eq!(data.train.labels.unwrap().classes()[99], "fine 99");
    assert_eq!(data.std, [0.2673, 0.2564, 0.2762]);
}

fn binary_file(f: usize, classes: usize, coarse: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..2 {
        bytes.extend(coarse.then_some(19));
        bytes.push(label(f, i, classes) as u8);
        bytes.extend((0..PIXELS).map(|p| pixel(f, i, p)));
    }
    bytes
}

fn binary10(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for f in 0..5 {
        fs::write(folder.join(format!("data_batch_{}.bin", f + 1)), binary_file(f, 10, false))
            .unwrap();
    }
    fs::write(folder.join("test_batch.bin"), binary_file(5, 10, false)).unwrap();
    let names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    fs::write(folder.join("batches.meta.txt"), names).unwrap();
}

fn binary100(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("train.bin"), binary_file(0, 100, true)).unwrap();
    fs::write(folder.join("test.bin"), binary_file(1, 100, true)).unwrap();
    let names: String = (0..100).map(|c| format!("fine {c}\n")).collect();
    fs::write(folder.join("fine_label_names.txt"), names).unwrap();
}

/// Packs `folder` under its own name, as the official archives do.
fn pack(folder: &Path, archive: &Path) {
    let gz = flate2::write::GzEncoder::new(fs::File::create(archive).unwrap(), Default::default());
    let mut tar = tar::Builder::new(gz);
    tar.append_dir_all(folder.file_name().unwrap(), folder).unwrap();
    tar.into_inner().unwrap().finish().unwrap();
}

#[test]
fn folders_of_both_forms_and_their_parents() {
    check10(&fixture("cifar-10-batches-py"));
    check100(&fixture("cifar-100-python"));
    let dir = TempDir::new().unwrap();
    binary10(&dir.path().join("a/cifar-10-batches-bin"));
    check10(&dir.path().join("a/cifar-10-batches-bin"));
    check10(&dir.path().join("a"));
    binary100(&dir.path().join("b/cifar-100-binary"));
    check100(&dir.path().join("b/cifar-100-binary"));
    check100(&dir.path().join("b"));
}

#[test]
fn archives_of_both_forms_and_folders_with_one() {
    let dir = TempDir::new().unwrap();
    binary10(&dir.path().join("a/cifar-10-batches-bin"));
    binary100(&dir.path().join("a/cifar-100-binary"));
    for (folder, archive, check) in [
        (dir.path().join("a/cifar-10-batches-bin"), "cifar-10-binary.tar.gz", check10 as fn(&Path)),
        (fixture("cifar-10-batches-py"), "10/cifar-10-python.tar.gz", check10),
        (dir.path().join("a/cifar-100-binary"), "renamed.TGZ", check100),
        (fixture("cifar-100-python"), "100/cifar-100-python.tar.gz", check100),
    ] {
        let path = dir.path().join(archive);
        let within = path.parent().unwrap();
        fs::create_dir_all(within).unwrap();
        pack(&folder, &path);
        check(&path);
        if within != dir.path() {
            check(within);
        }
    }
}

#[test]
fn an_archive_of_any_name_is_told_by_its_files() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("renamed.tgz");
    let found = |asked| [&CIFAR10, &CIFAR100].map(|set| locate(set, &path, asked).is_some());
    pack(&fixture("cifar-100-python"), &path);
    assert_eq!((found(false), found(true)), ([false, true], [true, true]));
    pack(&fixture("cifar-10-batches-py"), &path);
    assert_eq!(found(false), [true, false]);
    pack(&fixture("svhn"), &path);
    assert_eq!(found(false), [false, false]);
    assert!(open(&CIFAR10, &path).unwrap_err().to_string().contains("this is not CIFAR-10"));
    fs::write(&path, "no archive").unwrap();
    assert_eq!(found(false), [true, false], "one of them has to say why");
    assert!(open(&CIFAR10, &path).unwrap_err().to_string().contains("cannot be read"));
}

#[test]
fn places_are_those_of_the_forms() {
    for set in [&CIFAR10, &CIFAR100] {
        let forms = FORMS.iter().filter(|form| is_of(set)(form));
        let places: Vec<&str> = forms.flat_map(|form| [form.folder, form.archive]).collect();
        assert_eq!(set.places, places);
    }
}

#[test]
fn resaved_by_python_3() {
    for protocol in [2, 3, 4] {
        let dir = TempDir::new().unwrap();
        anchorhood_testing::copy_folder(&fixture("cifar-10-batches-py"), dir.path());
        let resaved = fixture(&format!("resaved/protocol-{protocol}"));
        fs::copy(resaved, dir.path().join("data_batch_1")).unwrap();
        check10(dir.path());
    }
}

#[test]
fn wrong_lengths_name_the_file_and_both_lengths() {
    let dir = TempDir::new().unwrap();
    binary10(dir.path());
    fs::write(dir.path().join("data_batch_3.bin"), vec![0; 6145]).unwrap();
    let message = small(dir.path()).unwrap_err().to_string();
    for part in ["data_batch_3.bin", "6146", "6145"] {
        assert!(message.contains(part), "{message}");
    }
    // The official length is asked for outside tests.
    binary10(dir.path());
    let message = open(&CIFAR10, dir.path()).unwrap_err().to_string();
    assert!(message.contains("30730000") && message.contains("6146"), "{message}");
}

#[test]
fn missing_files_and_labels_out_of_range_are_named() {
    let dir = TempDir::new().unwrap();
    binary10(dir.path());
    fs::remove_file(dir.path().join("data_batch_4.bin")).unwrap();
    assert!(small(dir.path()).unwrap_err().to_string().contains("data_batch_4.bin is missing"));
    binary10(dir.path());
    let mut bytes = binary_file(5, 10, false);
    bytes[3073] = 77;
    fs::write(dir.path().join("test_batch.bin"), bytes).unwrap();
    let message = small(dir.path()).unwrap_err().to_string();
    assert!(message.contains("record 1") && message.contains("77"), "{message}");
}

#[test]
fn without_good_names_classes_go_by_number() {
    let dir = TempDir::new().unwrap();
    binary10(dir.path());
    fs::write(dir.path().join("batches.meta.txt"), "only one\n").unwrap();
    let data = small(dir.path()).unwrap();
    assert_eq!(data.train.labels.unwrap().classes()[3], "3");
}

#[test]
fn a_picture_folder_is_not_cifar() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("train/a")).unwrap();
    fs::create_dir_all(dir.path().join("test/a")).unwrap();
    assert!([&CIFAR10, &CIFAR100].iter().all(|set| locate(set, dir.path(), true).is_none()));
}

#[test]
fn a_cut_archive_is_refused() {
    let dir = TempDir::new().unwrap();
    let archive = dir.path().join("cifar-100-python.tar.gz");
    pack(&fixture("cifar-100-python"), &archive);
    let whole = fs::read(&archive).unwrap();
    for length in (1..8).map(|eighth| whole.len() * eighth / 8) {
        fs::write(&archive, &whole[..length]).unwrap();
        assert!(open_small(&archive).is_err(), "cut at {length}");
    }
}

/// The real data set, where there is one.
#[test]
fn official_cifar10() {
    let Some(place) = anchorhood_testing::variable("ANCHORHOOD_CIFAR10", "a CIFAR-10") else {
        return;
    };
    let data = open(&CIFAR10, Path::new(&place)).unwrap();
    let test = data.test.unwrap();
    assert_eq!((data.train.pictures.len(), test.pictures.len()), (50_000, 10_000));
    for (labels, each) in [(data.train.labels.unwrap(), 5000), (test.labels.unwrap(), 1000)] {
        for class in 0..10 {
            assert_eq!(labels.values().iter().filter(|&&v| v == class).count(), each);
        }
    }
    // The published mean; the published deviation is of another kind (the mean over pictures), and
    // smaller.
    let (mean, _) = crate::statistics::measure(&data.train.pictures);
    for c in 0..3 {
        assert!((mean[c] - data.mean[c]).abs() < 1e-4, "{mean:?}");
    }
}
