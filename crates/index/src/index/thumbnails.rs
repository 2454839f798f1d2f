//! Small copies of pictures, as JPEG files one after the other.

use std::sync::Arc;

use anchorhood_storage::OpenContainer;

use crate::SearchError;

pub(super) const THUMBNAILS: &str = "thumbnails";

/// JPEG files by number: in memory, or in the index's file, where each is checked when it is first
/// asked for.
#[derive(Clone, Debug, Default)]
pub struct Thumbnails {
    pub(super) bytes: Vec<u8>,
    pub(super) file: Option<Arc<OpenContainer>>,
    pub(super) ends: Vec<u64>,
}

impl Thumbnails {
    /// Appends a file to those in memory.
    pub fn push(&mut self, jpeg: &[u8]) {
        self.bytes.extend_from_slice(jpeg);
        self.ends.push(self.bytes.len() as u64);
    }

    /// A file.
    pub fn get(&self, i: usize) -> Result<&[u8], SearchError> {
        let start = match i {
            0 => 0,
            _ => self.ends[i - 1] as usize,
        };
        let range = start..self.ends[i] as usize;
        match &self.file {
            Some(file) => Ok(file.bytes_of(THUMBNAILS, range)?),
            None => Ok(&self.bytes[range]),
        }
    }

    /// All files, one after the other.
    pub(super) fn all(&self) -> Result<&[u8], SearchError> {
        match &self.file {
            Some(file) => Ok(file.tensor(THUMBNAILS)?.data),
            None => Ok(&self.bytes),
        }
    }

    /// Nothing where every file is empty.
    pub(super) fn non_empty(self) -> Option<Self> {
        (!self.bytes.is_empty()).then_some(self)
    }

    /// Whether there is a file for each of `n` pictures.
    pub(super) fn fits(&self, n: usize) -> bool {
        let in_file = |file: &Arc<OpenContainer>| {
            let shape = file.shape(THUMBNAILS).map(|(_, shape)| shape);
            shape.map_or(0, |shape| shape.iter().product())
        };
        let length: usize = self.file.as_ref().map_or(self.bytes.len(), in_file);
        self.ends.len() == n
            && self.ends.is_sorted()
            && self.ends.last().copied().unwrap_or(0) == length as u64
    }
}

/// The same files, wherever they lie; damaged ones are like nothing.
impl PartialEq for Thumbnails {
    fn eq(&self, other: &Self) -> bool {
        let same = matches!((self.all(), other.all()), (Ok(a), Ok(b)) if a == b);
        same && self.ends == other.ends
    }
}
