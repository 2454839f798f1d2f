//! Labels that a person gave to some pictures: a CSV file of paths and labels.
//!
//! The first row may name its columns; then `path` (or `file`, `name`, `picture`) and `label` (or
//! `class`) are taken by name, else the first two columns are meant. A row without a label is
//! passed over, so that a list of pictures to label can be filled in part and given back.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anchorhood_storage::read_at_most;

use crate::{IndexedFolder, SearchError};

/// More than a line for each of ten million pictures.
const MOST_BYTES: u64 = 1 << 30;

/// Labels by picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenLabels {
    path: PathBuf,
    rows: Vec<(String, String)>,
}

impl GivenLabels {
    /// Reads a CSV file.
    pub fn read(path: &Path) -> Result<GivenLabels, SearchError> {
        let text = read_at_most(path, MOST_BYTES).map_err(SearchError::io(path))?;
        let bad = |reason: String| SearchError::refused(path, reason);
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_slice());
        let mut columns = None;
        let mut rows = vec![];
        for record in reader.records() {
            let record = record.map_err(|e| bad(format!("not a CSV file: {e}")))?;
            let line = record.position().map_or(0, |p| p.line());
            if columns.is_none() {
                let named = named_columns(&record);
                columns = Some(named.unwrap_or((0, 1)));
                if named.is_some() {
                    continue;
                }
            }
            let (path_at, label_at) = columns.unwrap_or((0, 1));
            let Some(picture) = record.get(path_at).filter(|p| !p.trim().is_empty()) else {
                continue;
            };
            match record.get(label_at).map(str::trim) {
                None => {
                    let reason = format!(
                        "line {line} has no label; each line is a picture's path, a comma and its label"
                    );
                    return Err(bad(reason));
                }
                Some("") => continue,
                Some(label) => rows.push((picture.to_string(), label.to_string())),
            }
        }
        if rows.is_empty() {
            let reason = "no labels in it; each line is a picture's path, a comma and its label";
            return Err(bad(reason.into()));
        }
        Ok(GivenLabels { path: path.into(), rows })
    }

    /// The label of each of the named pictures, where it has one. Paths are names, or relative to a
    /// folder of the pictures, or lead there from here. A path that is none of the pictures, and a
    /// picture with two labels, are errors.
    pub fn of(
        &self,
        names: &[String],
        folders: &[IndexedFolder],
    ) -> Result<Vec<Option<String>>, SearchError> {
        let bad = |reason: String| SearchError::refused(&self.path, reason);
        let places: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        let folders: Vec<IndexedFolder> =
            folders.iter().map(IndexedFolder::without_links).collect();
        let mut found: Vec<Option<String>> = vec![None; names.len()];
        let mut unknown = vec![];
        for (path, label) in &self.rows {
            // A name may begin or end with a space; most spaces are somebody's way of writing.
            let found_at = place(&places, path, &folders);
            let Some(i) = found_at.or_else(|| place(&places, path.trim(), &folders)) else {
                unknown.push(path.trim());
                continue;
            };
            match &found[i] {
                Some(other) if other != label => {
                    return Err(bad(format!("{path} is labelled both {other} and {label}")));
                }
                _ => found[i] = Some(label.clone()),
            }
        }
        if !unknown.is_empty() {
            let shown = unknown[..unknown.len().min(3)].join(", ");
            return Err(bad(format!(
                "{} of its {} pictures are not among those in {} ({shown}{}); give paths relative to that folder",
                unknown.len(),
                self.rows.len(),
                paths(&folders),
                if unknown.len() > 3 { ", …" } else { "" }
            )));
        }
        Ok(found)
    }
}

/// The names of classes in order, and of each picture the number of its own.
pub fn numbered_classes(classes: &[Option<String>]) -> (Vec<&String>, Vec<Option<u32>>) {
    let names: BTreeSet<&String> = classes.iter().flatten().collect();
    let numbers: HashMap<&String, u32> = names.iter().copied().zip(0..).collect();
    let of = classes.iter().map(|class| class.as_ref().map(|name| numbers[name])).collect();
    (names.into_iter().collect(), of)
}

