//! What can go wrong between a name the user typed and pictures in memory.
//!
//! Every message names the thing, the reason and, where there is one, the way out.

use std::path::PathBuf;

use crate::PassedOver;

/// Why pictures could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The name is neither a data set nor a path.
    #[error(
        "there is no data set or folder called `{name}`{}; give `shapes`, `cifar10`, `cifar100`, `svhn`, `imagenet`, `cub200`, `dogs`, or the path of a folder of pictures",
        .suggestion.map(|s| format!(" (did you mean `{s}`?)")).unwrap_or_default()
    )]
    UnknownName {
        /// What was asked for.
        name: String,
        /// The data set with the nearest name.
        suggestion: Option<&'static str>,
    },
    /// A path was given, and nothing is there.
    #[error("{}: there is no such file or folder", .path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// `cifar10` or `cifar100` without a path, and in none of its usual places.
    #[error(
        "{name} was not found; looked in {}. Download it from https://www.cs.toronto.edu/~kriz/cifar.html and give its place as `{name}:PATH` or in {variable}",
        .looked.join(", ")
    )]
    CifarNotFound {
        /// The data set.
        name: &'static str,
        /// The environment variable that may name its place.
        variable: &'static str,
        /// Every place looked in.
        looked: Vec<String>,
    },
    /// A place that should hold CIFAR does not.
    #[error(
        "{}: this is not {expected}: neither its binary nor its python files, nor one of its .tar.gz archives, are here",
        .path.display()
    )]
    NotCifar {
        /// The place.
        path: PathBuf,
        /// The data set that was asked for.
        expected: String,
    },
    /// A published set without a path, and in none of its usual places.
    #[error(
        "{name} was not found; looked in {}. Get it with `anchorhood data fetch {name}`, or give its place as `{name}:PATH` or in {variable}",
        .looked.join(", ")
    )]
    SetNotFound {
        /// The data set.
        name: &'static str,
        /// The environment variable that may name its place.
        variable: &'static str,
        /// Every place looked in.
        looked: Vec<String>,
    },
    /// A place that should hold a published set does not.
    #[error("{}: this is not {expected}: expected {needs} here", .path.display())]
    NotThisSet {
        /// The place.
        path: PathBuf,
        /// The set that was asked for.
        expected: &'static str,
        /// What it consists of.
        needs: &'static str,
    },
    /// A MATLAB file that cannot be read, or does not hold what it should.
    #[error("{}: {reason}", .path.display())]
    BadMat {
        /// The file.
        path: PathBuf,
        /// What was met, and what was expected.
        reason: String,
    },
    /// A list of pictures, classes or splits that makes no sense.
    #[error("{}: {reason}", .path.display())]
    BadList {
        /// The list.
        path: PathBuf,
        /// What was met, and what was expected.
        reason: String,
    },
    /// A picture of a class that its set has not.
    #[error(
        "{file}: is of the class `{class}`, which is none of the set's {classes}; move it away, or \
         see `anchorhood data check`"
    )]
    UnknownClass {
        /// The picture.
        file: String,
        /// Its class.
        class: String,
        /// How many classes there are.
        classes: usize,
    },
    /// A list that names pictures which are not there.
    #[error(
        "{}: names {total} pictures, of which {missing} are not there; the first is {}. Unpack the archive again, or see `anchorhood data check`",
        .list.display(), .first.display()
    )]
    MissingPictures {
        /// The list.
        list: PathBuf,
        /// How many it names.
        total: usize,
        /// How many are missing.
        missing: usize,
        /// Where the first was expected.
        first: PathBuf,
    },
    /// A packed set that cannot be used.
    #[error("{}: {reason}; pack the pictures again with `anchorhood data pack`", .path.display())]
    BadPack {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// One file of a set is missing.
    #[error("{}: the file {file} is missing; the copy is incomplete, unpack the archive again", .path.display())]
    MissingFile {
        /// The folder or archive.
        path: PathBuf,
        /// The file's name in it.
        file: String,
    },
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A CIFAR file has not the length of whole records.
    #[error("{}: expected {expected} bytes, found {actual}; the file is damaged or incomplete, fetch it again", .path.display())]
    WrongLength {
        /// The file.
        path: PathBuf,
        /// The official length.
        expected: u64,
        /// The length found.
        actual: u64,
    },
    /// A CIFAR label outside its classes.
    #[error("{}: record {record} has the label {label}, but there are {classes} classes; the file is damaged", .path.display())]
    BadLabel {
        /// The file.
        path: PathBuf,
        /// The record's number, from 0.
        record: usize,
        /// The label found.
        label: u64,
        /// How many classes there are.
        classes: usize,
    },
    /// A python file that is not what CIFAR's authors wrote.
    #[error("{}: not a CIFAR python file: {reason}", .path.display())]
    BadPickle {
        /// The file.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// A .tar.gz that cannot be read to its end.
    #[error("{}: the archive cannot be read: {reason}; fetch it again", .path.display())]
    BadArchive {
        /// The archive.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// A folder without a single picture.
    #[error(
        "{}: no pictures here{}; give a folder with JPEG, PNG, WebP, BMP, GIF or TIFF files, flat or in sub-folders",
        .path.display(), in_brackets(.passed_over)
    )]
    EmptyFolder {
        /// The folder.
        path: PathBuf,
        /// What is there instead.
        passed_over: Vec<PassedOver>,
    },
    /// More than a tenth of the pictures cannot be read.
    #[error(
        "{}: {skipped} of {total} pictures cannot be read, more than the 10% that are skipped; the first is {first} ({why}). Remove or repair them",
        .path.display()
    )]
    TooManyUnreadable {
        /// The folder.
        path: PathBuf,
        /// How many failed.
        skipped: usize,
        /// How many there are.
        total: usize,
        /// The first that failed.
        first: String,
        /// Why it failed.
        why: String,
    },
    /// A file where a folder or an archive was needed.
    #[error("{}: neither a folder, nor a packed set, nor a .tar of pictures, nor a .txt that lists files, nor a .tar.gz archive of CIFAR", .path.display())]
    NotADataset {
        /// The file.
        path: PathBuf,
    },
    /// A packed set of another size than was asked for.
    #[error("size: {} holds pictures of {size}×{size}, not {asked}×{asked}", .path.display())]
    PackSize {
        /// The file.
        path: PathBuf,
        /// Pixels a side of its pictures.
        size: usize,
        /// What was asked for.
        asked: usize,
    },
    /// A packed set would take the place of another.
    #[error("output: {} is there already, and was not made from these pictures at this size", .path.display())]
    PackExists {
        /// The file.
        path: PathBuf,
    },
    /// More pictures to validate on than can be held out of training, or none.
    #[error(
        "{asked} of the {there} training pictures of {data} cannot be held out to validate on: give at least 1, and leave at least 2 to train on"
    )]
    Validation {
        /// The data set.
        data: String,
        /// How many were asked for.
        asked: usize,
        /// Training pictures there are.
        there: usize,
    },
    /// Pictures to validate on, and nothing to judge them by.
    #[error("none of the training pictures of {data} can be validated on: they have no labels")]
    ValidationWithoutLabels {
        /// The data set.
        data: String,
    },
    /// An option outside its range.
    #[error("{option}: {why}")]
    BadOption {
        /// The option's name.
        option: &'static str,
        /// What it must be.
        why: String,
    },
    /// Pixels that do not make whole pictures.
    #[error("{bytes} bytes do not make whole pictures of {height}×{width}×3")]
    WrongPixelCount {
        /// How many bytes were given.
        bytes: usize,
        /// Height of a picture.
        height: usize,
        /// Width of a picture.
        width: usize,
    },
    /// Pictures, labels or names that a program put together and that do not fit.
    #[error("{why}")]
    Unfit {
        /// Which, and what would fit.
        why: String,
    },
    /// Processes that cannot tell each other what they saw.
    #[error("the processes that open these pictures together lost each other: {why}")]
    Fellows {
        /// What was met.
        why: String,
    },
    /// Fewer pictures than one batch takes.
    #[error("{have} pictures do not fill a batch of {batch}; use a batch of at most {have}")]
    TooFewPictures {
        /// How many there are.
        have: usize,
        /// The batch size.
        batch: usize,
    },
}

/// Files that may show something, by kind.
fn in_brackets(kinds: &[PassedOver]) -> String {
    let kinds = kinds.iter().filter(|kind| kind.why.is_some());
    let kinds: Vec<String> = kinds.map(PassedOver::to_string).collect();
    match kinds.is_empty() {
        true => String::new(),
        false => format!(" ({})", kinds.join(", ")),
    }
}

impl DataError {
    /// Whether something was asked for that cannot be, rather than something having failed.
    pub fn is_usage(&self) -> bool {
        use DataError::*;
        matches!(
            self,
            UnknownName { .. }
                | NotFound { .. }
                | CifarNotFound { .. }
                | NotCifar { .. }
                | SetNotFound { .. }
                | NotThisSet { .. }
                | EmptyFolder { .. }
                | NotADataset { .. }
                | PackSize { .. }
                | PackExists { .. }
                | BadOption { .. }
                | Validation { .. }
                | ValidationWithoutLabels { .. }
                | Unfit { .. }
        )
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        DataError::Io { path: path.into(), source }
    }
}
