//! A folder of pictures: someone's own photographs, flat or nested, with or without classes.
//!
//! * Classes are the first-level sub-folders, if there are at least two with pictures and none lie beside them.
//! * `train/` with `test/` or `val/` gives the two parts; otherwise, where there are classes, a share is held out.
//! * Files that cannot be read are skipped and named; more than a tenth of them is an error.

mod decode;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorhood_random::{Draws, Stream};
use rayon::prelude::*;

use crate::{
    DataError, Dataset, Labels, LoadOptions, Pictures, Progress, Split, resize, statistics,
};
use scan::{Candidate, Found, scan};

/// Side of the pictures unless another is asked for.
pub const SIZE: usize = 32;

/// For what a random choice is made; the place of an epoch in its draws.
enum Choice {
    HeldOut = 0,
    Train = 1,
    Test = 2,
}

/// Loads the pictures under `root`.
pub(crate) fn open(
    root: &Path,
    options: &LoadOptions,
    progress: &Progress,
) -> Result<Dataset, DataError> {
    let size = options.size.unwrap_or(SIZE);
    let (mut train, mut test, mut skipped) = parts(root, options)?;
    if train.candidates.is_empty() {
        return Err(DataError::EmptyFolder { path: root.into() });
    }
    train.limit(options.seed, Choice::Train, options.limit);
    if let Some(test) = &mut test {
        test.limit(options.seed, Choice::Test, options.test_limit);
    }
    let total = train.candidates.len() + test.as_ref().map_or(0, |t| t.candidates.len());
    let done = AtomicUsize::new(0);
    let step = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
    let train = train.decode(size, &step, &mut skipped)?;
    let test = test
        .map(|t| t.decode(size, &step, &mut skipped))
        .transpose()?;
    if skipped.len() * 10 > total || train.pictures.is_empty() {
        let (first, why) = skipped.first().cloned().unwrap_or_default();
        return Err(DataError::TooManyUnreadable {
            path: root.into(),
            skipped: skipped.len(),
            total,
            first,
            why,
        });
    }
    let (mean, std) = statistics::measure(&train.pictures);
    Ok(Dataset {
        name: name_of(root),
        train,
        test: test.filter(|t| !t.pictures.is_empty()),
        mean,
        std,
        skipped,
    })
}

/// The folder's own name, also when it was given as `.`.
fn name_of(root: &Path) -> String {
    let full = root.canonicalize().unwrap_or_else(|_| root.into());
    full.file_name()
        .map_or_else(|| "pictures".into(), |n| n.to_string_lossy().into_owned())
}

/// Files of one split, not yet read, with the classes they may belong to.
struct Part {
    candidates: Vec<Candidate>,
    /// Put before a file's name to make it relative to the folder the user gave.
    prefix: String,
    classes: Option<Vec<String>>,
}

type Skipped = Vec<(String, String)>;

/// The files to train on, those to test on, and folders that could not be read.
fn parts(root: &Path, options: &LoadOptions) -> Result<(Part, Option<Part>, Skipped), DataError> {
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
    let whole = Part {
        candidates: found.candidates,
        prefix: String::new(),
        classes,
    };
    let (train, test) = whole.hold_out(options);
    Ok((train, test, found.unreadable))
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
    let train = Part {
        candidates: train.candidates,
        prefix: "train/".into(),
        classes: both.clone(),
    };
    let test = Part {
        candidates: test.candidates,
        prefix: format!("{test_name}/"),
        classes: both.filter(|_| others.is_some()),
    };
    (train, Some(test), unreadable)
}

/// The first-level folders, if every picture lies in one and there are at least `least`.
fn classes_of(candidates: &[Candidate], least: usize) -> Option<Vec<String>> {
    let folders: Option<BTreeSet<&str>> = candidates.iter().map(Candidate::first_folder).collect();
    let folders = folders.filter(|f| f.len() >= least)?;
    Some(folders.into_iter().map(str::to_owned).collect())
}

/// `n` of `0..of`, by the seed, in ascending order.
fn choose(seed: u64, what: Choice, n: usize, of: usize) -> BTreeSet<usize> {
    let order = Draws::new(seed, Stream::Split, what as u64, 0).permutation(of);
    order.into_iter().take(n).map(|i| i as usize).collect()
}

impl Part {
    /// Where there are classes, a share of the pictures goes to a test part; never all, and at least one.
    fn hold_out(self, options: &LoadOptions) -> (Part, Option<Part>) {
        let n = self.candidates.len();
        if self.classes.is_none() || options.held_out <= 0.0 || n < 2 {
            return (self, None);
        }
        let held = (n as f64 * f64::from(options.held_out)).round() as usize;
        let held = choose(options.seed, Choice::HeldOut, held.clamp(1, n - 1), n);
        let (mut train, mut test) = (Vec::new(), Vec::new());
        for (i, candidate) in self.candidates.into_iter().enumerate() {
            if held.contains(&i) {
                &mut test
            } else {
                &mut train
            }
            .push(candidate);
        }
        let part = |candidates| Part {
            candidates,
            prefix: self.prefix.clone(),
            classes: self.classes.clone(),
        };
        (part(train), Some(part(test)))
    }

    fn limit(&mut self, seed: u64, what: Choice, limit: Option<usize>) {
        let n = self.candidates.len();
        if let Some(limit) = limit.filter(|&limit| limit < n) {
            let kept = choose(seed, what, limit, n);
            let mut i = 0..n;
            self.candidates
                .retain(|_| i.next().is_some_and(|i| kept.contains(&i)));
        }
    }

    /// Reads every file; those that fail are added to `skipped`.
    fn decode(
        self,
        size: usize,
        step: &(dyn Fn() + Sync),
        skipped: &mut Skipped,
    ) -> Result<Split, DataError> {
        let one = size * size * 3;
        let mut pixels = resize::memory(self.candidates.len(), size)?;
        let results: Vec<Result<(), String>> = pixels
            .par_chunks_exact_mut(one)
            .zip(&self.candidates)
            .map(|(out, candidate)| {
                let result = decode::decode(&candidate.path, size, out);
                step();
                result
            })
            .collect();
        let (mut kept, mut names, mut values) = (0, Vec::new(), Vec::new());
        for (i, (candidate, result)) in self.candidates.iter().zip(results).enumerate() {
            let name = format!("{}{}", self.prefix, candidate.name);
            match result {
                Ok(()) => {
                    pixels.copy_within(i * one..(i + 1) * one, kept * one);
                    kept += 1;
                    names.push(name);
                    values.push(self.class(candidate));
                }
                Err(why) => skipped.push((name, why)),
            }
        }
        pixels.truncate(kept * one);
        Ok(Split {
            pictures: Pictures::new(size, size, pixels)?,
            labels: self.classes.map(|classes| Labels::new(values, classes)),
            names,
        })
    }

    fn class(&self, candidate: &Candidate) -> u32 {
        let classes = self.classes.as_deref().unwrap_or_default();
        let folder = candidate.first_folder().unwrap_or_default();
        classes
            .binary_search_by(|c| c.as_str().cmp(folder))
            .unwrap_or(0) as u32
    }
}
