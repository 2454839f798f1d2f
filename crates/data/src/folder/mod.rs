//! A folder of pictures: someone's own photographs, flat or nested, with or without classes.
//!
//! * A tar archive is like a folder, and a list of files names them itself.
//! * Classes are the first-level sub-folders, if they [look like classes](labels): at least two
//!   with pictures, none beside them, and neither dates nor places.
//! * `train/` with `test/` or `val/` gives the two parts; otherwise, where there are classes, a
//!   share is held out.
//! * Files that cannot be read are skipped and named; more than a tenth of them is an error. Files
//!   of kinds that are not read are counted.

mod labels;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use labels::{FolderLabels, LabelChoice};

use crate::files::kinds::passed_over;
use crate::files::scan::{Found, first_folder, scan};
use crate::files::{FolderReport, Listing, Part, archive, list};
use crate::{DataError, Labels};

/// Side of the pictures unless another is asked for.
pub const SIZE: usize = 32;

/// The pictures under `root`, a folder or an archive, or of the list that `root` is.
pub(crate) fn list(root: &Path, labels: LabelChoice) -> Result<Listing, DataError> {
    let name = name_of(root);
    let is_list = root.is_file() && !archive::is_archive(root);
    let (folder, (train, test, found, decided)) = if is_list {
        let (folder, found) = list::read(root)?;
        (folder, one_part(found, &name, labels))
    } else {
        (root.into(), parts(root, &name, labels)?)
    };
    if labels == LabelChoice::Folders && !matches!(decided, FolderLabels::Classes(_)) {
        return Err(DataError::option("labels", format!("{}: {decided}", root.display())));
    }
    Ok(Listing {
        name,
        root: folder,
        holds_out: test.is_none(),
        train,
        test,
        unreadable: found.unreadable,
        missing: vec![],
        report: FolderReport {
            labels: Some(decided),
            passed_over: passed_over(&found.others, found.special),
        },
        set: None,
    })
}

/// The folder's own name, also when it was given as `.`.
fn name_of(root: &Path) -> String {
    let full = root.canonicalize().unwrap_or_else(|_| root.into());
    let name = if full.is_dir() { full.file_name() } else { full.file_stem() };
    name.map_or_else(|| "pictures".into(), |n| n.to_string_lossy().into_owned())
}

/// The files to train on, those to test on, what else was found, and whether there are classes.
type Parts = (Part, Option<Part>, Found, FolderLabels);

fn parts(root: &Path, name: &str, labels: LabelChoice) -> Result<Parts, DataError> {
    for test in ["test", "val"] {
        if !(root.join("train").is_dir() && root.join(test).is_dir()) {
            continue;
        }
        let (a, b) = (scan(&root.join("train"))?, scan(&root.join(test))?);
        if !a.candidates.is_empty() && !b.candidates.is_empty() {
            return Ok(given_parts(a, b, test, labels));
        }
    }
    Ok(one_part(scan(root)?, name, labels))
}

fn one_part(mut found: Found, name: &str, labels: LabelChoice) -> Parts {
    let decided = labels::decide(&found, name, labels);
    let labels = class_of_each(&found, &decided).map(Labels::from_names);
    let files = std::mem::take(&mut found.candidates);
    (Part { files, labels }, None, found, decided)
}

/// Both parts number their classes alike: by the names of either, sorted.
fn given_parts(mut train: Found, mut test: Found, test_name: &str, labels: LabelChoice) -> Parts {
    let decided = labels::decide(&train, "train", labels);
    let mut of_train = class_of_each(&train, &decided).map(Labels::from_names);
    // Without classes in train there is nothing to compare those of the test part with.
    let of_test = class_of_each(&test, &decided).filter(|_| of_train.is_some());
    let mut of_test = of_test.map(Labels::from_names);
    Labels::number_alike(&mut of_train, &mut of_test);
    let files = within("train", std::mem::take(&mut train.candidates));
    let train_part = Part { files, labels: of_train };
    let files = within(test_name, std::mem::take(&mut test.candidates));
    let test_part = Part { files, labels: of_test };
    (train_part, Some(test_part), train.counted_with(&test), decided)
}

/// The class of each candidate, where it was decided that there are classes and all have one.
fn class_of_each(found: &Found, decided: &FolderLabels) -> Option<Vec<String>> {
    let files = found.candidates.iter();
    match decided {
        FolderLabels::Classes(_) => files.map(|f| first_folder(f).map(str::to_owned)).collect(),
        FolderLabels::Told(_) => files.map(|f| found.told.get(f).cloned()).collect(),
        _ => None,
    }
}

/// Files with the class that their first folder says, named from one folder further up; none where
/// one lies in no folder.
pub(crate) fn classed(files: Vec<String>, under: &str) -> Option<Part> {
    let classes: Option<Vec<&str>> = files.iter().map(|file| first_folder(file)).collect();
    let labels = Labels::from_names(classes?);
    Some(Part { files: within(under, files), labels: Some(labels) })
}

/// Files named from one folder further up.
fn within(folder: &str, files: Vec<String>) -> Vec<String> {
    files.into_iter().map(|file| format!("{folder}/{file}")).collect()
}
