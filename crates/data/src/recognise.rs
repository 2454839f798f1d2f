//! Which data set did the user mean, and which lies at a path?

use std::path::{Path, PathBuf};

use crate::files::archive;
use crate::sets::{self, SetFacts, cub, dogs, imagenet, svhn};
use crate::{DataError, cifar, pack};

/// Where published sets are looked for when nobody says where they are.
const UNTOLD: &str = "data";

/// A data set on disk, recognised but not read.
#[derive(Clone, Debug)]
pub(crate) enum FoundSet {
    /// CIFAR's folder, its parent, or its archive.
    Cifar(PathBuf, Option<&'static SetFacts>),
    /// The folder with SVHN's files, and whether the extra ones are wanted.
    Svhn(PathBuf, bool),
    /// The folder with `train` and `val`.
    ImageNet(PathBuf),
    /// The folder with `images.txt`.
    Cub(PathBuf),
    /// The folder with `Images`.
    Dogs(PathBuf),
    /// A packed set.
    Pack(PathBuf),
    /// Any folder of pictures, archive of them, or list of files.
    Folder(PathBuf),
}

/// A published set by name: `svhn`, `svhn+extra`, `dogs:PATH`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub facts: &'static SetFacts,
    pub extra: bool,
    pub path: Option<&'a Path>,
}

impl<'a> Named<'a> {
    /// What `spec` names, if it begins with the name of a published set.
    pub fn parse(spec: &'a str) -> Option<Self> {
        let (name, path) = match spec.split_once(':') {
            Some((name, path)) => (name, Some(Path::new(path))),
            None => (spec, None),
        };
        let (facts, extra) = match name {
            "svhn+extra" => (&sets::SVHN, true),
            name => (sets::facts_of(name)?, false),
        };
        Some(Named { facts, extra, path })
    }

    /// Where it lies: at its path, where its variable says, or under `./data`.
    pub fn find(&self) -> Result<FoundSet, DataError> {
        match self.path.map(PathBuf::from).or_else(|| self.told()) {
            Some(path) if !path.exists() => Err(DataError::NotFound { path }),
            Some(path) => self.at(&path)?.ok_or_else(|| self.not_this(path)),
            None => self.at(Path::new(UNTOLD))?.ok_or_else(|| self.nowhere()),
        }
    }

    /// Where its variable says that it lies.
    fn told(&self) -> Option<PathBuf> {
        let value = std::env::var_os(self.facts.variable)?;
        (!value.is_empty()).then(|| value.into())
    }

    /// The set in or under a folder.
    fn at(&self, path: &Path) -> Result<Option<FoundSet>, DataError> {
        Ok(match self.facts.name {
            "svhn" => svhn::find(path).map(|folder| FoundSet::Svhn(folder, self.extra)),
            "imagenet" => imagenet::find(path, true).map(FoundSet::ImageNet),
            "cub200" => cub::find(path).map(FoundSet::Cub),
            "dogs" => dogs::find(path).map(FoundSet::Dogs),
            _ => cifar::is_here(path, Some(self.facts))?
                .then(|| FoundSet::Cifar(path.into(), Some(self.facts))),
        })
    }

    fn not_this(&self, path: PathBuf) -> DataError {
        let needs = match self.facts.name {
            "svhn" => "train_32x32.mat and test_32x32.mat",
            "imagenet" => "train with a folder for each synset (n01440764 …), and val",
            "cub200" => "images.txt, image_class_labels.txt, train_test_split.txt and images",
            "dogs" => "Images, train_list.mat and test_list.mat",
            _ => return no_cifar(&path, Some(self.facts)),
        };
        DataError::NotThisSet { path, expected: self.facts.title, needs }
    }

    fn nowhere(&self) -> DataError {
        let (name, variable) = (self.facts.name, self.facts.variable);
        let mut looked = vec![format!("{variable} (not set)")];
        let places = match name {
            "cub200" => vec!["CUB_200_2011", ""],
            "cifar10" | "cifar100" => cifar::places(self.facts),
            name => vec![name, ""],
        };
        looked.extend(places.into_iter().map(|place| format!("./data/{place}")));
        DataError::SetNotFound { name, variable, looked }
    }
}

