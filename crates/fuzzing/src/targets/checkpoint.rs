//! Checkpoints.

use std::path::Path;

use anchorhood_storage::Forgetful;
use anchorhood_train::Checkpoint;
use anchorhood_train::fuzzing::small_checkpoint as small;
use anchorhood_train::methods::StateDict;

use super::container::{bytes_of, disk_with};

/// What was read is used, and saved again it makes the same bytes each time.
pub fn read(bytes: &[u8]) -> Option<()> {
    let path = Path::new("a");
    let checkpoint = Checkpoint::load_from(&disk_with(path, bytes), path).ok()?;
    let rows = checkpoint.memory().map_or(0, |(rows, _)| rows.len());
    assert!(checkpoint.pictures() <= rows);
    if let Some(found) = checkpoint.neighbourhoods() {
        assert_eq!(found.len(), checkpoint.pictures());
    }
    assert!(!checkpoint.network().is_empty());
    // What is repaired may have names that cannot be kept.
    if let Some(saved) = saved(&checkpoint) {
        let again = Checkpoint::load_from(&disk_with(path, &saved), path);
        let again = again.expect("what was saved is read");
        assert_eq!(self::saved(&again), Some(saved));
    }
    Some(())
}

fn saved(checkpoint: &Checkpoint) -> Option<Vec<u8>> {
    let (path, disk) = (Path::new("b"), Forgetful::new());
    checkpoint.save_on(&disk, path).ok()?;
    Some(bytes_of(path, &disk))
}

pub fn seeds() -> Vec<Vec<u8>> {
    let bare = Checkpoint { state: StateDict::default(), rows: [0, 0], heads: vec![], ..small() };
    [small(), bare].map(|c| saved(&c).expect("it is whole")).into()
}
