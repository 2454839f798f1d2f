//! What is kept of finished work, so that it is never done twice: small JSON files beside a run's
//! checkpoints.

use std::path::Path;

use anchorhood_storage::{AtomicFile, Disk, FileSystem, folder_of, read_text_at_most};
use anchorhood_train::{Accuracy, PretextMeasured, RunConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Protocol, ReproduceError};

/// Larger files are no records.
const MOST_BYTES: u64 = 1 << 26;

/// A data set, as it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// What it is called.
    pub name: String,
    /// Pictures to train on.
    pub train: usize,
    /// Pictures to test on.
    pub test: usize,
    /// Their pixels a side.
    pub size: usize,
    /// Classes.
    pub classes: usize,
    /// XXH3 of the counts, of all labels, and of the pixels of 500 to 1,000 pictures of each split
    /// at equal distances (of all, where there are fewer).
    pub fingerprint: String,
}

/// One round of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// Which, from 0.
    pub round: usize,
    /// kNN top-1 after its last epoch, a share.
    pub top1: Option<f64>,
    /// Anchors; none in round 0.
    pub anchors: Option<usize>,
    /// Anchors all of whose neighbours are of their class.
    pub consistent: Option<usize>,
    /// The other anchors.
    pub inconsistent: Option<usize>,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedRun {
    /// Its name, and that of its folder.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// The device, in words.
    pub device: String,
    /// How long it took, that of the Instance run it began from included.
    pub seconds: f64,
    /// Decides every random draw.
    pub seed: u64,
    /// What it was trained on.
    pub data: DataRecord,
    /// kNN of the memory after the last epoch, where there is a memory.
    pub knn: Option<Accuracy>,
    /// Its rounds.
    pub rounds: Vec<RoundRecord>,
    /// How well it did its pretext task after every epoch, where it has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pretext: Vec<PretextMeasured>,
    /// All its settings.
    pub config: RunConfig,
}

impl FinishedRun {
    /// Whether it has a figure by this protocol of its own.
    pub(crate) fn is_judged_by_itself(&self, protocol: Protocol) -> bool {
        protocol == Protocol::Knn && self.knn.is_some()
    }
}

/// Features, judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// How.
    pub protocol: String,
    /// Share of test pictures whose class came first.
    pub top1: f64,
    /// Share whose class was among the first five, where there are more than five classes.
    pub top5: Option<f64>,
    /// Test pictures.
    pub n: usize,
    /// Epochs of the linear classifier.
    pub linear_epochs: Option<usize>,
    /// How long it took.
    pub seconds: f64,
}

/// Reads a record, if there is one.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ReproduceError> {
    let text = match read_text_at_most(path, MOST_BYTES) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(ReproduceError::io(path))?,
    };
    let parsed = serde_json::from_str(&text);
    parsed
        .map(Some)
        .map_err(|e| ReproduceError::Record { path: path.into(), reason: e.to_string() })
}

/// Writes a record, whole or not at all.
pub fn write<T: Serialize>(path: &Path, record: &T) -> Result<(), ReproduceError> {
    let mut text = serde_json::to_vec_pretty(record).expect("records are plain values");
    text.push(b'\n');
    write_bytes(path, &text)
}

/// Writes a file aside, syncs and renames it; its folder is made if need be.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), ReproduceError> {
    let folder = folder_of(path);
    Disk.create_folders(folder).map_err(ReproduceError::io(folder))?;
    AtomicFile::write(path, bytes).map_err(ReproduceError::io(path))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        assert!(read::<DataRecord>(Path::new("/dev/zero")).is_err());
        assert_eq!(read::<DataRecord>(Path::new("/nowhere/at/all")).unwrap(), None);
    }
}
