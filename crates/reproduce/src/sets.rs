//! Where the data sets lie, and what was read of them.

use std::path::Path;

use anchorhood_data::{DataError, Dataset, DatasetSpec, Split, find_dataset};
use twox_hash::XxHash3_128;

use crate::{DataRecord, SMALL_SET};

/// What to open for a published set: by its name alone, or where it lies under a folder.
pub fn spec_of(set: &str, folder: Option<&Path>) -> String {
    let Some(folder) = folder else {
        return match set {
            SMALL_SET => format!("data/{set}"),
            set => set.into(),
        };
    };
    if set == SMALL_SET {
        return folder.join(set).display().to_string();
    }
    let own = find_dataset(set).map(|set| folder.join(set.folder));
    let place = own.filter(|p| p.is_dir()).unwrap_or_else(|| folder.into());
    format!("{set}:{}", place.display())
}

/// Why a set's rows are left out, if the set is not there; other errors are the copy's own, and
/// worth stopping for.
pub fn missing(set: &str, error: &DataError) -> Option<String> {
    if set == SMALL_SET && error.is_usage() {
        return Some(format!(
            "{set} is not on disk: a folder of this name beside the other sets is needed, with a \
             sub-folder for each class"
        ));
    }
    let set = find_dataset(set).filter(|_| error.is_usage())?;
    Some(format!("{} is not on disk: {}", set.title, way_out(set)))
}

fn way_out(set: &DatasetSpec) -> String {
    let needed: Vec<String> = (set.archives.iter())
        .filter(|a| !a.optional)
        .map(|a| format!("{} ({} MB)", a.file, a.megabytes))
        .collect();
    match needed.is_empty() {
        true => format!(
            "its archives need an account at {}; `anchorhood data fetch {}` says what to put where",
            set.homepage, set.name
        ),
        false => format!(
            "the official {} is needed, `anchorhood data fetch {}` gets it",
            needed.join(" and "),
            set.name
        ),
    }
}

/// Pictures of a split that the fingerprint reads.
const LOOKED_AT: usize = 1000;

/// What the figures were made from.
pub fn record(data: &Dataset) -> DataRecord {
    let mut hash = XxHash3_128::default();
    let test = data.test.as_ref();
    for split in std::iter::once(&data.train).chain(test) {
        add(&mut hash, split);
    }
    DataRecord {
        name: data.name.clone(),
        train: data.train.pictures.len(),
        test: test.map_or(0, |t| t.pictures.len()),
        size: data.train.pictures.height(),
        classes: data.train.labels.as_ref().map_or(0, |l| l.classes().len()),
        fingerprint: format!("xxh3-128:{:032x}", hash.finish_128()),
    }
}

/// Counts, all labels, and the pixels of pictures at equal distances: of a set that is decoded on
/// demand, reading all would take as long as an epoch.
fn add(hash: &mut XxHash3_128, split: &Split) {
    let n = split.pictures.len();
    hash.write(&(n as u64).to_le_bytes());
    for label in split.labels.iter().flat_map(|l| l.values()) {
        hash.write(&label.to_le_bytes());
    }
    let mut scratch = vec![];
    for i in (0..n).step_by(n.div_ceil(LOOKED_AT).max(1)) {
        hash.write(split.pictures.picture_in(i, &mut scratch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_data::{LoadOptions, open};

    #[test]
    fn other_pictures_have_another_fingerprint() {
        let data = |seed| {
            let options =
                LoadOptions { seed, shapes_train: 20, shapes_test: 10, ..LoadOptions::default() };
            record(&open("shapes", &options).unwrap())
        };
        assert_eq!(data(0), data(0));
        assert_ne!(data(0).fingerprint, data(1).fingerprint);
        assert_eq!((data(0).train, data(0).test, data(0).classes), (20, 10, 10));
    }

    #[test]
    fn a_missing_set_names_its_archive_and_the_command() {
        let folder = tempfile::tempdir().unwrap();
        for (set, archive) in [
            ("svhn", "train_32x32.mat"),
            ("cifar100", "cifar-100-binary.tar.gz"),
            ("imagenet", "account"),
        ] {
            let spec = spec_of(set, Some(folder.path()));
            let error = open(&spec, &LoadOptions::default()).unwrap_err();
            let said = missing(set, &error).unwrap();
            let fetch = format!("anchorhood data fetch {set}");
            assert!(said.contains(archive) && said.contains(&fetch), "{said}");
            assert!(!said.contains("extra_32x32"), "{said}");
        }
    }
}
