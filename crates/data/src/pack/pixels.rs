//! The pictures of a pack where they lie, each compared with its checksum when it is first touched.
//!
//! A picture is what is touched at once, so it is what has a checksum: to check larger blocks would read hundreds of small
//! pictures for one. One that is damaged is seen as plain grey and noted, as a file is that cannot be read.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anchorhood_files::Bytes;
use rayon::prelude::*;

use super::format::{Entry, Index, PIXELS_START};
use crate::files::GREY;

/// Why a picture is grey.
pub(super) const DAMAGED: &str = "its packed pixels are damaged";

/// Mapped pictures, by their place among those that could be read when they were packed.
pub(crate) struct PackedPixels {
    bytes: Bytes,
    index: Arc<Index>,
    sums: Vec<u32>,
    /// A bit for each picture that was found right.
    right: Vec<AtomicU64>,
    /// Those found wrong, in the order in which they were met.
    wrong: Mutex<Vec<usize>>,
    grey: Vec<u8>,
}

impl PackedPixels {
    /// The pictures of a file that is known to be long enough for them.
    pub fn new(bytes: Bytes, index: Arc<Index>) -> Self {
        let sums = readable(&index).filter_map(|e| Some(e.pixels.as_ref().ok()?.0));
        let sums: Vec<u32> = sums.collect();
        // Without pictures, the file's length says nothing of their size, which may be a lie.
        let one = match sums.is_empty() {
            true => 0,
            false => index.size * index.size * 3,
        };
        PackedPixels {
            bytes,
            right: (0..sums.len().div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            grey: vec![GREY; one],
            wrong: Mutex::default(),
            sums,
            index,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Picture `i`, or plain grey where it is damaged.
    pub fn get(&self, i: usize) -> &[u8] {
        match self.is_right(i) {
            true => self.raw(i, 1),
            false => &self.grey,
        }
    }

    /// CRC-32 of picture `i` as it was packed.
    pub fn checksum(&self, i: usize) -> u32 {
        self.sums[i]
    }

    /// The `n` pictures from `start` on, where all of them are right.
    pub fn range(&self, start: usize, n: usize) -> Option<&[u8]> {
        let all = (start..start + n).into_par_iter();
        let wrong = all.filter(|i| !self.is_right(*i)).count();
        (wrong == 0).then(|| self.raw(start, n))
    }

    /// Whether picture `i` is what was packed; compared once.
    pub fn is_right(&self, i: usize) -> bool {
        let (word, bit) = (&self.right[i / 64], 1 << (i % 64));
        // What is compared never changes, so that no order with other memory is needed.
        if word.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let right = crc32fast::hash(self.raw(i, 1)) == self.sums[i];
        match right {
            true => _ = word.fetch_or(bit, Ordering::Relaxed),
            false => self.note(i),
        }
        right
    }

    fn note(&self, i: usize) {
        let mut wrong = self.wrong.lock().unwrap_or_else(|e| e.into_inner());
        if !wrong.contains(&i) {
            wrong.push(i);
        }
    }

    fn raw(&self, i: usize, n: usize) -> &[u8] {
        let one = self.grey.len();
        &self.bytes[PIXELS_START as usize + i * one..][..n * one]
    }

    /// What picture `i` is called.
    pub fn name(&self, i: usize) -> String {
        let name = readable(&self.index).nth(i).map(|e| e.name.clone());
        let name = name.filter(|name| !name.is_empty());
        name.unwrap_or_else(|| format!("picture {i}"))
    }

    /// Pictures found damaged so far, each with the reason.
    pub fn failures(&self) -> Vec<(String, String)> {
        let wrong = self.wrong.lock().unwrap_or_else(|e| e.into_inner());
        let told = wrong.iter().map(|i| (self.name(*i), DAMAGED.into()));
        told.collect()
    }
}

fn readable(index: &Index) -> impl Iterator<Item = &Entry> {
    let entries = index.parts.iter().flat_map(|part| &part.entries);
    entries.filter(|e| e.pixels.is_ok())
}

impl fmt::Debug for PackedPixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packed pictures", self.len())
    }
}
