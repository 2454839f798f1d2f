//! A folder of pictures: someone's own photographs, flat or nested, with or without classes.
//!
//! * Classes are the first-level sub-folders, if they [look like classes](labels): at least two with pictures, none beside them, and
//!   neither dates nor places.
//! * `train/` with `test/` or `val/` gives the two parts; otherwise, where there are classes, a share is held out.
//! * Files that cannot be read are skipped and named; more than a tenth of them is an error. Files of kinds that are not read are
//!   counted.

mod labels;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

pub use labels::{FolderLabels, LabelChoice};

use crate::DataError;
use crate::files::kinds::passed_over;
use crate::files::scan::{Found, scan};
use crate::files::{Candidate, FolderReport, Listing, Part};

/// Side of the pictures unless another is asked for.
pub const SIZE: usize = 32;

/// The pictures under `root`.
pub(crate) fn list(root: &Path, labels: LabelChoice) -> Result<Listing, DataError> {
    let name = name_of(root);
    let (train, test, found, decided) = parts(root, &name, labels)?;
    if labels == LabelChoice::Folders && !matches!(decided, FolderLabels::Classes(_)) {
        return Err(DataError::BadOption {
            option: "labels",
            why: format!("{}: {decided}", root.display()),
        });
    }
    Ok(Listing {
        name,
        root: root.into(),
        holds_out: test.is_none(),
        train,
        test,
        unreadable: found.unreadable,
        report: FolderReport {
            labels: Some(decided),
            passed_over: passed_over(&found.others),
        },
        facts: None,
    })
}

/// The folder's own name, also when it was given as `.`.
fn name_of(root: &Path) -> String {
    let full = root.canonicalize().unwrap_or_else(|_| root.into());
    full.file_name()
        .map_or_else(|| "pictures".into(), |n| n.to_string_lossy().into_owned())
}

/// The files to train on, those to test on, what else was found, and whether there are classes.
fn parts(
    root: &Path,
    name: &str,
    labels: LabelChoice,
) -> Result<(Part, Option<Part>, Found, FolderLabels), DataError> {
    for test in ["test", "val"] {
        if !(root.join("train").is_dir() && root.join(test).is_dir()) {
            continue;
        }
        let (a, b) = (scan(&root.join("train"))?, scan(&root.join(test))?);
        if !a.candidates.is_empty() && !b.candidates.is_empty() {
            return Ok(given_parts(a, b, test, labels));
        }
    }
    let mut found = scan(root)?;
    let (classes, decided) = labels::decide(&found.candidates, name, labels);
    let whole = part(std::mem::take(&mut found.candidates), None, classes);
    Ok((whole, None, found, decided))
}

/// Both parts number their classes alike: by the names of either, sorted.
fn given_parts(
    mut train: Found,
    mut test: Found,
    test_name: &str,
    labels: LabelChoice,
) -> (Part, Option<Part>, Found, FolderLabels) {
    let (classes, decided) = labels::decide(&train.candidates, "train", labels);
    let others = classes_of(&test.candidates, 1);
    let union = |a: &Vec<String>, b: Option<&Vec<String>>| {
        let all: BTreeSet<&String> = a.iter().chain(b.into_iter().flatten()).collect();
        all.into_iter().cloned().collect::<Vec<String>>()
    };
    let both = classes
        .as_ref()
        .map(|classes| union(classes, others.as_ref()));
    let of_test = both.clone().filter(|_| others.is_some());
    let train_part = part(std::mem::take(&mut train.candidates), Some("train"), both);
    let test_part = part(
        std::mem::take(&mut test.candidates),
        Some(test_name),
        of_test,
    );
    (
        train_part,
        Some(test_part),
        train.counted_with(&test),
        decided,
    )
}

/// The first-level folders, if every picture lies in one and there are at least `least`.
pub(crate) fn classes_of(candidates: &[Candidate], least: usize) -> Option<Vec<String>> {
    let folders: Option<BTreeSet<&str>> = candidates.iter().map(Candidate::first_folder).collect();
    let folders = folders.filter(|f| f.len() >= least)?;
    Some(folders.into_iter().map(str::to_owned).collect())
}

/// Files with the class that their first folder says, named from one folder further up.
pub(crate) fn part(
    files: Vec<Candidate>,
    under: Option<&str>,
    classes: Option<Vec<String>>,
) -> Part {
    let class = |file: &Candidate| {
        let (classes, folder) = (classes.as_deref()?, file.first_folder()?);
        let found = classes.binary_search_by(|c| c.as_str().cmp(folder));
        Some(found.unwrap_or(0) as u32)
    };
    let values = match &classes {
        Some(_) => files.iter().map(|f| class(f).unwrap_or(0)).collect(),
        None => Vec::new(),
    };
    let files = match under {
        Some(folder) => files.into_iter().map(|f| f.under(folder)).collect(),
        None => files,
    };
    Part {
        files,
        values,
        classes,
    }
}
