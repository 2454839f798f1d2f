//! Where do Python's packages lie? Some bring libraries that are opened at run time.

use std::path::{Path, PathBuf};

/// The folders of packages, `<prefix>/lib/python3.*/site-packages`, for the prefix of an active
/// virtual environment, of every Python on the PATH and of the user; on Windows
/// `<prefix>/Lib/site-packages`.
pub fn python_packages() -> Vec<PathBuf> {
    let environment = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let user = std::env::var_os("HOME").map(|h| Path::new(&h).join(".local"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_python = |bin: &PathBuf| bin.join("python3").exists();
    let prefixes = std::env::split_paths(&path)
        .filter(has_python)
        .filter_map(|bin| bin.parent().map(Path::to_path_buf));
    let all = environment.into_iter().chain(prefixes).chain(user);
    all.flat_map(|prefix| packages_of(&prefix)).collect()
}

fn packages_of(prefix: &Path) -> Vec<PathBuf> {
    let versions = entries_beginning(&prefix.join("lib"), "python3").into_iter();
    let unix = versions.flat_map(|v| [v.join("site-packages"), v.join("dist-packages")]);
    let windows = cfg!(windows).then(|| prefix.join("Lib/site-packages"));
    unix.chain(windows).collect()
}

/// A folder's entries whose names begin so, in order; nothing if there is no such folder.
pub fn entries_beginning(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let Ok(read) = std::fs::read_dir(folder) else {
        return vec![];
    };
    let begins =
        |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(beginning));
    let mut found: Vec<PathBuf> = read.flatten().map(|e| e.path()).filter(begins).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_every_version_are_found() {
        let prefix = tempfile::tempdir().unwrap();
        for name in ["python3.11", "python3.9", "other"] {
            std::fs::create_dir_all(prefix.path().join("lib").join(name)).unwrap();
        }
        let found = packages_of(prefix.path());
        let lib = prefix.path().join("lib");
        let expected = ["python3.11", "python3.9"].map(|v| lib.join(v).join("site-packages"));
        assert!(expected.iter().all(|e| found.contains(e)), "{found:?}");
        assert!(entries_beginning(&lib.join("no"), "").is_empty());
    }
}
