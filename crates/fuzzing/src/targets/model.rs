//! Models alone in a file.

use std::path::Path;

use anchorhood_files::Forgetful;
use anchorhood_search::Model;
use anchorhood_search::fuzzing::small_model;

use super::container::bytes_of;

/// What was read is saved, and read again it is the same model.
pub fn read(bytes: &[u8]) -> Option<()> {
    let model = Model::of_bytes(Path::new("a"), bytes.to_vec().into()).ok()?;
    let again = Model::of_bytes(Path::new("b"), saved(&model).into());
    let again = again.expect("what was saved is read");
    assert_eq!(again.fingerprint(), model.fingerprint());
    Some(())
}

fn saved(model: &Model) -> Vec<u8> {
    let (path, disk) = (Path::new("b"), Forgetful::new());
    model.save_on(&disk, path).expect("it is whole");
    bytes_of(path, &disk)
}

pub fn seeds() -> Vec<Vec<u8>> {
    vec![saved(&small_model())]
}
