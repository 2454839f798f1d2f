//! A list of files: a text with a path on each line, and where one is known the picture's class
//! after a tab.
//!
//! Paths are absolute or seen from the list's own folder. Empty lines and those that begin with `#`
//! say nothing. Whatever a name ends with, it is taken for a picture.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::archive;
use super::named::{name_of, picture_named};
use super::scan::Found;
use crate::DataError;
use crate::datasets::lists::read_text;

/// Longer lists are refused.
const MOST_BYTES: u64 = 1 << 28;

/// The folder that names are relative to, and the files that the list at `path` names.
pub(crate) fn read(path: &Path) -> Result<(PathBuf, Found), DataError> {
    let text = read_text(path, MOST_BYTES)?;
    let lines = text.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut files = BTreeMap::new();
    for line in lines {
        let (file, class) = match line.split_once('\t') {
            Some((file, class)) => (file, Some(class.trim())),
            None => (line, None),
        };
        files.insert(named(file), class.filter(|class| !class.is_empty()));
    }
    let mut found = Found::default();
    for (name, class) in files {
        if let Some(class) = class {
            found.told.insert(name.clone(), class.to_string());
        }
        found.candidates.push(name);
    }
    let folder: PathBuf = match path.parent() {
        Some(folder) if folder != Path::new("") => folder.into(),
        _ => ".".into(),
    };
    check_there(path, &folder, &found)?;
    Ok((folder, found))
}

/// Some file must be there: any text could be taken for a list.
fn check_there(path: &Path, folder: &Path, found: &Found) -> Result<(), DataError> {
    let there = |file: &String| archive::about(&picture_named(folder, file)).is_some();
    let reason = match found.candidates.first() {
        _ if found.candidates.iter().any(there) => return Ok(()),
        None => "names no files; expected the path of a picture on each line".into(),
        Some(first) => format!(
            "names {} files, of which none is there; the first is {}, seen from {}",
            found.candidates.len(),
            first,
            folder.display()
        ),
    };
    Err(DataError::bad(path, reason))
}

/// The path as a picture's name, part by part.
fn named(file: &str) -> String {
    let file = file.strip_prefix("./").unwrap_or(file);
    let parts: Vec<String> = file.split('/').map(|part| name_of(part.as_ref())).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_files_with_or_without_classes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list.txt");
        let text =
            "# mine\nb/2.jpg\tdog\r\n./a 1.png\tcat\n\n/x/y.jpeg\n../up.jpg\t \nb/2.jpg\tdog\n";
        std::fs::write(&path, text).unwrap();
        let said = read(&path).err().unwrap().to_string();
        assert!(said.contains("4 files, of which none is there"), "{said}");
        std::fs::write(dir.path().join("a 1.png"), "").unwrap();
        let (folder, found) = read(&path).unwrap();
        assert_eq!(folder, dir.path());
        assert_eq!(found.candidates, ["../up.jpg", "/x/y.jpeg", "a 1.png", "b/2.jpg"]);
        assert_eq!(picture_named(&folder, &found.candidates[1]), Path::new("/x/y.jpeg"));
        let told: Vec<_> = found.told.iter().collect();
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        let (a, b) = (pair("a 1.png", "cat"), pair("b/2.jpg", "dog"));
        assert_eq!(told, [(&a.0, &a.1), (&b.0, &b.1)]);
    }
}
