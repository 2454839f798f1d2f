//! The folders that an index is of. One folder's pictures are named relative to it; of several,
//! each has a label, which stands before the names of its pictures: `holidays/2019/a.jpg` is
//! `2019/a.jpg` in the folder called `holidays` here.

use std::path::{Path, PathBuf};

use anchorhood_data::{
    FolderReport, LabelChoice, PictureFile, find_pictures, name_of, picture_named,
};
use serde::{Deserialize, Serialize};

use crate::SearchError;

/// A folder of pictures, an archive of them, or the folder that a list of files is seen from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedFolder {
    /// What its pictures' names begin with, before a `/`; empty where there is one folder alone.
    pub label: String,
    /// Where it lies, from the root of the file system.
    pub path: PathBuf,
    /// Whether a list named its images, and nothing else in it is looked at.
    pub of_list: bool,
}

impl IndexedFolder {
    /// A folder that is the only one.
    pub fn alone(path: impl Into<PathBuf>) -> IndexedFolder {
        IndexedFolder { path: path.into(), ..IndexedFolder::default() }
    }

    /// The name among all of a picture that has this name in the folder. A whole path needs no
    /// label.
    pub fn name(&self, within: &str) -> String {
        match self.label.is_empty() || Path::new(within).is_absolute() {
            true => within.into(),
            false => format!("{}/{within}", self.label),
        }
    }

    /// The folder without links on the way to it, as far as it is there.
    pub fn without_links(&self) -> IndexedFolder {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        IndexedFolder { path, ..self.clone() }
    }

    /// The other way, for a picture of this folder.
    pub fn within<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self.label.as_str() {
            "" => Some(name),
            label => name.strip_prefix(label)?.strip_prefix('/'),
        }
    }
}

/// A path from the root of the file system.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, SearchError> {
    std::path::absolute(path).map_err(SearchError::io(path))
}

/// Where the picture of a name lies; its folder, and the path.
pub(crate) fn place<'a>(
    folders: &'a [IndexedFolder],
    name: &str,
) -> (Option<&'a IndexedFolder>, PathBuf) {
    let found = folders.iter().find_map(|f| Some((f, f.within(name)?)));
    match found {
        Some((folder, within)) => (Some(folder), picture_named(&folder.path, within)),
        // A list of files may name a whole path.
        None => (None, picture_named(Path::new(""), name)),
    }
}

/// The pictures of several folders.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundPictures {
    pub folders: Vec<IndexedFolder>,
    /// Sorted by name; each name once.
    pub files: Vec<PictureFile>,
    /// Folders inside that could not be read, each with the reason.
    pub unreadable: Vec<(String, String)>,
    /// What else was found, folder by folder.
    pub reports: Vec<FolderReport>,
}

/// Looks through folders, each as for training. Folders that lie in each other, or are given twice,
/// count their pictures once.
pub(crate) fn find(folders: &[PathBuf], labels: LabelChoice) -> Result<FoundPictures, SearchError> {
    let mut found = FoundPictures::default();
    let several = folders.len() > 1;
    let mut seen = std::collections::HashSet::new();
    for folder in folders {
        let whole = absolute(folder)?;
        let listing = find_pictures(&whole, labels)?;
        let (files, root) = (listing.files(), listing.root);
        let label = if several { free_label(&whole, &found.folders) } else { String::new() };
        let of_list = root != whole && whole.is_file();
        let here = IndexedFolder { label, path: root, of_list };
        let new = files.into_iter().filter(|f| seen.insert(f.path.clone()));
        found.files.extend(new.map(|file| PictureFile { name: here.name(&file.name), ..file }));
        let unreadable = listing.unreadable.into_iter();
        found.unreadable.extend(unreadable.map(|(name, why)| (here.name(&name), why)));
        found.reports.push(listing.report);
        found.folders.push(here);
    }
    found.files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The folder's own name, with a number where another has it.
fn free_label(folder: &Path, taken: &[IndexedFolder]) -> String {
    let name = folder.file_name().map_or("pictures".into(), name_of);
    let free = |label: &String| taken.iter().all(|f| f.label != *label);
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let mut all = std::iter::once(name.clone()).chain(numbered);
    all.find(free).expect("there is no end of numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(folder: &Path, name: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn names_are_unambiguous_and_lead_back() {
        let place_of = tempfile::tempdir().unwrap();
        let [a, b] = ["one/pictures", "two/pictures"].map(|f| place_of.path().join(f));
        for folder in [&a, &b] {
            picture(folder, "same.png");
        }
        picture(&b, "in/deep.png");
        let found = find(&[a.clone(), b.clone()], LabelChoice::None).unwrap();
        let names: Vec<&str> = found.files.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["pictures-2/in/deep.png", "pictures-2/same.png", "pictures/same.png"]);
        for file in &found.files {
            assert_eq!(place(&found.folders, &file.name).1, file.path);
        }
        let alone = find(std::slice::from_ref(&a), LabelChoice::None).unwrap();
        assert_eq!(alone.files[0].name, "same.png");
        assert_eq!(alone.folders[0].label, "");
        assert_eq!(place(&alone.folders, "same.png").1, a.join("same.png"));
    }

    #[test]
    fn a_picture_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        picture(folder.path(), "in/a.png");
        let (outer, inner) = (folder.path().to_owned(), folder.path().join("in"));
        let found = find(&[outer.clone(), inner, outer], LabelChoice::None).unwrap();
        assert_eq!(found.files.len(), 1);
        assert_eq!(found.folders.len(), 3);
    }
}
