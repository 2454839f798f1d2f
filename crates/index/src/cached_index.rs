//! Where the index of folders is kept for whoever names folders and needs an index: in the user's
//! cache, and never in a folder of pictures.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anchorhood_storage::{Disk, FileSystem, cache_folder};

use crate::folders::absolute;
use crate::{Model, SearchError};

/// The file of the index of some folders by a model, or by one of its layers; the folder it lies in
/// is made.
pub fn cached_index(
    model: &Model,
    folders: &[PathBuf],
    layer: Option<&str>,
) -> Result<PathBuf, SearchError> {
    let cache = cache_folder().unwrap_or_else(|| std::env::temp_dir().join("anchorhood"));
    let cache = cache.join("indices");
    let made = Disk.create_folders(&cache);
    made.map_err(|e| {
        let why = format!("the index of these pictures would be kept here: {e}");
        SearchError::failed(&cache, why + "; name another place by ANCHORHOOD_CACHE")
    })?;
    let mut hasher = DefaultHasher::new();
    (model.fingerprint(), layer).hash(&mut hasher);
    for folder in folders {
        absolute(folder)?.hash(&mut hasher);
    }
    let name = folders.first().and_then(|f| f.canonicalize().ok());
    let name = name.as_deref().and_then(Path::file_name);
    let name = name.unwrap_or("pictures".as_ref()).to_string_lossy();
    Ok(cache.join(format!("{name}-{:016x}.index", hasher.finish())))
}
