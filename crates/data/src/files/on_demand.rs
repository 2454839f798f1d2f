//! Pictures that stay in their files until someone asks for one: sets too large for memory.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::decode::decode;
use super::scan::Candidate;

/// What stands for a picture whose file can no longer be read.
pub(crate) const GREY: u8 = 128;
/// More failures than anyone reads; beyond it they are no longer noted.
const MOST_NOTED: usize = 1000;

/// Picture files, each decoded to a square whenever it is asked for.
pub(crate) struct OnDemand {
    root: PathBuf,
    files: Vec<Candidate>,
    size: usize,
    kept: Vec<OnceLock<Box<[u8]>>>,
    failures: Mutex<Vec<(String, String)>>,
}

impl OnDemand {
    /// Files under `root`, to be decoded to `size`×`size`.
    pub fn new(root: PathBuf, files: Vec<Candidate>, size: usize) -> Self {
        OnDemand {
            root,
            size,
            kept: files.iter().map(|_| OnceLock::new()).collect(),
            files,
            failures: Mutex::default(),
        }
    }

    /// Decodes picture `i`. One that cannot be read becomes plain grey and is noted: a run of weeks must not end because
    /// a file vanished.
    pub fn decode(&self, i: usize, out: &mut [u8]) {
        let file = &self.files[i];
        if let Err(why) = decode(&file.path(&self.root), self.size, out) {
            out.fill(GREY);
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            let known = failures.iter().any(|(name, _)| *name == file.name);
            if failures.len() < MOST_NOTED && !known {
                failures.push((file.name.clone(), why));
            }
        }
    }

    /// Picture `i`, decoded at the first call and kept.
    pub fn keep(&self, i: usize, one: usize) -> &[u8] {
        self.kept[i].get_or_init(|| {
            let mut pixels = vec![0; one];
            self.decode(i, &mut pixels);
            pixels.into_boxed_slice()
        })
    }

    /// What could not be read so far.
    pub fn failures(&self) -> Vec<(String, String)> {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
