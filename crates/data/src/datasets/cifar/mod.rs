//! CIFAR-10 and CIFAR-100 as their authors publish them: binary or python files, in a folder or a
//! `.tar.gz`.
//!
//! Whichever it is read from, the pictures, their order and their labels are the same. A file of
//! another length than the official one is refused: half a data set must not pass for the whole.

mod check;
mod dictionary;
mod form;
mod source;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use dictionary::Dictionary;
use form::{Coding, FORMS, Form};
pub(crate) use source::is_archive;
use source::{Source, form_in};

use super::{Archive, DatasetSpec, Read};
use crate::{DataError, Dataset, Labels, Pictures, Split};

/// CIFAR-10.
pub(super) static CIFAR10: DatasetSpec = DatasetSpec {
    name: "cifar10",
    title: "CIFAR-10",
    env_var: "ANCHORHOOD_CIFAR10",
    homepage: HOMEPAGE,
    train: 50_000,
    test: 10_000,
    classes: 10,
    mean: [0.4914, 0.4822, 0.4465],
    std: [0.2023, 0.1994, 0.2010],
    size: SIDE,
    batch: 128,
    settings: &[],
    folder: "",
    archives: &CIFAR10_BINARY,
    by_hand: "",
    layout: LAYOUT,
    places: &[
        "cifar-10-batches-bin",
        "cifar-10-binary.tar.gz",
        "cifar-10-batches-py",
        "cifar-10-python.tar.gz",
    ],
    locate: |path, asked| locate(&CIFAR10, path, asked),
    read: Read::Images(|path, _| open(&CIFAR10, path)),
    check: |path, _| check::check(&CIFAR10, path),
};

/// CIFAR-100, with its own statistics.
pub(super) static CIFAR100: DatasetSpec = DatasetSpec {
    name: "cifar100",
    title: "CIFAR-100",
    env_var: "ANCHORHOOD_CIFAR100",
    homepage: HOMEPAGE,
    train: 50_000,
    test: 10_000,
    classes: 100,
    mean: [0.5071, 0.4865, 0.4409],
    std: [0.2673, 0.2564, 0.2762],
    size: SIDE,
    batch: 128,
    settings: &[],
    folder: "",
    archives: &CIFAR100_BINARY,
    by_hand: "",
    layout: LAYOUT,
    places: &[
        "cifar-100-binary",
        "cifar-100-binary.tar.gz",
        "cifar-100-python",
        "cifar-100-python.tar.gz",
    ],
    locate: |path, asked| locate(&CIFAR100, path, asked),
    read: Read::Images(|path, _| open(&CIFAR100, path)),
    check: |path, _| check::check(&CIFAR100, path),
};

const HOMEPAGE: &str = "https://www.cs.toronto.edu/~kriz/cifar.html";
const LAYOUT: &str = "its binary or its python files, or one of its .tar.gz archives,";

/// The binary form: small, and read without a pickle. The sums stand on the authors' page.
static CIFAR10_BINARY: [Archive; 1] = [Archive {
    url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    file: "cifar-10-binary.tar.gz",
    md5: "c32a1d4ab5d03f1284b67883e8d87530",
    megabytes: 162,
    creates: Some("cifar-10-batches-bin"),
    optional: false,
}];

static CIFAR100_BINARY: [Archive; 1] = [Archive {
    url: "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    file: "cifar-100-binary.tar.gz",
    md5: "03b5dce01913d631647c71ecec9e9cb8",
    megabytes: 161,
    creates: Some("cifar-100-binary"),
    optional: false,
}];

/// Side of a CIFAR picture.
const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
const PIXELS: usize = PLANE * 3;

