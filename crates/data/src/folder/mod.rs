//! A folder of pictures: someone's own photographs, flat or nested, with or without classes.
//!
//! * Classes are the first-level sub-folders, if there are at least two with pictures and none lie beside them.
//! * `train/` with `test/` or `val/` gives the two parts; otherwise, where there are classes, a share is held out.
//! * Files that cannot be read are skipped and named; more than a tenth of them is an error.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use crate::DataError;
use crate::files::scan::{Found, scan};
use crate::files::{Candidate, Listing, Part, Skipped};

/// Side of the pictures unless another is asked for.
pub const SIZE: usize = 32;

/// The pictures under `root`.
pub(crate) fn list(root: &Path) -> Result<Listing, DataError> {
    let (train, test, unreadable) = parts(root)?;
    Ok(Listing {
        name: name_of(root),
        root: root.into(),
        holds_out: test.is_none(),
        train,
        test,
        unreadable,
        facts: None,
    })
}

/// The folder's own name, also when it was given as `.`.
fn name_of(root: &Path) -> String {
    let full = root.canonicalize().unwrap_or_else(|_| root.into());
    full.file_name()
        .map_or_else(|| "pictures".into(), |n| n.to_string_lossy().into_owned())
}

/// The files to train on, those to test on, and folders that could not be read.
fn parts(root: &Path) -> Result<(Part, Option<Part>, Skipped), DataError> {
    for test in ["test", "val"] {
        if !(root.join("train").is_dir() && root.join(test).is_dir()) {
            continue;
        }
        let (a, b) = (scan(&root.join("train"))?, scan(&root.join(test))?);
        if !a.candidates.is_empty() && !b.candidates.is_empty() {
            return Ok(given_parts(a, b, test));
        }
    }
    let found = scan(root)?;
    let classes = classes_of(&found.candidates, 2);
    let whole = part(found.candidates, None, classes);
    Ok((whole, None, found.unreadable))
}

/// Both parts number their classes alike: by the names of either, sorted.
fn given_parts(train: Found, test: Found, test_name: &str) -> (Part, Option<Part>, Skipped) {
    let classes = classes_of(&train.candidates, 2);
    let others = classes_of(&test.candidates, 1);
    let union = |a: &Vec<String>, b: Option<&Vec<String>>| {
        let all: BTreeSet<&String> = a.iter().chain(b.into_iter().flatten()).collect();
        all.into_iter().cloned().collect::<Vec<String>>()
    };
    let both = classes
        .as_ref()
        .map(|classes| union(classes, others.as_ref()));
    let unreadable = train
        .unreadable
        .into_iter()
        .chain(test.unreadable)
        .collect();
    let of_test = both.clone().filter(|_| others.is_some());
    let train = part(train.candidates, Some("train"), both);
    let test = part(test.candidates, Some(test_name), of_test);
    (train, Some(test), unreadable)
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
