//! ImageNet (ILSVRC2012): `train/` with a folder for each synset; `val/` likewise, or flat with its
//! ground truth.
//!
//! The ground truth is a number for each validation picture, which `meta.mat` of the development
//! kit turns into a synset.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::lists::read_text;
use super::{DatasetSpec, IMAGENET_MEAN, IMAGENET_STD, Read};
use crate::check::check_listed;
use crate::files::scan::{first_folder, scan};
use crate::files::{Listing, Part};
use crate::folder::classed;
use crate::{DataError, Labels, mat};

/// ImageNet, ILSVRC2012. Tested on its validation images, as everybody does.
pub(super) static IMAGENET: DatasetSpec = DatasetSpec {
    name: "imagenet",
    title: "ImageNet (ILSVRC2012)",
    env_var: "ANCHORHOOD_IMAGENET",
    homepage: "https://image-net.org/challenges/LSVRC/2012/",
    train: 1_281_167,
    test: 50_000,
    classes: 1000,
    mean: IMAGENET_MEAN,
    std: IMAGENET_STD,
    size: 224,
    batch: 256,
    // As Wu et al. (2018) train on it, whose settings the paper takes over: lemniscate.pytorch's
    // main.py.
    settings: &[
        ("data.crops", "picture"),
        ("training.weight_decay", "0.0001"),
        ("discovery.temperature", "0.07"),
        ("augmentation.flip", "0.5"),
    ],
    folder: "imagenet",
    archives: &[],
    by_hand: "ILSVRC2012_img_train.tar (unpack it, and each of the 1,000 archives in it into \
              {folder}/train/SYNSET), ILSVRC2012_img_val.tar (into {folder}/val) and \
              ILSVRC2012_devkit_t12.tar.gz (into {folder})",
    layout: "train with a folder for each synset (n01440764 …), and val",
    places: &["imagenet", ""],
    locate,
    read: Read::Files(open),
    check: |folder, progress| Ok(check_listed(&IMAGENET, folder, list(folder), progress)),
};

const TRUTH: &str = "ILSVRC2012_validation_ground_truth.txt";
/// Where the development kit may have been unpacked, from the folder with `train` and `val`.
const KITS: [&str; 4] = ["ILSVRC2012_devkit_t12/data", "devkit/data", "data", ""];
const MOST_BYTES: u64 = 64 << 20;

/// The folder with `train` and `val`: `path` itself or `imagenet` in it. A set with synsets that is
/// not all of ImageNet is taken for it only if `asked` for, or if its validation pictures lie flat
/// under their official names.
fn locate(path: &Path, asked: bool) -> Option<PathBuf> {
    let places = [path.to_owned(), path.join("imagenet")];
    places.into_iter().find(|place| is_it(place, asked))
}

fn is_it(place: &Path, asked: bool) -> bool {
    let (train, val) = (place.join("train"), place.join("val"));
    if !(train.is_dir() && val.is_dir()) {
        return false;
    }
    let synsets = names_in(&train).filter(|name| is_synset(name)).count();
    let flat = || names_in(&val).any(|name| number_of(&name).is_some());
    synsets > 0 && (asked || synsets == IMAGENET.classes || flat())
}