fn named_columns(record: &csv::StringRecord) -> Option<(usize, usize)> {
    let find = |names: &[&str]| {
        let is = |field: &str| names.contains(&field.trim().to_lowercase().as_str());
        record.iter().position(is)
    };
    find(&["path", "file", "name", "picture"]).zip(find(&["label", "class"]))
}

fn paths(folders: &[IndexedFolder]) -> String {
    let paths = folders.iter().map(|f| f.path.display().to_string());
    paths.collect::<Vec<_>>().join(" and ")
}

fn place(places: &HashMap<&str, usize>, path: &str, folders: &[IndexedFolder]) -> Option<usize> {
    let plain = path.trim_start_matches("./").replace('\\', "/");
    let known = |name: &str| places.get(name).copied();
    // Seen from a folder; where two have such a picture, nobody knows which is meant.
    let within = || {
        let mut all = folders.iter().filter_map(|f| known(&f.name(&plain)));
        let first = all.next()?;
        all.next().is_none().then_some(first)
    };
    let absolute = || {
        let full = Path::new(path).canonicalize().ok()?;
        let inside = |f: &IndexedFolder| {
            let within = full.strip_prefix(&f.path).ok()?.to_str()?.to_owned();
            known(&f.name(&within))
        };
        folders.iter().find_map(inside)
    };
    let named = known(path).or_else(|| known(&plain));
    named.or_else(within).or_else(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<GivenLabels, SearchError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.csv");
        std::fs::write(&path, text).unwrap();
        GivenLabels::read(&path)
    }

    fn names() -> Vec<String> {
        ["a.png", "b/ü, x.jpg", "c.png"].map(String::from).into()
    }

    fn folder(path: impl Into<PathBuf>) -> [IndexedFolder; 1] {
        [IndexedFolder::alone(path)]
    }

    fn of(text: &str) -> Result<Vec<Option<String>>, String> {
        let labels = read(text).map_err(|e| e.to_string())?;
        let found = labels.of(&names(), &folder("nowhere"));
        found.map_err(|e| e.to_string())
    }

    #[test]
    fn with_and_without_names_of_columns() {
        let expected = Ok(vec![Some("cat".into()), Some("dog".into()), None]);
        assert_eq!(of("a.png,cat\n\"b/ü, x.jpg\",dog\n"), expected);
        assert_eq!(of("label,score,path\ncat,1,./a.png\ndog,2,\"b/ü, x.jpg\"\n,3,c.png"), expected);
    }

    #[test]
    fn spaces_belong_to_a_name_that_has_them() {
        let names = [" a.png", "b.png ", "c.png"].map(String::from);
        let labels = read(" path , label \n a.png,x\nb.png , y \n c.png , z").unwrap();
        let found = labels.of(&names, &folder("nowhere")).unwrap();
        assert_eq!(found, ["x", "y", "z"].map(|l| Some(l.to_string())));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("", "no labels in it"),
            ("a.png\n", "line 1 has no label"),
            ("a.png,\n", "no labels in it"),
            ("a.png,cat\na.png,dog", "both cat and dog"),
            ("z.png,cat\na.png,dog", "1 of its 2 pictures are not among"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn paths_from_here_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let picture = folder.path().join("c.png");
        std::fs::write(&picture, "").unwrap();
        let labels = read(&format!("{},cat", picture.display())).unwrap();
        let found = labels.of(&names(), &self::folder(folder.path())).unwrap();
        assert_eq!(found, [None, None, Some("cat".into())]);
    }

    #[test]
    fn of_several_folders_the_one_that_has_it_is_meant() {
        let folder =
            |label: &str| IndexedFolder { label: label.into(), ..IndexedFolder::alone(label) };
        let names = ["a/1.png", "b/1.png", "b/2.png"].map(String::from);
        let labels = read("2.png,x\nb/1.png,y").unwrap();
        let found = labels.of(&names, &[folder("a"), folder("b")]).unwrap();
        assert_eq!(found, [None, Some("y".into()), Some("x".into())]);
        let either = read("1.png,x").unwrap();
        assert!(either.of(&names, &[folder("a"), folder("b")]).is_err());
    }
}