/// Why CIFAR, of which one may be meant, is not at a path.
pub(crate) fn no_cifar(path: &Path, set: Option<&SetFacts>) -> DataError {
    let expected = set.map_or("CIFAR-10 or CIFAR-100", |set| set.title);
    let needs = "its binary or its python files, or one of its .tar.gz archives,";
    DataError::NotThisSet { path: path.into(), expected, needs }
}

/// What stands before the path of a list of files.
const LIST: &str = "files:";

/// The list of files that `spec` names, where it says that it is one.
pub(crate) fn list_of(spec: &str) -> Option<&Path> {
    spec.strip_prefix(LIST).map(Path::new)
}

/// The path in what a user types for a data set; none in a name alone.
pub fn path_of(spec: &str) -> Option<&Path> {
    if let Some(list) = list_of(spec) {
        return Some(list);
    }
    match Named::parse(spec) {
        Some(named) => named.path,
        None => (spec != "shapes").then(|| Path::new(spec)),
    }
}

/// What to type in any folder for what `spec` means in this one; none where nothing is there, or it
/// lies nowhere (`shapes`).
pub fn seen_from(folder: &str, spec: &str) -> Option<String> {
    let named = Named::parse(spec);
    let path = match (path_of(spec), named) {
        (Some(path), _) => path,
        // Whatever the folder.
        (None, Some(named)) if named.told().is_some() => return Some(spec.into()),
        (None, Some(_)) => Path::new(UNTOLD),
        (None, None) => return None,
    };
    let path = Path::new(folder).join(path);
    let text = path.to_str().filter(|_| path.exists())?;
    Some(match (named, spec.split_once(':')) {
        (None, _) if list_of(spec).is_some() => format!("{LIST}{text}"),
        (None, _) => text.into(),
        (Some(_), typed) => format!("{}:{text}", typed.map_or(spec, |(name, _)| name)),
    })
}

/// What lies at a path that exists; none where it is a file that is no set.
pub(crate) fn recognise(path: &Path) -> Result<Option<FoundSet>, DataError> {
    if path.is_file() && pack::is_pack(path) {
        return Ok(Some(FoundSet::Pack(path.into())));
    }
    if cifar::is_here(path, None)? {
        return Ok(Some(FoundSet::Cifar(path.into(), None)));
    }
    if !path.is_dir() {
        let is_list = path.extension().is_some_and(|e| e == "txt");
        let found = archive::is_archive(path) || is_list;
        return Ok(found.then(|| FoundSet::Folder(path.into())));
    }
    let known = svhn::find(path)
        .map(|folder| FoundSet::Svhn(folder, false))
        .or_else(|| cub::find(path).map(FoundSet::Cub))
        .or_else(|| dogs::find(path).map(FoundSet::Dogs))
        .or_else(|| imagenet::find(path, false).map(FoundSet::ImageNet));
    Ok(Some(known.unwrap_or_else(|| FoundSet::Folder(path.into()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_in_one_folder_is_found_from_another() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        for inside in ["pictures", "data"] {
            std::fs::create_dir(folder.path().join(inside)).unwrap();
        }
        let from = |spec: &str| seen_from(place, spec);
        assert_eq!(from("pictures"), Some(format!("{place}/pictures")));
        assert_eq!(from("svhn:data"), Some(format!("svhn:{place}/data")));
        assert_eq!(from("svhn+extra:data"), Some(format!("svhn+extra:{place}/data")));
        let whole = format!("{place}/pictures");
        assert_eq!(from(&whole), Some(whole.clone()), "it is absolute already");
        assert_eq!(from("files:data"), Some(format!("files:{place}/data")));
        // Nothing to find.
        assert_eq!((from("shapes"), from("gone"), from("dogs:gone")), (None, None, None));
    }
}