fn names_in(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// `n` and eight digits.
fn is_synset(name: &str) -> bool {
    let digits = name.strip_prefix('n');
    digits.is_some_and(|d| d.len() == 8 && d.bytes().all(|b| b.is_ascii_digit()))
}

/// The number in `ILSVRC2012_val_00000001.JPEG`.
fn number_of(name: &str) -> Option<usize> {
    let number = name.strip_prefix("ILSVRC2012_val_")?;
    number.split_once('.')?.0.parse().ok()
}

/// The set in its folder; every picture that the ground truth counts must be there.
fn open(folder: &Path) -> Result<Listing, DataError> {
    let listing = list(folder)?;
    let Some(first) = listing.missing.first() else {
        return Ok(listing);
    };
    let missing = listing.missing.len();
    let named = listing.test.as_ref().map_or(0, |t| t.files.len()) + missing;
    Err(DataError::not_there(kit_file(folder, TRUTH)?, named, missing, &folder.join(first)))
}

/// What lies in the folders, and the validation pictures that should lie there too.
fn list(folder: &Path) -> Result<Listing, DataError> {
    let (train, val) = (scan(&folder.join("train"))?, scan(&folder.join("val"))?);
    let synsets = |part: &Part| {
        let classes = part.classes();
        !classes.is_empty() && classes.iter().all(|class| is_synset(class))
    };
    let train_part = classed(train.candidates, "train").filter(synsets).ok_or_else(|| {
        let expected = "expected nothing but folders named after synsets, such as n01440764";
        DataError::bad(folder.join("train"), expected)
    })?;
    let classes = train_part.classes();
    let foldered = val.candidates.iter().all(|f| first_folder(f).is_some());
    let (test, missing) = match foldered {
        true => (foldered_val(folder, val.candidates, classes)?, Vec::new()),
        false => flat_val(folder, val.candidates, classes)?,
    };
    Ok(Listing {
        unreadable: [train.unreadable, val.unreadable].concat(),
        missing,
        ..Listing::published(&IMAGENET, folder, train_part, test)
    })
}

fn foldered_val(folder: &Path, files: Vec<String>, classes: &[String]) -> Result<Part, DataError> {
    let part = classed(files, "val").expect("each lies in a folder");
    let only = |a: &[String], b: &[String]| a.iter().find(|&c| !b.contains(c)).cloned();
    let wrong = match (only(part.classes(), classes), only(classes, part.classes())) {
        (Some(extra), _) => Some((extra, "is here and not in train")),
        (_, Some(lacking)) => Some((lacking, "is in train and not here")),
        _ => None,
    };
    match wrong {
        None => Ok(part),
        Some((class, how)) => Err(DataError::bad(
            folder.join("val"),
            format!("expected the same class folders as in train: {class} {how}"),
        )),
    }
}

/// A flat folder's pictures with the classes of the ground truth, and the names of those missing.
fn flat_val(
    folder: &Path,
    files: Vec<String>,
    classes: &[String],
) -> Result<(Part, Vec<String>), DataError> {
    let truth = ground_truth(folder, classes)?;
    let mut seen = vec![false; truth.len()];
    let mut values = Vec::with_capacity(files.len());
    for file in &files {
        let number = number_of(file).filter(|n| (1..=truth.len()).contains(n));
        let number = number.ok_or_else(|| DataError::bad(folder.join("val").join(file), format!(
                "expected ILSVRC2012_val_00000001.JPEG to ILSVRC2012_val_{:08}.JPEG, as many as \
                 {TRUTH} has lines",
                truth.len()
            )))?;
        seen[number - 1] = true;
        values.push(truth[number - 1]);
    }
    let missing = seen.iter().enumerate().filter(|(_, seen)| !**seen);
    let missing = missing.map(|(i, _)| format!("val/ILSVRC2012_val_{:08}.JPEG", i + 1));
    let missing = missing.collect();
    let part = Part {
        files: files.into_iter().map(|f| format!("val/{f}")).collect(),
        labels: Some(Labels::new(values, classes.to_vec())),
    };
    Ok((part, missing))
}

/// The class of each validation picture, by its number.
fn ground_truth(folder: &Path, classes: &[String]) -> Result<Vec<u32>, DataError> {
    let path = kit_file(folder, TRUTH)?;
    let synsets = synsets_by_id(&kit_file(folder, "meta.mat")?)?;
    let text = read_text(&path, MOST_BYTES)?;
    let class = |(line, row): (usize, &str)| {
        let bad =
            |reason: String| DataError::bad(path.clone(), format!("line {}: {reason}", line + 1));
        let id: Option<u32> = row.trim().parse().ok();
        let synset = id.and_then(|id| synsets.get(&id));
        let synset = synset
            .ok_or_else(|| bad(format!("expected a class number of meta.mat, found {row:?}")))?;
        let at = classes
            .binary_search(synset)
            .map_err(|_| bad(format!("is of the class {synset}, which has no folder in train")))?;
        Ok(at as u32)
    };
    text.lines().enumerate().map(class).collect()
}

/// A file of the development kit.
fn kit_file(folder: &Path, name: &str) -> Result<PathBuf, DataError> {
    let places = KITS.map(|kit| folder.join(kit).join(name));
    let found = places.iter().find(|place| place.is_file()).cloned();
    found.ok_or_else(|| {
        DataError::bad(
            folder.join("val"),
            format!(
                "its pictures lie flat, so that {name} is needed to know their classes; unpack \
             ILSVRC2012_devkit_t12.tar.gz into {}",
                folder.display()
            ),
        )
    })
}

/// Synsets by the number that the challenge gave them.
fn synsets_by_id(path: &Path) -> Result<HashMap<u32, String>, DataError> {
    let [synsets] = mat::read(path, ["synsets"], MOST_BYTES)?;
    let mut found = HashMap::new();
    let mut element = 0;
    while let Some(id) = synsets.field(element, "ILSVRC2012_ID") {
        let id = id.numbers().and_then(|n| n.first().map(|&n| n as u32));
        let synset = synsets.field(element, "WNID").and_then(|w| w.text());
        if let (Some(id), Some(synset)) = (id, synset) {
            found.insert(id, synset.trim().to_owned());
        }
        element += 1;
    }
    if found.is_empty() {
        Err(DataError::bad(path, "expected structures called synsets with ILSVRC2012_ID and WNID"))
    } else {
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LoadOptions;
    use crate::files::open_within;
    use crate::test_folder::{assert_same, fixture};

    /// A published set is not decoded when it is opened; what is decoded later is what memory would
    /// have held. A file that cannot be read is the same plain grey picture in memory, on demand
    /// and in a pack, under its own label, and is named.
    #[test]
    fn too_large_for_memory_and_with_an_unreadable_picture() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("imagenet");
        anchorhood_testing::copy_folder(&fixture("imagenet"), &folder);
        let first = list(&folder).unwrap().train.files[0].clone();
        std::fs::write(folder.join(&first), "no picture").unwrap();
        let options = LoadOptions { size: Some(24), ..LoadOptions::default() };
        let load = |most, decoded| {
            let read = std::sync::atomic::AtomicUsize::new(0);
            let count = |done, _| read.store(done, std::sync::atomic::Ordering::Relaxed);
            let data = open_within(open(&folder).unwrap(), &options, &count, most).unwrap();
            assert_eq!(read.into_inner(), decoded);
            data
        };
        let to = dir.path().join("imagenet.pack");
        let spec = format!("imagenet:{}", folder.display());
        crate::pack(&spec, &to, Some(24), false, &|_, _| {}).unwrap();
        let pack = crate::open(to.to_str().unwrap(), &LoadOptions::default()).unwrap();
        let all = [load(u64::MAX, 10), load(0, 0), pack];
        assert!(!all[1].train.pictures.is_resident());
        for data in &all {
            assert_same(data, &all[0]);
            let pictures = &data.train.pictures;
            assert!(data.skipped.is_empty());
            assert!(pictures.picture(0).iter().all(|&v| v == 128));
            let failures = pictures.failures();
            assert_eq!((failures.len(), &failures[0].0), (1, &first));
            assert_eq!(failures[0].1, all[0].train.pictures.failures()[0].1);
        }
    }
}
