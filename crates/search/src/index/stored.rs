//! What is large in an index, in memory or in its file, where each block is checked when it is first touched.

use std::ops::Range;
use std::sync::Arc;

use anchorhood_files::{BLOCK, Dtype, OpenContainer};
use rayon::prelude::*;

use super::format::raw;
use crate::SearchError;

pub(super) const VECTORS: &str = "vectors";

/// Vectors one after the other. Those in a file are mapped: nothing is read before it is asked for, and nothing damaged is
/// ever handed out.
#[derive(Clone, Debug)]
pub struct StoredVectors(Held);

#[derive(Clone, Debug)]
enum Held {
    Memory(Vec<f32>),
    File(Arc<OpenContainer>),
}

impl StoredVectors {
    /// The vectors of a file.
    pub(super) fn of(file: &Arc<OpenContainer>) -> Result<Self, SearchError> {
        let at_first = file.bytes_of(VECTORS, 0..0)?;
        if at_first.as_ptr().cast::<f32>().is_aligned() {
            return Ok(StoredVectors(Held::File(Arc::clone(file))));
        }
        // Another program wrote it: numbers do not lie as in memory.
        let values = raw(file, VECTORS, Dtype::F32)?.data.as_chunks().0.iter();
        Ok(values.map(|v| f32::from_le_bytes(*v)).collect())
    }

    /// How many numbers.
    pub fn len(&self) -> usize {
        match &self.0 {
            Held::Memory(values) => values.len(),
            Held::File(file) => {
                let shape = file.shape(VECTORS).map(|(_, shape)| shape);
                shape.map_or(0, |shape| shape.iter().product())
            }
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All numbers, checked by all threads where they were not before.
    pub fn all(&self) -> Result<&[f32], SearchError> {
        if let Held::File(file) = &self.0 {
            let end = self.len() * 4;
            let blocks = (0..end.div_ceil(BLOCK)).into_par_iter();
            let block = |b: usize| b * BLOCK..end.min((b + 1) * BLOCK);
            blocks.try_for_each(|b| file.bytes_of(VECTORS, block(b)).map(|_| ()))?;
        }
        self.range(0..self.len())
    }

    /// Some of the numbers; only the blocks that they lie in are checked.
    pub fn range(&self, range: Range<usize>) -> Result<&[f32], SearchError> {
        match &self.0 {
            Held::Memory(values) => Ok(&values[range]),
            Held::File(file) => {
                let bytes = file.bytes_of(VECTORS, range.start * 4..range.end * 4)?;
                Ok(bytemuck::cast_slice(bytes))
            }
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

impl FromIterator<f32> for StoredVectors {
    fn from_iter<I: IntoIterator<Item = f32>>(values: I) -> Self {
        Vec::from_iter(values).into()
    }
}

/// The same numbers, wherever they lie; damaged ones are like nothing.
impl PartialEq for StoredVectors {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.all(), other.all()), (Ok(a), Ok(b)) if a == b)
    }
}
