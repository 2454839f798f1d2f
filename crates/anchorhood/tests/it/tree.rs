//! Where the project's files are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folders of all crates, by name.
pub fn crates() -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path())).collect()
}

/// The Rust files below a folder, if there is one.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    let all = entries.flat_map(|entry| below(entry.unwrap().path()));
    all.filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}
