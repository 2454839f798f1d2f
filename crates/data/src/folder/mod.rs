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

use std::collections::BTreeSet;
use std::path::Path;

pub use labels::{FolderLabels, LabelChoice};

use crate::DataError;
use crate::files::kinds::passed_over;
use crate::files::scan::{Found, first_folder, scan};
use crate::files::{FolderReport, Listing, Part, archive, list};

/// Side of the pictures unless another is asked for.
pub const SIZE: usize = 32;

/// The pictures under `root`, a folder or an archive, or of the list that `root` is.
pub(crate) fn list(root: &Path, labels: LabelChoice) -> Result<Listing, DataError> {
    let name = name_of(root);
    let is_list = root.is_file() && !archive::is_archive(root);
    let (folder, (train, test, found, decided)) = if is_list {
        let (folder, found) = list::read(root)?;
        (folder, one_part(found, &name, labels)?)
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
        report: FolderReport {
            labels: Some(decided),
            passed_over: passed_over(&found.others, found.special),
        },
        facts: None,
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
            return given_parts(a, b, test, labels);
        }
    }
    one_part(scan(root)?, name, labels)
}

fn one_part(mut found: Found, name: &str, labels: LabelChoice) -> Result<Parts, DataError> {
    let decided = labels::decide(&found, name, labels);
    let each = class_of_each(&found, &decided);
    let classes = each.as_ref().map(|each| sorted(each.iter()));
    let files = std::mem::take(&mut found.candidates);
    let whole = classed(files, None, each.zip(classes))?;
    Ok((whole, None, found, decided))
}

/// Both parts number their classes alike: by the names of either, sorted.
fn given_parts(
    mut train: Found,
    mut test: Found,
    test_name: &str,
    labels: LabelChoice,
) -> Result<Parts, DataError> {
    let decided = labels::decide(&train, "train", labels);
    let (of_train, of_test) = (class_of_each(&train, &decided), class_of_each(&test, &decided));
    let both = of_train.iter().flatten().chain(of_test.iter().flatten());
    let both = sorted(both);
    let (files, others) =
        (std::mem::take(&mut train.candidates), std::mem::take(&mut test.candidates));
    // Without classes in train there is nothing to compare those of the test part with.
    let of_test = of_test.filter(|_| of_train.is_some());
    let test_part = classed(others, Some(test_name), of_test.map(|of| (of, both.clone())))?;
    let train_part = classed(files, Some("train"), of_train.map(|of| (of, both)))?;
    let found = train.counted_with(&test);
    Ok((train_part, Some(test_part), found, decided))
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

fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let all: BTreeSet<&String> = names.collect();
    all.into_iter().cloned().collect()
}

/// The first-level folders, if every picture lies in one and there are at least `least`.
pub(crate) fn classes_of(candidates: &[String], least: usize) -> Option<Vec<String>> {
    let folders: Option<BTreeSet<&str>> = candidates.iter().map(|f| first_folder(f)).collect();
    let folders = folders.filter(|f| f.len() >= least)?;
    Some(folders.into_iter().map(str::to_owned).collect())
}

/// Files with the class that their first folder says, which must be one of the sorted `classes`;
/// named from one folder further up.
pub(crate) fn part(
    files: Vec<String>,
    under: &str,
    classes: Vec<String>,
) -> Result<Part, DataError> {
    let each = files.iter().map(|f| first_folder(f).unwrap_or_default().to_owned());
    let each = each.collect();
    classed(files, Some(under), Some((each, classes)))
}

/// Files with the class of each and the sorted names of all, named from one folder further up.
fn classed(
    files: Vec<String>,
    under: Option<&str>,
    classes: Option<(Vec<String>, Vec<String>)>,
) -> Result<Part, DataError> {
    let files: Vec<String> = match under {
        Some(folder) => files.into_iter().map(|f| format!("{folder}/{f}")).collect(),
        None => files,
    };
    let (values, classes) = match classes {
        Some((each, all)) => {
            let numbers = each.iter().zip(&files);
            let numbers = numbers.map(|(class, file)| number_of(class, &all, file));
            (numbers.collect::<Result<_, _>>()?, Some(all))
        }
        None => (Vec::new(), None),
    };
    Ok(Part { files, values, classes })
}

/// Which of the sorted classes a file's is.
fn number_of(class: &String, all: &[String], file: &str) -> Result<u32, DataError> {
    let found = all.binary_search(class);
    let number = found.map_err(|_| {
        let why = format!("is of the class `{class}`, which is none of the set's {}", all.len());
        DataError::bad(file, format!("{why}; move it away, or see `anchorhood data check`"))
    });
    Ok(number? as u32)
}
