//! Where a program keeps files of its own: what it could make again (compiled kernels, measured
//! choices, indices of folders) in the user's cache, what it could not (decisions, keys) among the
//! user's data.
//!
//! Kept by hand: `dirs` names other folders on macOS, and stands on a crate under the MPL.

use std::path::{Path, PathBuf};

/// ANCHORHOOD_CACHE, else `anchorhood` under XDG_CACHE_HOME, else under `~/.cache`; none where
/// there is no home. It need not be there.
pub fn cache_folder() -> Option<PathBuf> {
    let own = set("ANCHORHOOD_CACHE").map(PathBuf::from);
    own.or_else(|| of_user("XDG_CACHE_HOME", ".cache"))
}

/// `anchorhood` under XDG_DATA_HOME, else under `~/.local/share`; none where there is no home. It
/// need not be there.
pub fn data_folder() -> Option<PathBuf> {
    of_user("XDG_DATA_HOME", ".local/share")
}

fn of_user(variable: &str, in_home: &str) -> Option<PathBuf> {
    let home = || set("HOME").map(|home| Path::new(&home).join(in_home));
    let shared = set(variable).map(PathBuf::from).or_else(home);
    shared.map(|folder| folder.join("anchorhood"))
}

fn set(variable: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}
