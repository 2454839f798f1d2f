//! CIFAR-10 and CIFAR-100 as their authors publish them: binary or python files, in a folder or a
//! `.tar.gz`.
//!
//! Whichever it is read from, the pictures, their order and their labels are the same. A file of
//! another length than the official one is refused: half a data set must not pass for the whole.

mod dictionary;
mod kind;
mod source;
#[cfg(test)]
mod tests;

use std::path::Path;

use rayon::prelude::*;

use dictionary::Dictionary;
use kind::{Coding, FORMS, Form};
use source::Source;

use crate::sets::SetFacts;
use crate::statistics::Sums;
use crate::{DataError, Dataset, Labels, Pictures, Split};

/// Side of a CIFAR picture.
const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
const PIXELS: usize = PLANE * 3;

/// CIFAR at `path`, if it is there: a folder with its files, with its official sub-folder or
/// archive, or an archive.
pub(crate) fn open(path: &Path, set: Option<&SetFacts>) -> Result<Option<Dataset>, DataError> {
    let Some(source) = Source::find(path, is_of(set))? else {
        return Ok(None);
    };
    let records = source.form.records();
    load(source, records).map(Some)
}

/// A copy of CIFAR with two pictures a file, as tests have them.
pub(crate) fn open_small(path: &Path) -> Result<Option<Dataset>, DataError> {
    let source = Source::find(path, |_| true)?;
    source.map(|source| load(source, [2, 2])).transpose()
}

/// Whether CIFAR, or the one that is meant, is at `path`.
pub(crate) fn is_here(path: &Path, set: Option<&SetFacts>) -> Result<bool, DataError> {
    Ok(match path.is_file() {
        // Its name is enough: what is inside is read when it is opened.
        true => is_archive(path),
        false => Source::find_folder(path, is_of(set)).is_some() || archive_in(path, set).is_some(),
    })
}

fn is_of(set: Option<&SetFacts>) -> impl Fn(&Form) -> bool {
    move |form| set.is_none_or(|set| set.name == form.facts.name)
}

fn archive_in(path: &Path, set: Option<&SetFacts>) -> Option<&'static Form> {
    let forms = FORMS.iter().filter(|form| is_of(set)(form));
    forms.into_iter().find(|f| path.join(f.archive).is_file())
}

/// The official folders and archives of a set; none where it is not CIFAR.
pub(crate) fn places(set: &SetFacts) -> Vec<&'static str> {
    let forms = FORMS.iter().filter(|form| is_of(Some(set))(form));
    forms.flat_map(|form| [form.folder, form.archive]).collect()
}

/// What CIFAR at `path` is: which set, how many pictures its whole files hold to train and to test
/// on, and what is wrong with the others.
pub(crate) fn examine(path: &Path, set: Option<&SetFacts>) -> Result<Option<Examined>, DataError> {
    let Some(mut source) = Source::find(path, is_of(set))? else {
        return Ok(None);
    };
    let (form, classes) = (source.form, class_names(&mut source));
    let [train_records, test_records] = form.records();
    let mut examined =
        Examined { facts: form.facts, train: 0, test: 0, problems: Vec::new(), published: false };
    let mut sums = [Sums::default(); 2];
    let train = form.train.iter().map(|file| (file, train_records));
    for (file, records) in train.chain([(&form.test, test_records)]) {
        match split(&mut source, &[file], records, &classes) {
            Ok(part) => {
                let (count, sum) = match file == &form.test {
                    true => (&mut examined.test, &mut sums[1]),
                    false => (&mut examined.train, &mut sums[0]),
                };
                *count += part.pictures.len();
                *sum = *sum + Sums::of(part.pictures.raw());
            }
            Err(error) => examined.problems.push((source.path(file), error)),
        }
    }
    examined.published = form.can_be(sums[0], sums[1]);
    Ok(Some(examined))
}

/// What was found out about a copy of CIFAR.
pub(crate) struct Examined {
    pub facts: &'static SetFacts,
    pub train: usize,
    pub test: usize,
    pub problems: Vec<(std::path::PathBuf, DataError)>,
    /// Whether its pixels add up to those of the published pictures.
    pub published: bool,
}

/// Whether `path` is an archive by its name.
pub(crate) fn is_archive(path: &Path) -> bool {
    source::is_archive(path)
}

/// With so many records in each file to train on, and so many in that to test on.
fn load(mut source: Source, records: [usize; 2]) -> Result<Dataset, DataError> {
    let (form, facts) = (source.form, source.form.facts);
    let classes = class_names(&mut source);
    let train = split(&mut source, form.train, records[0], &classes)?;
    let test = split(&mut source, &[form.test], records[1], &classes)?;
    Ok(Dataset::of(facts.name, train, Some(test), (facts.mean, facts.std)))
}

