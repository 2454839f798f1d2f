//! Is a copy of a data set whole? Every file is looked at, every problem noted; the first does not
//! end it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorhood_storage::open_regular;
use md5::{Digest, Md5};
use rayon::prelude::*;

use crate::files::decode::decode;
use crate::files::{Listing, archive, picture_named};
use crate::open::find;
use crate::pack::Pack;
use crate::recognise::{FoundSet, no_cifar};
use crate::sets::{CUB200, DOGS, IMAGENET, SETS, SVHN, SetFacts, cub, dogs, imagenet, svhn};
use crate::{DataError, LabelChoice, Progress, cifar, folder};

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

    fn new(set: &str, place: &Path) -> Self {
        CheckReport {
            set: set.into(),
            place: place.into(),
            splits: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn count(&mut self, name: &'static str, found: usize, expected: Option<usize>) {
        self.splits.push(SplitCount { name, found, expected });
    }

    fn problem(&mut self, file: impl Into<String>, what: impl Into<String>) {
        self.problems.push(Problem { file: file.into(), what: what.into() });
    }

    fn warning(&mut self, file: &Path, what: String) {
        self.warnings.push(Problem { file: file.display().to_string(), what });
    }

    /// An error names its file first; here the file has a place of its own.
    fn error(&mut self, file: &Path, error: &DataError) {
        let (file, what) = (file.display().to_string(), error.to_string());
        let short = what.strip_prefix(&file).and_then(|w| w.strip_prefix(": "));
        self.problem(file.clone(), short.unwrap_or(&what));
    }
}

/// Looks at every file of the data set that `spec` names. An error means that there is none to look
/// at.
pub fn check(spec: &str, progress: &Progress) -> Result<CheckReport, DataError> {
    let place = find(spec)?;
    match &place {
        FoundSet::Cifar(path, set) => check_cifar(path, *set),
        FoundSet::Svhn(folder, _) => Ok(check_svhn(folder, progress)),
        FoundSet::Pack(path) => check_pack(path, progress),
        FoundSet::Cub(folder) => Ok(check_cub(folder, progress)),
        FoundSet::Dogs(folder) => Ok(check_listed(&DOGS, folder, dogs::list(folder), progress)),
        FoundSet::ImageNet(folder) => {
            Ok(check_listed(&IMAGENET, folder, imagenet::list(folder), progress))
        }
        FoundSet::Folder(folder) => {
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

fn check_cifar(path: &Path, set: Option<&SetFacts>) -> Result<CheckReport, DataError> {
    let sum = archive_sum(path)?;
    let examined = match (cifar::examine(path, set), &sum) {
        (Ok(Some(examined)), _) => examined,
        (Ok(None), _) => return Err(no_cifar(path, set)),
        // An archive that cannot be read has another sum as well; that says it best.
        (Err(error), Some(what)) => {
            let mut report = CheckReport::new("an archive", path);
            report.problem(path.display().to_string(), what.clone());
            report.error(path, &error);
            return Ok(report);
        }
        (Err(error), None) => return Err(error),
    };
    let mut report = CheckReport::new(examined.facts.title, path);
    if let Some(what) = sum {
        report.problem(path.display().to_string(), what);
    }
    report.count("train", examined.train, Some(examined.facts.train));
    report.count("test", examined.test, Some(examined.facts.test));
    for (file, error) in &examined.problems {
        report.error(file, error);
    }
    if report.is_whole() && !examined.published {
        let form = format!("has the form of {}", examined.facts.title);
        let but = "and other pixels than the published pictures; no result on it compares with";
        report.warning(path, format!("{form}, {but} others'"));
    }
    Ok(report)
}

/// What is wrong with the sum of an official archive; nothing for other files.
fn archive_sum(path: &Path) -> Result<Option<String>, DataError> {
    let name = path.file_name().unwrap_or_default();
    let archive = SETS.iter().flat_map(|set| set.archives);
    let archive = archive.into_iter().find(|a| name == a.file);
    let Some(archive) = archive.filter(|_| path.is_file()) else {
        return Ok(None);
    };
    let sum = md5_of(path).map_err(|e| DataError::io(path, e))?;
    Ok((sum != archive.md5)
        .then(|| format!("expected the MD5 sum {}, found {sum}; fetch it again", archive.md5)))
}

/// MD5 of a file's bytes, in hexadecimal.
fn md5_of(path: &Path) -> std::io::Result<String> {
    let mut file = open_regular(path)?;
    let mut hash = Md5::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    let sum = hash.finalize();
    Ok(sum.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn check_svhn(folder: &Path, progress: &Progress) -> CheckReport {
    let mut report = CheckReport::new(SVHN.title, folder);
    let files = [
        ("train", svhn::TRAIN, SVHN.train),
        ("test", svhn::TEST, SVHN.test),
        ("extra", svhn::EXTRA, svhn::EXTRA_PICTURES),
    ];
    for (done, (name, file, expected)) in files.into_iter().enumerate() {
        let path = folder.join(file);
        if !path.is_file() {
            if file != svhn::EXTRA {
                report.count(name, 0, Some(expected));
                report.problem(path.display().to_string(), "is missing");
            }
            continue;
        }
        let found = match svhn::read(&path) {
            Ok((_, digits)) => digits.len(),
            Err(error) => {
                report.error(&path, &error);
                0
            }
        };
        report.count(name, found, Some(expected));
        progress(done + 1, files.len());
    }
    report
}

fn check_cub(folder: &Path, progress: &Progress) -> CheckReport {
    let mut report = check_listed(&CUB200, folder, cub::list(folder), progress);
    if let Err(error) = cub::check_boxes(folder) {
        report.error(&folder.join(cub::BOXES), &error);
    }
    report
}

/// A set of files by its lists, or why these cannot be read.
fn check_listed(
    facts: &'static SetFacts,
    folder: &Path,
    listed: Result<Listing, DataError>,
    progress: &Progress,
) -> CheckReport {
    let mut report = CheckReport::new(facts.title, folder);
    match listed {
        Err(error) => report.error(folder, &error),
        Ok(listing) => {
            for name in &listing.missing {
                report.problem(name, "is missing");
            }
            check_files(&listing, Some(facts), &mut report, progress);
            let classes = listing.train.labels.map_or(0, |labels| labels.classes().len());
            if classes != facts.classes {
                let expected = facts.classes;
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
    facts: Option<&SetFacts>,
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
        let expected = facts.map(|facts| match name {
            "train" => facts.train,
            _ => facts.test,
        });
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
        let expected = pack.facts().map(|facts| match name {
            "train" => facts.train,
            _ => facts.test,
        });
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
