//! Is a copy of a data set whole? Every file is looked at, every problem noted; the first does not
//! end it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::datasets::DatasetSpec;
use crate::files::decode::decode;
use crate::files::{Listing, archive, picture_named};
use crate::open::find;
use crate::pack::Pack;
use crate::recognise::LocatedDataset;
use crate::{DataError, LabelChoice, Progress, folder};

/// What a check found.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// Which set it is, in words.
    pub set: String,
    /// Where it lies.
    pub place: PathBuf,
    /// What each part holds.
    pub splits: Vec<SplitCount>,
    /// What is missing or broken.
    pub problems: Vec<Problem>,
    /// What is whole, and yet not what one would expect.
    pub warnings: Vec<Problem>,
}

/// How many pictures a part holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitCount {
    /// The part: `train`, `test` or `extra`.
    pub name: &'static str,
    /// Whole pictures found.
    pub found: usize,
    /// How many there are officially, for a published set.
    pub expected: Option<usize>,
}

/// Something missing or broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
}

impl CheckReport {
    /// Whether nothing is missing or broken.
    pub fn is_whole(&self) -> bool {
        let counts = |s: &SplitCount| s.expected.is_none_or(|expected| expected == s.found);
        self.problems.is_empty() && self.splits.iter().all(counts)
    }

    pub(crate) fn new(set: &str, place: &Path) -> Self {
        CheckReport {
            set: set.into(),
            place: place.into(),
            splits: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn count(&mut self, name: &'static str, found: usize, expected: Option<usize>) {
        self.splits.push(SplitCount { name, found, expected });
    }

    pub(crate) fn problem(&mut self, file: impl Into<String>, what: impl Into<String>) {
        self.problems.push(Problem { file: file.into(), what: what.into() });
    }

    pub(crate) fn warning(&mut self, file: &Path, what: String) {
        self.warnings.push(Problem { file: file.display().to_string(), what });
    }

    /// An error names its file first; here the file has a place of its own.
    pub(crate) fn error(&mut self, file: &Path, error: &DataError) {
        let (file, what) = (file.display().to_string(), error.to_string());
        let short = what.strip_prefix(&file).and_then(|w| w.strip_prefix(": "));
        self.problem(file.clone(), short.unwrap_or(&what));
    }
}

/// Looks at every file of the data set that `spec` names. An error means that there is none to look
/// at.
pub fn check(spec: &str, progress: &Progress) -> Result<CheckReport, DataError> {
    match &find(spec)? {
        LocatedDataset::Published(set, path, _) => (set.check)(path, progress),
        LocatedDataset::Pack(path) => check_pack(path, progress),
        LocatedDataset::Folder(folder) => {
            let mut report = CheckReport::new("a folder of pictures", folder);
            let listing = folder::list(folder, LabelChoice::Auto)?;
            if listing.train.files.is_empty() {
                return Err(listing.empty());
            }
            for kind in listing.report.passed_over.iter().filter(|k| k.why.is_some()) {
                report.warning(folder, kind.to_string());
            }
            one_sided_classes(&listing, &mut report);
            check_files(&listing, None, &mut report, progress);
            Ok(report)
        }
    }
}

/// A set of files by its lists, or why these cannot be read.
pub(crate) fn check_listed(
    set: &DatasetSpec,
    folder: &Path,
    listed: Result<Listing, DataError>,
    progress: &Progress,
) -> CheckReport {
    let mut report = CheckReport::new(set.title, folder);
    match listed {
        Err(error) => report.error(folder, &error),
        Ok(listing) => {
            for name in &listing.missing {
                report.problem(name, "is missing");
            }
            check_files(&listing, Some(set), &mut report, progress);
            let classes = listing.train.labels.map_or(0, |labels| labels.classes().len());
            if classes != set.classes {
                let expected = set.classes;
                let what = format!("expected {expected} classes, found {classes}");
                report.problem(folder.display().to_string(), what);
            }
        }
    }
    report
}

/// Decodes every file.
fn check_files(
    listing: &Listing,
    set: Option<&DatasetSpec>,
    report: &mut CheckReport,
    progress: &Progress,
) {
    for (folder, why) in &listing.unreadable {
        report.problem(folder, why);
    }
    let total = listing.parts().map(|(_, part)| part.files.len()).sum();
    let done = AtomicUsize::new(0);
    for (name, part) in listing.parts() {
        let problem = |scratch: &mut Vec<u8>, file: &String| {
            let path = picture_named(&listing.root, file);
            let what = match archive::about(&path).is_some() {
                true => decode(&path, SMALL, scratch).err(),
                false => Some("is missing".into()),
            };
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            what.map(|what| (file.clone(), what))
        };
        let files = part.files.par_iter();
        let problems = files.map_init(|| vec![0; SMALL * SMALL * 3], problem);
        let problems: Vec<(String, String)> = problems.flatten().collect();
        let expected = set.map(|set| set.count(name));
        report.count(name, part.files.len() - problems.len(), expected);
        for (file, what) in problems {
            report.problem(file, what);
        }
    }
}

/// Side that pictures are decoded to: they are only to be read.
const SMALL: usize = 8;

/// Class folders that one of the two parts has alone.
fn one_sided_classes(listing: &Listing, report: &mut CheckReport) {
    let test = listing.test.as_ref().and_then(|test| test.labels.as_ref());
    let Some((train, test)) = listing.train.labels.as_ref().zip(test) else {
        return;
    };
    for (class, name) in (0..).zip(train.classes()) {
        let [here, there] = match [train, test].map(|labels| labels.values().contains(&class)) {
            [true, false] => ["train", "the test part"],
            [false, true] => ["the test part", "train"],
            _ => continue,
        };
        report.problem(name, format!("is a class folder of {here}, and not of {there}"));
    }
}

fn check_pack(path: &Path, progress: &Progress) -> Result<CheckReport, DataError> {
    let pack = Pack::open(path)?;
    let parts = &pack.index.parts;
    let words =
        format!("a packed set ({}, {}×{})", pack.index.name, pack.index.size, pack.index.size);
    let mut report = CheckReport::new(&words, path);
    let total = parts.iter().map(|p| p.readable()).sum();
    let done = AtomicUsize::new(0);
    let damaged = pack.damaged(&|| progress(done.fetch_add(1, Ordering::Relaxed) + 1, total));
    for (name, part) in ["train", "test"].into_iter().zip(parts) {
        let expected = pack.set().map(|set| set.count(name));
        report.count(name, part.readable(), expected);
        for entry in &part.entries {
            if let Err(why) = &entry.pixels {
                report.problem(&entry.name, format!("could not be read when it was packed: {why}"));
            }
        }
    }
    for name in damaged {
        report.problem(name, "its packed pixels are damaged");
    }
    Ok(report)
}
