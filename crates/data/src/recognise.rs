//! Which data set did the user mean, and which lies at a path?

use std::path::{Path, PathBuf};

use crate::datasets::{DATASETS, DatasetSpec, Read, find_dataset};
use crate::files::{Listing, archive};
use crate::{DataError, Dataset, LabelChoice, folder, pack};

/// Where published sets are looked for when nobody says where they are.
const UNTOLD: &str = "data";

/// A data set on disk, recognised but not read.
#[derive(Clone, Debug)]
pub(crate) enum LocatedDataset {
    /// A published set, its folder or archive, and whether the extra images are wanted.
    Published(&'static DatasetSpec, PathBuf, bool),
    /// A packed set.
    Pack(PathBuf),
    /// Any folder of pictures, archive of them, or list of files.
    Folder(PathBuf),
}

/// What a data set consists of.
pub(crate) enum Contents {
    /// Files, none of which is read yet.
    Files(Listing),
    /// Images, at the set's own size.
    Images(Dataset),
    /// A packed set.
    Pack(PathBuf),
}

impl LocatedDataset {
    /// Lists its files or reads its images.
    pub fn contents(self, labels: LabelChoice) -> Result<Contents, DataError> {
        Ok(match self {
            LocatedDataset::Published(set, path, extra) => match &set.read {
                Read::Files(list) => Contents::Files(list(&path)?),
                Read::Images(open) => Contents::Images(open(&path, extra)?),
            },
            LocatedDataset::Pack(path) => Contents::Pack(path),
            LocatedDataset::Folder(path) => Contents::Files(folder::list(&path, labels)?),
        })
    }
}

/// A published set by name: `svhn`, `svhn+extra`, `svhn:PATH`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub set: &'static DatasetSpec,
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
        let (name, extra) = match name.strip_suffix("+extra") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let set = find_dataset(name).filter(|set| !extra || set.has_extra())?;
        Some(Named { set, extra, path })
    }

    /// Where it lies: at its path, where its variable says, or under `./data`.
    pub fn find(&self) -> Result<LocatedDataset, DataError> {
        match self.path.map(PathBuf::from).or_else(|| self.told()) {
            Some(path) if !path.exists() => Err(DataError::not_found(&path)),
            Some(path) => self.at(&path).ok_or_else(|| self.set.not_at(&path)),
            None => self.at(Path::new(UNTOLD)).ok_or_else(|| self.nowhere()),
        }
    }

    /// Where its variable says that it lies.
    fn told(&self) -> Option<PathBuf> {
        let value = std::env::var_os(self.set.env_var)?;
        (!value.is_empty()).then(|| value.into())
    }

    /// The set in or under a folder.
    fn at(&self, path: &Path) -> Option<LocatedDataset> {
        let place = (self.set.locate)(path, true)?;
        Some(LocatedDataset::Published(self.set, place, self.extra))
    }

    fn nowhere(&self) -> DataError {
        let (name, variable) = (self.set.name, self.set.env_var);
        let mut looked = vec![format!("{variable} (not set)")];
        looked.extend(self.set.places.iter().map(|place| format!("./{UNTOLD}/{place}")));
        DataError::NotThisSet(format!(
            "{name} was not found; looked in {}. Get it with `anchorhood data fetch {name}`, or \
             give its place as `{name}:PATH` or in {variable}",
            looked.join(", ")
        ))
    }
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
pub(crate) fn recognise(path: &Path) -> Option<LocatedDataset> {
    if path.is_file() && pack::is_pack(path) {
        return Some(LocatedDataset::Pack(path.into()));
    }
    let published = |set: &'static DatasetSpec| {
        let place = (set.locate)(path, false)?;
        Some(LocatedDataset::Published(set, place, false))
    };
    if let Some(found) = DATASETS.all().into_iter().find_map(published) {
        return Some(found);
    }
    let is_list = || path.extension().is_some_and(|e| e == "txt");
    let is_images = path.is_dir() || archive::is_archive(path) || is_list();
    is_images.then(|| LocatedDataset::Folder(path.into()))
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