fn split(
    source: &mut Source,
    files: &[&str],
    records: usize,
    classes: &[String],
) -> Result<Split, DataError> {
    let mut pixels = vec![0; files.len() * records * PIXELS];
    let mut labels = Vec::with_capacity(files.len() * records);
    for (file, out) in files.iter().zip(pixels.chunks_exact_mut(records * PIXELS)) {
        match source.form.coding {
            Coding::Binary { label_bytes } => {
                binary(source, file, label_bytes, records, out, &mut labels)?
            }
            Coding::Python { labels: key, .. } => {
                python(source, file, key, records, out, &mut labels)?
            }
        }
    }
    let labels = Labels::new(labels, classes.to_vec());
    Split::from(Pictures::new(SIDE, SIDE, pixels)?).labelled(labels)
}

fn binary(
    source: &mut Source,
    file: &str,
    label_bytes: usize,
    records: usize,
    out: &mut [u8],
    labels: &mut Vec<u32>,
) -> Result<(), DataError> {
    let record = label_bytes + PIXELS;
    let bytes = source.read(file, Some((records * record) as u64))?;
    for (number, record) in bytes.chunks_exact(record).enumerate() {
        labels.push(checked(source, file, number, u64::from(record[label_bytes - 1]))?);
    }
    out.par_chunks_exact_mut(PIXELS)
        .zip(bytes.par_chunks_exact(record))
        .for_each(|(out, record)| interleave(&record[label_bytes..], out));
    Ok(())
}

fn python(
    source: &mut Source,
    file: &str,
    key: &str,
    records: usize,
    out: &mut [u8],
    labels: &mut Vec<u32>,
) -> Result<(), DataError> {
    let bytes = source.read(file, None)?;
    let bad = |reason: String| {
        DataError::bad(source.path(file), format!("not a CIFAR python file: {reason}"))
    };
    let pickle = Dictionary::parse(&bytes).map_err(bad)?;
    let (rows, columns, data) = pickle.array("data").map_err(bad)?;
    let values = pickle.ints(key).map_err(bad)?;
    if (rows, columns) != (records, PIXELS) || values.len() != records {
        return Err(bad(format!(
            "expected {records} pictures of {PIXELS} bytes with as many labels, found {rows} of \
             {columns} with {} labels",
            values.len()
        )));
    }
    for (number, &label) in values.iter().enumerate() {
        labels.push(checked(source, file, number, u64::try_from(label).unwrap_or(u64::MAX))?);
    }
    out.par_chunks_exact_mut(PIXELS)
        .zip(data.par_chunks_exact(PIXELS))
        .for_each(|(out, planes)| interleave(planes, out));
    Ok(())
}

fn checked(source: &Source, file: &str, record: usize, label: u64) -> Result<u32, DataError> {
    let classes = source.form.facts.classes;
    match label < classes as u64 {
        true => Ok(label as u32),
        false => Err(DataError::bad(
            source.path(file),
            format!(
                "record {record} has the label {label}, but there are {classes} classes; the file \
                 is damaged"
            ),
        )),
    }
}

/// Red, green and blue planes to RGB pixels.
fn interleave(planes: &[u8], out: &mut [u8]) {
    let (red, rest) = planes.split_at(PLANE);
    let (green, blue) = rest.split_at(PLANE);
    for (((out, r), g), b) in out.chunks_exact_mut(3).zip(red).zip(green).zip(blue) {
        out.copy_from_slice(&[*r, *g, *b]);
    }
}

/// Everything that is ever asked of a pickle; whether it had any of it.
pub(crate) fn pickled(bytes: &[u8]) -> bool {
    Dictionary::parse(bytes).is_ok_and(|pickle| {
        let pictures = pickle.array("data").is_ok();
        let numbers = ["labels", "fine_labels"].map(|key| pickle.ints(key).is_ok());
        let names = ["label_names", "fine_label_names"].map(|key| pickle.strings(key).is_ok());
        pictures || numbers.contains(&true) || names.contains(&true)
    })
}

/// The names in the official file. Names are for people: without a good file, classes go by their
/// numbers.
fn class_names(source: &mut Source) -> Vec<String> {
    let form = source.form;
    let bytes = source.read(form.names, None).unwrap_or_default();
    let names = match form.coding {
        Coding::Binary { .. } => String::from_utf8_lossy(&bytes)
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect(),
        Coding::Python { names, .. } => {
            Dictionary::parse(&bytes).and_then(|p| p.strings(names)).unwrap_or_default()
        }
    };
    match names.len() == form.facts.classes {
        true => names,
        false => (0..form.facts.classes).map(|c| c.to_string()).collect(),
    }
}