/// `path`, if the set is there: a folder with its files, with its official sub-folder or archive,
/// or an archive.
fn locate(set: &DatasetSpec, path: &Path, asked: bool) -> Option<PathBuf> {
    let is_here = match path.is_file() {
        true => is_archive(path) && (asked || is_in(set, path)),
        false => {
            let mut forms = FORMS.iter().filter(|form| is_of(set)(form));
            Source::find_folder(path, is_of(set)).is_some()
                || forms.any(|form| path.join(form.archive).is_file())
        }
    };
    is_here.then(|| path.into())
}

/// Whether an archive holds the set. One that cannot be read is given to CIFAR-10, and says why
/// when it is opened.
fn is_in(set: &DatasetSpec, archive: &Path) -> bool {
    match form_in(archive) {
        Ok(form) => form.is_some_and(is_of(set)),
        Err(_) => set.name == CIFAR10.name,
    }
}

fn is_of(set: &DatasetSpec) -> impl Fn(&Form) -> bool {
    move |form| set.name == form.set.name
}

fn open(set: &DatasetSpec, path: &Path) -> Result<Dataset, DataError> {
    let source = Source::find(path, is_of(set))?.ok_or_else(|| set.not_at(path))?;
    let records = source.form.records();
    load(source, records)
}

/// A copy of CIFAR with two pictures a file, as tests have them.
pub(crate) fn open_small(path: &Path) -> Result<Option<Dataset>, DataError> {
    let source = Source::find(path, |_| true)?;
    source.map(|source| load(source, [2, 2])).transpose()
}

/// Why an archive is refused that holds neither set.
pub(crate) fn no_cifar(path: &Path) -> DataError {
    DataError::not_this_set(path, "CIFAR-10 or CIFAR-100", LAYOUT)
}

/// With so many records in each file to train on, and so many in that to test on.
fn load(mut source: Source, records: [usize; 2]) -> Result<Dataset, DataError> {
    let (form, set) = (source.form, source.form.set);
    let classes = class_names(&mut source);
    let train = split(&mut source, form.train, records[0], &classes)?;
    let test = split(&mut source, &[form.test], records[1], &classes)?;
    Ok(Dataset::of(set.name, train, Some(test), (set.mean, set.std)))
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
        let read = match source.form.coding {
            Coding::Binary { label_bytes } => binary(source, file, label_bytes, records, out)?,
            Coding::Python { labels, .. } => python(source, file, labels, records, out)?,
        };
        for (number, label) in read.into_iter().enumerate() {
            labels.push(checked(source, file, number, label)?);
        }
    }
    let labels = Labels::new(labels, classes.to_vec());
    Split::from(Pictures::new(SIDE, SIDE, pixels)?).labelled(labels)
}

/// Fills in the pictures of a file; their labels.
fn binary(
    source: &mut Source,
    file: &str,
    label_bytes: usize,
    records: usize,
    out: &mut [u8],
) -> Result<Vec<u64>, DataError> {
    let record = label_bytes + PIXELS;
    let bytes = source.read(file, Some((records * record) as u64))?;
    let planes = bytes.par_chunks_exact(record).map(|record| &record[label_bytes..]);
    out.par_chunks_exact_mut(PIXELS).zip(planes).for_each(|(out, planes)| interleave(planes, out));
    let labels = bytes.chunks_exact(record).map(|record| u64::from(record[label_bytes - 1]));
    Ok(labels.collect())
}

/// The same.
fn python(
    source: &mut Source,
    file: &str,
    key: &str,
    records: usize,
    out: &mut [u8],
) -> Result<Vec<u64>, DataError> {
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
    let planes = data.par_chunks_exact(PIXELS);
    out.par_chunks_exact_mut(PIXELS).zip(planes).for_each(|(out, planes)| interleave(planes, out));
    Ok(values.iter().map(|label| u64::try_from(*label).unwrap_or(u64::MAX)).collect())
}

fn checked(source: &Source, file: &str, record: usize, label: u64) -> Result<u32, DataError> {
    let classes = source.form.set.classes;
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
    match names.len() == form.set.classes {
        true => names,
        false => (0..form.set.classes).map(|c| c.to_string()).collect(),
    }
}
