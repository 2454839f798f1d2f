//! Pictures that stay in their files until someone asks for one: sets too large for memory.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::archive;
use super::decode::{Picture, decode};
use super::named::picture_named;
use crate::crops;

/// What stands for a picture whose file can no longer be read.
pub(crate) const GREY: u8 = 128;
/// More failures than anyone reads; beyond it they are no longer noted.
const MOST_NOTED: usize = 1000;

/// Picture files, each decoded to a square whenever it is asked for.
pub(crate) struct OnDemand {
    root: PathBuf,
    files: Vec<String>,
    size: usize,
    /// CRC-32 of each picture's pixels, where all were decoded once.
    sums: Vec<u32>,
    kept: Vec<OnceLock<Box<[u8]>>>,
    /// What crops are cut from, of pictures that were asked for; where these are kept.
    slots: Option<Vec<OnceLock<Box<[u8]>>>>,
    failures: Mutex<Vec<(String, String)>>,
}

impl OnDemand {
    /// Files under `root`, to be decoded to `size`×`size`; `sums` are those of what came out, where
    /// it is known.
    pub fn new(root: PathBuf, files: Vec<String>, size: usize, sums: Vec<u32>) -> Self {
        OnDemand {
            root,
            size,
            sums,
            kept: files.iter().map(|_| OnceLock::new()).collect(),
            slots: None,
            files,
            failures: Mutex::default(),
        }
    }

    /// The same, where what was decoded once is kept.
    pub fn keeping(self) -> Self {
        let slots = self.files.iter().map(|_| OnceLock::new());
        OnDemand { slots: Some(slots.collect()), ..self }
    }

    /// Whether what was decoded once is kept.
    pub fn keeps(&self) -> bool {
        self.slots.is_some()
    }

    /// Decodes picture `i`. One that cannot be read becomes plain grey and is noted: a run of weeks
    /// must not end because a file vanished.
    pub fn decode(&self, i: usize, out: &mut [u8]) {
        if let Err(why) = decode(&picture_named(&self.root, &self.files[i]), self.size, out) {
            out.fill(GREY);
            self.note(i, why);
        }
    }

    /// Fills the slot of picture `i`, likewise.
    pub fn fill_slot(&self, i: usize, slot: &mut [u8]) {
        let Some(slots) = &self.slots else {
            return self.decode_slot(i, slot);
        };
        let kept = slots[i].get_or_init(|| {
            self.decode_slot(i, slot);
            slot.to_vec().into_boxed_slice()
        });
        slot.copy_from_slice(kept);
    }

    fn decode_slot(&self, i: usize, slot: &mut [u8]) {
        let path = picture_named(&self.root, &self.files[i]);
        let filled = Picture::read_for(path, self.size, |p| crops::fill(p, self.size, slot));
        if let Err(why) = filled {
            crops::fill_plain(GREY, self.size, slot);
            self.note(i, why);
        }
    }

    fn note(&self, i: usize, why: String) {
        let file = &self.files[i];
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failures.iter().any(|(name, _)| name == file);
        if failures.len() < MOST_NOTED && !known {
            failures.push((file.clone(), why));
        }
    }

    /// CRC-32 of picture `i`, where it was decoded before.
    pub fn checksum(&self, i: usize) -> Option<u32> {
        self.sums.get(i).copied()
    }

    /// The same of its file's name and length.
    pub fn checksum_of_file(&self, i: usize) -> u32 {
        let file = &self.files[i];
        let length =
            archive::about(&picture_named(&self.root, file)).map_or(0, |(length, _)| length);
        let mut sum = crc32fast::Hasher::new();
        sum.update(&length.to_le_bytes());
        sum.update(file.as_bytes());
        sum.finalize()
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
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
