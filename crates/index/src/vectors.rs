//! The vectors of some pictures, side by side in memory.

use crate::curate::{Hit, nearest};

use crate::SearchError;

/// A vector for each of some pictures, all of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Vectors {
    dim: usize,
    values: Vec<f32>,
}

impl Vectors {
    /// Rows of `dim` values, one after the other.
    pub(crate) fn new(dim: usize, values: Vec<f32>) -> Self {
        debug_assert!(values.len().is_multiple_of(dim));
        Vectors { dim, values }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Length of each.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The vector of picture `i`. Panics if there is no such picture.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.dim..][..self.dim]
    }

    /// All vectors in turn.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dim)
    }

    /// All values, vector after vector.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The `k` pictures most similar to a vector, most similar first; fewer where there are fewer.
    /// Similarity is the product of two vectors, which is the cosine where they are of unit length,
    /// as a model's are.
    pub fn nearest(&self, query: &[f32], k: usize) -> Result<Vec<Hit>, SearchError> {
        if query.len() != self.dim {
            return Err(SearchError::Impossible(format!(
                "a vector of {} values cannot be compared with vectors of {}",
                query.len(),
                self.dim
            )));
        }
        Ok(nearest(&self.values, self.dim, query, k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_first_and_other_lengths_refused() {
        let vectors = Vectors::new(2, vec![1.0, 0.0, 0.6, 0.8, 0.0, 1.0]);
        assert_eq!((vectors.len(), vectors.rows().len()), (3, 3));
        let hits = vectors.nearest(vectors.row(2), 2).unwrap();
        let found: Vec<usize> = hits.iter().map(|h| h.index).collect();
        assert_eq!(found, [2, 1]);
        let error = vectors.nearest(&[1.0], 1).unwrap_err().to_string();
        assert!(error.contains("of 1 values"), "{error}");
    }
}
