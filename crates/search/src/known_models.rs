//! Which models are published under a name, with a checksum that their bytes must have; and which
//! are on this machine already.
//!
//! torchvision's file names carry the first eight digits of their SHA-256 (PyTorch's own loader
//! checks these): a file that has others is not the published one.

use std::path::{Path, PathBuf};

use anchorhood_files::cache_folder;
use anchorhood_models::Architecture;

/// A published model.
#[derive(Debug)]
pub struct KnownModel {
    /// What the user types.
    pub name: &'static str,
    /// Which network.
    pub architecture: Architecture,
    /// Where it is published.
    pub url: &'static str,
    /// What it is called on disk.
    pub file: &'static str,
    /// What the SHA-256 of its bytes begins with, in hexadecimal.
    pub sha256: &'static str,
    /// Roughly how long it is, for people.
    pub megabytes: u32,
    /// Under which terms.
    pub licence: &'static str,
    /// What it has learnt, from what.
    pub about: &'static str,
}

const LICENCE: &str = "BSD-3-Clause";
const FIRST: &str = "torchvision, learnt from ImageNet-1k with labels";
const SECOND: &str = "torchvision, learnt from ImageNet-1k with labels, the longer recipe";

const fn torchvision(
    name: &'static str,
    architecture: Architecture,
    (url, file, sha256): (&'static str, &'static str, &'static str),
    megabytes: u32,
    about: &'static str,
) -> KnownModel {
    KnownModel { name, architecture, url, file, sha256, megabytes, licence: LICENCE, about }
}

/// A file's address, its name, and the digits in it.
macro_rules! published {
    ($network:literal, $digits:literal) => {
        (
            concat!("https://download.pytorch.org/models/", $network, "-", $digits, ".pth"),
            concat!($network, "-", $digits, ".pth"),
            $digits,
        )
    };
}

use Architecture::{ResNet18, ResNet34, ResNet50, ResNet101};

/// All of them.
pub static KNOWN_MODELS: [KnownModel; 6] = [
    torchvision("torchvision-resnet18", ResNet18, published!("resnet18", "f37072fd"), 47, FIRST),
    torchvision("torchvision-resnet34", ResNet34, published!("resnet34", "b627a593"), 87, FIRST),
    torchvision("torchvision-resnet50", ResNet50, published!("resnet50", "0676ba61"), 103, FIRST),
    torchvision(
        "torchvision-resnet50-v2",
        ResNet50,
        published!("resnet50", "11ad3fa6"),
        103,
        SECOND,
    ),
    torchvision(
        "torchvision-resnet101",
        ResNet101,
        published!("resnet101", "63fe2227"),
        179,
        FIRST,
    ),
    torchvision(
        "torchvision-resnet101-v2",
        ResNet101,
        published!("resnet101", "cd907fc2"),
        179,
        SECOND,
    ),
];

impl KnownModel {
    /// The one of a name.
    pub fn named(name: &str) -> Option<&'static KnownModel> {
        KNOWN_MODELS.iter().find(|known| known.name == name)
    }
}

/// The folder of fetched models, in the user's [cache](cache_folder); none where there is no home.
pub fn models_folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("models"))
}

/// The fetched file that a name means, if it is in the folder: a published model's, or a file's own
/// name, with or without its extension.
pub fn fetched_model(folder: &Path, name: &str) -> Option<PathBuf> {
    let known = KnownModel::named(name).map(|known| known.file);
    let wanted = known.unwrap_or(name);
    fetched_models(folder).into_iter().find(|file| {
        let is = |part: Option<&std::ffi::OsStr>| part.is_some_and(|part| part == wanted);
        is(file.file_name()) || is(file.file_stem())
    })
}

/// All fetched files, by name; a download that is not whole is none.
pub fn fetched_models(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let whole = |path: &PathBuf| path.is_file() && path.extension().is_some_and(|e| e != "part");
    let mut files: Vec<PathBuf> = entries.map(|e| e.path()).filter(whole).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_checksums_are_those_of_the_files() {
        for (i, known) in KNOWN_MODELS.iter().enumerate() {
            let expected = format!("{}-{}.pth", known.architecture, known.sha256);
            assert_eq!(known.file, expected);
            assert!(known.url.starts_with("https://") && known.url.ends_with(known.file));
            assert!(known.sha256.len() == 8 && u32::from_str_radix(known.sha256, 16).is_ok());
            assert!(KNOWN_MODELS[..i].iter().all(|k| k.name != known.name));
            assert_eq!(KnownModel::named(known.name).unwrap().file, known.file);
        }
    }

    #[test]
    fn fetched_files_are_found_by_either_name_and_half_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let known = &KNOWN_MODELS[0];
        let part = format!("{}.part", known.file);
        std::fs::write(folder.path().join(&part), "half").unwrap();
        for name in [known.name, known.file, &part] {
            assert_eq!(fetched_model(folder.path(), name), None, "{name}");
        }
        let file = folder.path().join(known.file);
        std::fs::write(&file, "whole").unwrap();
        for name in [known.name, known.file, "resnet18-f37072fd"] {
            assert_eq!(fetched_model(folder.path(), name), Some(file.clone()));
        }
        for name in ["", "resnet18", "../models", "torchvision-resnet34"] {
            assert_eq!(fetched_model(folder.path(), name), None, "{name}");
        }
        assert_eq!(fetched_model(Path::new("no such folder"), known.name), None);
    }
}
