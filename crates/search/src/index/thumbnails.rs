//! Small copies of pictures, as JPEG files one after the other.

/// JPEG files by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thumbnails {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<u64>,
}

impl Thumbnails {
    /// Appends a file.
    pub fn push(&mut self, jpeg: &[u8]) {
        self.bytes.extend_from_slice(jpeg);
        self.ends.push(self.bytes.len() as u64);
    }

    /// A file.
    pub fn get(&self, i: usize) -> &[u8] {
        let start = match i {
            0 => 0,
            _ => self.ends[i - 1] as usize,
        };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// Nothing where every file is empty.
    pub(super) fn non_empty(self) -> Option<Self> {
        (!self.bytes.is_empty()).then_some(self)
    }

    /// Whether there is a file for each of `n` pictures.
    pub(super) fn fits(&self, n: usize) -> bool {
        self.ends.len() == n
            && self.ends.is_sorted()
            && self.ends.last().copied().unwrap_or(0) == self.bytes.len() as u64
    }
}
