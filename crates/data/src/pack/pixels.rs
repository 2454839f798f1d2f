//! The pictures of a pack where they lie, each compared with its checksum when it is first touched.
//!
//! A picture is what is touched at once, so it is what has a checksum: to check larger blocks would
//! read hundreds of small pictures for one. One that is damaged is seen as plain grey and noted, as
//! a file is that cannot be read. Behind the last picture of a published set is a grey one, for the
//! files that could not be read when it was packed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anchorhood_storage::Bytes;
use rayon::prelude::*;

use super::format::{Index, PIXELS_START};
use crate::datasets::find_dataset;
use crate::files::GREY;

/// Why a picture is grey.
pub(super) const DAMAGED: &str = "its packed pixels are damaged";

/// Mapped pictures, by their place among those that could be read when they were packed.
pub(crate) struct PackedPixels {
    bytes: Bytes,
    index: Arc<Index>,
    sums: Vec<u32>,
    /// Where the entry of each picture is: its part, and its place there.
    entries: Vec<[u32; 2]>,
    /// A bit for each picture that was found right, and one for each that was found wrong.
    right: Vec<AtomicU64>,
    wrong: Vec<AtomicU64>,
    /// Files of a published set that could not be read, each with the reason.
    unread: Vec<(String, String)>,
    /// Those found wrong, each once, in the order in which they were met.
    met: Mutex<Vec<usize>>,
    /// Pictures whose bytes were read to compare them.
    #[cfg(test)]
    compared: std::sync::atomic::AtomicUsize,
    grey: Vec<u8>,
}

impl PackedPixels {
    /// The pictures of a file that is known to be long enough for them.
    pub fn new(bytes: Bytes, index: Arc<Index>) -> Self {
        let published = find_dataset(&index.set).is_some();
        let (mut sums, mut entries, mut unread) = (vec![], vec![], vec![]);
        for (part, of) in index.parts.iter().enumerate() {
            for (place, entry) in of.entries.iter().enumerate() {
                match &entry.pixels {
                    Ok((sum, _)) => {
                        sums.push(*sum);
                        entries.push([part as u32, place as u32]);
                    }
                    Err(why) if published => unread.push((entry.name.clone(), why.clone())),
                    Err(_) => {}
                }
            }
        }
        let bits = || (0..sums.len().div_ceil(64)).map(|_| AtomicU64::new(0));
        // Without pictures, the file's length says nothing of their size, which may be a lie.
        let one = if sums.is_empty() {
            unread.clear();
            0
        } else {
            index.size * index.size * 3
        };
        PackedPixels {
            bytes,
            entries,
            unread,
            right: bits().collect(),
            wrong: bits().collect(),
            met: Mutex::default(),
            #[cfg(test)]
            compared: Default::default(),
            grey: vec![GREY; one],
            sums,
            index,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// The place of the grey picture, where it is needed.
    pub fn grey(&self) -> Option<usize> {
        (!self.unread.is_empty()).then_some(self.len())
    }

    /// Picture `i`, or plain grey where it is damaged or [the grey one](PackedPixels::grey).
    pub fn get(&self, i: usize) -> &[u8] {
        if i < self.len() && self.is_right(i) { self.raw(i, 1) } else { &self.grey }
    }

    /// CRC-32 of picture `i` as it was packed.
    pub fn checksum(&self, i: usize) -> u32 {
        let grey = || crc32fast::hash(&self.grey);
        self.sums.get(i).copied().unwrap_or_else(grey)
    }

    /// The `n` pictures from `start` on, where all of them are right.
    pub fn range(&self, start: usize, n: usize) -> Option<&[u8]> {
        if start + n > self.len() {
            return None;
        }
        let all = (start..start + n).into_par_iter();
        let wrong = all.filter(|i| !self.is_right(*i)).count();
        (wrong == 0).then(|| self.raw(start, n))
    }

    /// Whether picture `i` is what was packed; compared once.
    pub fn is_right(&self, i: usize) -> bool {
        // What is compared never changes, so that no order with other memory is needed.
        let (word, bit) = (i / 64, 1 << (i % 64));
        let known = |bits: &[AtomicU64]| bits[word].load(Ordering::Relaxed) & bit != 0;
        if known(&self.right) || known(&self.wrong) {
            return known(&self.right);
        }
        #[cfg(test)]
        self.compared.fetch_add(1, Ordering::Relaxed);
        let right = crc32fast::hash(self.raw(i, 1)) == self.sums[i];
        let bits = if right { &self.right } else { &self.wrong };
        let before = bits[word].fetch_or(bit, Ordering::Relaxed);
        if !right && before & bit == 0 {
            self.met().push(i);
        }
        right
    }

    fn met(&self) -> MutexGuard<'_, Vec<usize>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many pictures were read to compare them.
    #[cfg(test)]
    pub fn compared(&self) -> usize {
        self.compared.load(Ordering::Relaxed)
    }

    fn raw(&self, i: usize, n: usize) -> &[u8] {
        let one = self.grey.len();
        &self.bytes[PIXELS_START as usize + i * one..][..n * one]
    }

    /// What picture `i` is called.
    pub fn name(&self, i: usize) -> String {
        let [part, place] = self.entries[i].map(|at| at as usize);
        match self.index.parts[part].entries[place].name.as_str() {
            "" => format!("picture {i}"),
            name => name.into(),
        }
    }

    /// Pictures that are seen as grey, as far as it is known by now, each with the reason.
    pub fn failures(&self) -> Vec<(String, String)> {
        let met = self.met();
        let told = met.iter().map(|i| (self.name(*i), DAMAGED.into()));
        self.unread.iter().cloned().chain(told).collect()
    }
}

impl fmt::Debug for PackedPixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packed pictures", self.len())
    }
}
