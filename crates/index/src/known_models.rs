//! Which models are published under a name, with a checksum that their bytes must have; and which
//! are on this machine already.
//!
//! torchvision's file names carry the first eight digits of their SHA-256 (PyTorch's own loader
//! checks these): a file that has others is not the published one.

use std::path::{Path, PathBuf};

use anchorhood_models::{Backbone, RESNET18, RESNET34, RESNET50, RESNET101};
use anchorhood_storage::cache_folder;

/// A published model.
#[derive(Debug)]
pub struct KnownModel {
    /// What the user types.
    pub name: &'static str,
    /// Which network.
    pub architecture: &'static Backbone,
    /// What the SHA-256 of its bytes begins with, in hexadecimal.
    pub sha256: &'static str,
    /// Roughly how long it is, for people.
    pub megabytes: u32,
    /// What it has learnt, from what.
    pub about: &'static str,
}

const FIRST: &str = "torchvision, learnt from ImageNet-1k with labels";
const SECOND: &str = "torchvision, learnt from ImageNet-1k with labels, the longer recipe";

const fn torchvision(
    name: &'static str,
    architecture: &'static Backbone,
    sha256: &'static str,
    megabytes: u32,
    about: &'static str,
) -> KnownModel {
    KnownModel { name, architecture, sha256, megabytes, about }
}

/// All of them.
pub static KNOWN_MODELS: [KnownModel; 6] = [
    torchvision("torchvision-resnet18", &RESNET18, "f37072fd", 47, FIRST),
    torchvision("torchvision-resnet34", &RESNET34, "b627a593", 87, FIRST),
    torchvision("torchvision-resnet50", &RESNET50, "0676ba61", 103, FIRST),
    torchvision("torchvision-resnet50-v2", &RESNET50, "11ad3fa6", 103, SECOND),
    torchvision("torchvision-resnet101", &RESNET101, "63fe2227", 179, FIRST),
    torchvision("torchvision-resnet101-v2", &RESNET101, "cd907fc2", 179, SECOND),
];

impl KnownModel {
    /// Where they are published.
    pub const FOLDER: &str = "https://download.pytorch.org/models/";
    /// Under which terms.
    pub const LICENCE: &str = "BSD-3-Clause";

    /// What it is called there, and on disk.
    pub fn file(&self) -> String {
        format!("{}-{}.pth", self.architecture, self.sha256)
    }

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
    let known = KnownModel::named(name).map(KnownModel::file);
    let wanted = known.as_deref().unwrap_or(name);
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
    fn names_are_unique_and_checksums_can_be() {
        assert_eq!(KNOWN_MODELS[0].file(), "resnet18-f37072fd.pth");
        for (i, known) in KNOWN_MODELS.iter().enumerate() {
            assert!(known.sha256.len() == 8 && u32::from_str_radix(known.sha256, 16).is_ok());
            assert!(KNOWN_MODELS[..i].iter().all(|k| k.name != known.name));
            assert_eq!(KnownModel::named(known.name).unwrap().sha256, known.sha256);
        }
    }

    #[test]
    fn fetched_files_are_found_by_either_name_and_half_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let (known, name) = (KNOWN_MODELS[0].file(), KNOWN_MODELS[0].name);
        let part = format!("{known}.part");
        std::fs::write(folder.path().join(&part), "half").unwrap();
        for name in [name, &known, &part] {
            assert_eq!(fetched_model(folder.path(), name), None, "{name}");
        }
        let file = folder.path().join(&known);
        std::fs::write(&file, "whole").unwrap();
        for name in [name, &known, "resnet18-f37072fd"] {
            assert_eq!(fetched_model(folder.path(), name), Some(file.clone()));
        }
        for name in ["", "resnet18", "../models", "torchvision-resnet34"] {
            assert_eq!(fetched_model(folder.path(), name), None, "{name}");
        }
        assert_eq!(fetched_model(Path::new("no such folder"), name), None);
    }
}
