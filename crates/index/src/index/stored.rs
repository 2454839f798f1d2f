//! What is large in an index, in memory or in its file, where each block is checked when it is
//! first touched.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::curate::first_not_unit;
use anchorhood_engine::SharedValues;
use anchorhood_storage::{BLOCK, Dtype, OpenContainer};
use rayon::prelude::*;

use super::format::numbers;
use crate::SearchError;

pub(super) const VECTORS: &str = "vectors";
/// Bytes of vectors whose lengths are looked at together.
const GROUP: usize = BLOCK / 16;

/// Vectors one after the other. Those in a file are mapped: nothing is read before it is asked for,
/// and nothing damaged, or that is no vector of unit length, is ever handed out.
#[derive(Clone, Debug)]
pub struct StoredVectors(Held);

#[derive(Clone, Debug)]
enum Held {
    Memory(Vec<f32>),
    Shared(SharedValues),
    File(Arc<Mapped>),
}

#[derive(Debug)]
struct Mapped {
    file: Arc<OpenContainer>,
    /// How many numbers.
    len: usize,
    dim: usize,
    /// Vectors whose lengths are looked at together.
    group: usize,
    /// A bit for each group whose vectors are all of unit length.
    right: Vec<AtomicU64>,
}

impl StoredVectors {
    /// The vectors of a file, `n` of `dim` numbers each.
    pub(super) fn of(file: &Arc<OpenContainer>, n: usize, dim: usize) -> Result<Self, SearchError> {
        let at_first = file.bytes_of(VECTORS, 0..0)?;
        if at_first.as_ptr().cast::<f32>().is_aligned() {
            let mapped = Mapped::new(Arc::clone(file), n, dim);
            return Ok(StoredVectors(Held::File(Arc::new(mapped))));
        }
        // This program writes no such file: numbers do not lie as in memory.
        let values: Vec<f32> = numbers(file, VECTORS, Dtype::F32)?;
        check_lengths(&values, dim, 0, file.path())?;
        Ok(values.into())
    }

    /// How many numbers.
    pub fn len(&self) -> usize {
        match &self.0 {
            Held::Memory(values) => values.len(),
            Held::Shared(values) => values.len(),
            Held::File(mapped) => mapped.len,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All numbers, checked by all threads where they were not before.
    pub fn all(&self) -> Result<&[f32], SearchError> {
        if let Held::File(mapped) = &self.0 {
            let groups = (0..mapped.groups()).into_par_iter();
            groups.try_for_each(|group| mapped.check(group))?;
        }
        self.range(0..self.len())
    }

    /// Some of the numbers; only the blocks that they lie in, and vectors near them, are checked.
    pub fn range(&self, range: Range<usize>) -> Result<&[f32], SearchError> {
        match &self.0 {
            Held::Memory(values) => Ok(&values[range]),
            Held::Shared(values) => Ok(&values[range]),
            Held::File(mapped) => mapped.range(range),
        }
    }
}

impl Mapped {
    fn new(file: Arc<OpenContainer>, n: usize, dim: usize) -> Mapped {
        let group = (GROUP / 4 / dim.max(1)).max(1);
        let words = n.div_ceil(group).div_ceil(64);
        Mapped {
            file,
            len: n * dim,
            dim,
            group,
            right: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn groups(&self) -> usize {
        self.len.div_ceil((self.group * self.dim).max(1))
    }

    fn range(&self, range: Range<usize>) -> Result<&[f32], SearchError> {
        if !range.is_empty() {
            let numbers = self.group * self.dim;
            for group in range.start / numbers..=(range.end - 1) / numbers {
                self.check(group)?;
            }
        }
        self.numbers(range)
    }

    /// What lies there, found as it was written.
    fn numbers(&self, range: Range<usize>) -> Result<&[f32], SearchError> {
        let bytes = range.start * 4..range.end * 4;
        Ok(bytemuck::cast_slice(self.file.bytes_of(VECTORS, bytes)?))
    }

    /// Looks at the lengths of a group of vectors, once.
    fn check(&self, group: usize) -> Result<(), SearchError> {
        let (word, bit) = (&self.right[group / 64], 1 << (group % 64));
        // What is looked at never changes, so that no order with other memory is needed.
        if word.load(Ordering::Relaxed) & bit != 0 {
            return Ok(());
        }
        let numbers = self.group * self.dim;
        let end = self.len.min((group + 1) * numbers);
        let values = self.numbers(group * numbers..end)?;
        check_lengths(values, self.dim, group * self.group, self.file.path())?;
        word.fetch_or(bit, Ordering::Relaxed);
        Ok(())
    }
}

/// Refuses a vector that is not of unit length, the first of which is that of picture `first`.
fn check_lengths(values: &[f32], dim: usize, first: usize, path: &Path) -> Result<(), SearchError> {
    match first_not_unit(values, dim) {
        None => Ok(()),
        Some((i, length)) => {
            let picture = first + i;
            let reason =
                format!("the vector of its picture {picture} has the length {length:?}, not 1");
            Err(SearchError::damaged_index(path)(reason))
        }
    }
}

impl Default for StoredVectors {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<f32>> for StoredVectors {
    fn from(values: Vec<f32>) -> Self {
        StoredVectors(Held::Memory(values))
    }
}

impl From<SharedValues> for StoredVectors {
    fn from(values: SharedValues) -> Self {
        StoredVectors(Held::Shared(values))
    }
}

/// The same numbers, wherever they lie; damaged ones are like nothing.
impl PartialEq for StoredVectors {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.all(), other.all()), (Ok(a), Ok(b)) if a == b)
    }
}
