//! Where a program keeps what it could make again: compiled kernels, measured choices, indices of folders.

use std::path::{Path, PathBuf};

/// ANCHORHOOD_CACHE, else `anchorhood` under XDG_CACHE_HOME, else under `~/.cache`; none where there is no home. It need not be there.
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty());
    let home = || set("HOME").map(|home| Path::new(&home).join(".cache"));
    let shared = || set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let own = set("ANCHORHOOD_CACHE").map(PathBuf::from);
    own.or_else(|| Some(shared()?.join("anchorhood")))
}
