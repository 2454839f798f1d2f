//! Published data sets: a file for each says what is true of it, where its files lie, and reads
//! them in the form of the official archives.
//!
//! To add one, write its file with a [`DatasetSpec`] and name it in [`DATASETS`]: the commands,
//! their help and messages, packs and checks follow. A program adds its own by
//! [`DATASETS.add`](Registry::add).

mod cifar;
mod cub;
mod dogs;
mod imagenet;
pub(crate) mod lists;
mod svhn;
mod unpack;

use std::path::{Path, PathBuf};

pub(crate) use cifar::{is_archive, no_cifar, open_small, pickled};
pub(crate) use svhn::read as read_svhn;
pub use unpack::unpack;

use anchorhood_storage::{Named, Registry};

use crate::check::CheckReport;
use crate::files::Listing;
use crate::{DataError, Dataset, Progress};

/// All sets that are known by name, in the order in which a folder is asked for them.
pub static DATASETS: Registry<DatasetSpec> = Registry::new(&[
    &cifar::CIFAR10,
    &cifar::CIFAR100,
    &svhn::SVHN,
    &cub::CUB200,
    &dogs::DOGS,
    &imagenet::IMAGENET,
]);

/// A published data set.
#[derive(Debug)]
pub struct DatasetSpec {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name in text.
    pub title: &'static str,
    /// The environment variable that may say where it lies.
    pub env_var: &'static str,
    /// Where its authors publish it.
    pub homepage: &'static str,
    /// How many images to train on.
    pub train: usize,
    /// How many images to test on.
    pub test: usize,
    /// How many classes.
    pub classes: usize,
    /// Mean of each channel, of values in [0, 1].
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
    /// Side of the images that the network sees.
    pub size: usize,
    /// Images in a training batch in the paper.
    pub batch: usize,
    /// Settings that its runs begin with, by their names in config.toml, where they are others than
    /// CIFAR's.
    pub settings: &'static [(&'static str, &'static str)],
    /// The folder that fetched files are put in, below that of all sets; empty where an archive
    /// brings its own.
    pub folder: &'static str,
    /// What is downloaded; nothing where that needs an account.
    pub archives: &'static [Archive],
    /// What to download by hand and where to unpack it, `{folder}` being the set's folder; empty
    /// where archives are downloaded.
    pub by_hand: &'static str,
    /// The files that it consists of, for messages.
    pub layout: &'static str,
    /// The folders and archives that are looked for under `./data`, for messages.
    pub places: &'static [&'static str],
    /// The folder or archive at or in a path. What only resembles the set is taken for it where the
    /// set was asked for by name.
    pub locate: fn(&Path, asked: bool) -> Option<PathBuf>,
    /// How it is read.
    pub read: Read,
    /// Looks at every file of a copy.
    pub check: fn(&Path, &Progress) -> Result<CheckReport, DataError>,
}

/// How a set is read.
#[derive(Debug)]
pub enum Read {
    /// Its images are files, which this lists.
    Files(fn(&Path) -> Result<Listing, DataError>),
    /// All images at once, with the extra ones if they are asked for.
    Images(fn(&Path, extra: bool) -> Result<Dataset, DataError>),
}

/// A file to download.
#[derive(Debug)]
pub struct Archive {
    /// Its official place.
    pub url: &'static str,
    /// What it is called on disk.
    pub file: &'static str,
    /// MD5 of its bytes, in hexadecimal, as its authors or the common loaders publish it.
    pub md5: &'static str,
    /// Roughly how long it is, for people.
    pub megabytes: u32,
    /// What unpacking it creates, for a tar; none where the file is the data itself.
    pub creates: Option<&'static str>,
    /// Needed only by those who ask for it.
    pub optional: bool,
}

const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

impl Named for DatasetSpec {
    fn name(&self) -> &str {
        self.name
    }
}

impl DatasetSpec {
    /// Whether it has images that only those get who ask for them, as `NAME+extra`.
    pub fn has_extra(&self) -> bool {
        self.archives.iter().any(|archive| archive.optional)
    }

    /// How many images a part has: `train` or `test`.
    pub(crate) fn count(&self, part: &str) -> usize {
        if part == "train" { self.train } else { self.test }
    }

    /// Why a path is refused for this set.
    pub(crate) fn not_at(&self, path: &Path) -> DataError {
        DataError::not_this_set(path, self.title, self.layout)
    }
}

/// The published set that `spec` names, alone or as `NAME:PATH`.
pub fn find_dataset(spec: &str) -> Option<&'static DatasetSpec> {
    let name = spec.split_once(':').map_or(spec, |(name, _)| name);
    DATASETS.find(name)
}

/// Names of the data sets that need no path.
pub fn dataset_names() -> impl Iterator<Item = &'static str> {
    std::iter::once("shapes").chain(DATASETS.all().into_iter().map(|set| set.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_found_by_name_and_by_name_with_a_path() {
        assert_eq!(find_dataset("svhn").unwrap().train, 73_257);
        assert_eq!(find_dataset("cub200:some/where").unwrap().size, 224);
        assert!(find_dataset("shapes").is_none() && find_dataset("some/where").is_none());
    }

    /// The paper: batches of 128, ImageNet's of 256.
    #[test]
    fn batches_are_the_papers() {
        for set in DATASETS.all() {
            assert_eq!(set.batch, if set.name == "imagenet" { 256 } else { 128 }, "{}", set.name);
        }
    }

    #[test]
    fn every_set_can_be_had_and_only_svhn_has_more() {
        for set in DATASETS.all() {
            assert_ne!(set.archives.is_empty(), set.by_hand.is_empty(), "{}", set.name);
            assert_eq!(set.has_extra(), set.name == "svhn");
            let variable = format!("ANCHORHOOD_{}", set.name.to_uppercase());
            assert_eq!(set.env_var, variable);
        }
    }

    #[test]
    fn every_archive_is_where_its_name_says_and_has_a_sum() {
        for archive in DATASETS.all().into_iter().flat_map(|set| set.archives) {
            assert!(archive.url.ends_with(archive.file), "{}", archive.url);
            assert_eq!(archive.md5.len(), 32, "{}", archive.file);
            let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            assert!(archive.md5.chars().all(hex), "{}", archive.file);
        }
    }

    /// The table of docs/reference/datasets.md: name, counts, side and batch of each set.
    #[test]
    fn the_documents_table_agrees() {
        let page = std::fs::read_to_string("../../docs/reference/datasets.md").unwrap();
        for set in DATASETS.all() {
            let name = format!("`{}`", set.name);
            let row = page.lines().find(|line| {
                line.strip_prefix("| ")
                    .and_then(|l| l.split_once(" |"))
                    .is_some_and(|(c, _)| c.contains(&name))
            });
            let row = row.unwrap_or_else(|| panic!("no row of {name}"));
            for value in [set.train, set.test] {
                assert!(row.contains(&thousands(value)), "{value} is not in: {row}");
            }
            assert!(row.ends_with(&format!("| {} | {} |", set.size, set.batch)), "{row}");
        }
    }

    fn thousands(n: usize) -> String {
        let text = n.to_string();
        let groups: Vec<&str> =
            text.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap()).collect();
        groups.join(",")
    }
}
