//! What lists of pictures have in common: they are text or MATLAB files that a stranger wrote, and
//! they name files.

use std::path::{Component, Path, PathBuf};

use anchorhood_storage::read_at_most;

use crate::DataError;
use crate::files::{Listing, picture_named};

/// The text of a file of at most `most` bytes.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String, DataError> {
    let bytes = read_at_most(path, most).map_err(|e| DataError::io(path, e))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a name leads to somewhere below the folder it is relative to.
pub(super) fn inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Refuses a listing that names pictures which are not there. `list` says which file names those of
/// a part.
pub(super) fn check_there(
    listing: &Listing,
    list: impl Fn(&str) -> PathBuf,
) -> Result<(), DataError> {
    for (split, part) in listing.parts() {
        let paths = part.files.iter().map(|file| picture_named(&listing.root, file));
        let mut missing = paths.filter(|path| !path.is_file());
        if let Some(first) = missing.next() {
            let missing = 1 + missing.count();
            return Err(DataError::not_there(list(split), part.files.len(), missing, &first));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::inside;

    #[test]
    fn names_may_not_lead_out() {
        assert!(inside("a/b.jpg") && inside("b.jpg"));
        for name in ["", "/etc/passwd", "../b.jpg", "a/../../b.jpg", "./a"] {
            assert!(!inside(name), "{name}");
        }
    }
}
