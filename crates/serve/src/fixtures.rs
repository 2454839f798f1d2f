//! What the tests of several modules need.

use std::path::Path;

use anchorhood_index::{IndexParts, IndexedFolder, PictureIndex};

/// An index of images in a folder, each with a vector of `dim` and perhaps a label.
pub(crate) fn index(
    folder: &Path,
    names: &[impl ToString],
    labels: &[Option<&str>],
    vectors: Vec<f32>,
) -> PictureIndex {
    let label = |i| labels.get(i).copied().flatten().map(String::from);
    let parts = IndexParts {
        folders: vec![IndexedFolder::alone(folder)],
        names: names.iter().map(|name| name.to_string()).collect(),
        classes: (0..names.len()).map(label).collect(),
        dim: vectors.len() / names.len(),
        vectors: vectors.into(),
        ..IndexParts::default()
    };
    PictureIndex::from_parts(Path::new("test.index"), parts).unwrap()
}

/// Runs a test that waits.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(test)
}
