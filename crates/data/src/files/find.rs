//! The pictures of a folder by their names alone, to be read one at a time: for folders larger than
//! memory.

use std::path::{Path, PathBuf};

use super::{Listing, picture_named};
use crate::{DataError, LabelChoice, folder};

/// A file that should be a picture; whether it is, reading will tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureFile {
    /// Where it lies.
    pub path: PathBuf,
    /// The same relative to the folder, parts joined by `/`.
    pub name: String,
    /// Its class, where the folder has classes: the name of a sub-folder.
    pub class: Option<String>,
}

/// Every picture under `root`, a folder or a tar archive, or of the list of files that `root` is,
/// found as for training, without reading one. A folder without pictures is an error.
pub fn find_pictures(root: &Path, labels: LabelChoice) -> Result<Listing, DataError> {
    if !root.exists() {
        return Err(DataError::not_found(root));
    }
    let listing = folder::list(root, labels)?;
    let empty = listing.parts().all(|(_, part)| part.files.is_empty());
    if empty { Err(listing.empty()) } else { Ok(listing) }
}

impl Listing {
    /// Every file, also to test on, sorted by name.
    pub fn files(&self) -> Vec<PictureFile> {
        let mut files = vec![];
        for (_, part) in self.parts() {
            files.extend(part.files.iter().enumerate().map(|(i, name)| PictureFile {
                path: picture_named(&self.root, name),
                name: name.clone(),
                class: part.labels.as_ref().map(|labels| labels.class(i).into()),
            }));
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    fn found(names: &[&str]) -> Vec<(String, Option<String>)> {
        let dir = TestFolder::of(names, b"");
        let files = find_pictures(&dir, LabelChoice::Auto).unwrap().files();
        assert!(files.iter().all(|f| f.path == dir.join(&f.name)));
        files.into_iter().map(|f| (f.name, f.class)).collect()
    }

    #[test]
    fn classes_are_those_of_training() {
        let of = |name: &str, class: Option<&str>| (name.to_string(), class.map(str::to_owned));
        assert_eq!(
            found(&["dog/2.png", "cat/1.png"]),
            [of("cat/1.png", Some("cat")), of("dog/2.png", Some("dog"))]
        );
        assert_eq!(
            found(&["cat/1.png", "dog/2.png", "loose.png"]),
            ["cat/1.png", "dog/2.png", "loose.png"].map(|name| of(name, None))
        );
        assert_eq!(
            found(&["train/a/1.png", "train/b/1.png", "test/a/2.png"]),
            [
                of("test/a/2.png", Some("a")),
                of("train/a/1.png", Some("a")),
                of("train/b/1.png", Some("b"))
            ]
        );
    }

    #[test]
    fn nothing_and_nowhere_are_errors() {
        let dir = TestFolder::new();
        let message = |path: &Path| find_pictures(path, LabelChoice::Auto).unwrap_err().to_string();
        assert!(message(&dir).contains("no pictures here"));
        dir.put("a.cr2", b"");
        assert!(message(&dir).contains("(1 .cr2 skipped: a camera's raw data"));
        assert!(message(&dir.join("x")).contains("no such file or folder"));
    }
}
