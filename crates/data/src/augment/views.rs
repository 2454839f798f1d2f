//! Settings for each view: a method that compares views of a picture may vary them differently.

use crate::{Augmentation, DataError};

/// How each view of a picture is varied: at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Views(Vec<Augmentation>);

impl Views {
    /// Settings for each view, in order; fails if there are none.
    pub fn new(settings: Vec<Augmentation>) -> Result<Self, DataError> {
        if settings.is_empty() {
            return Err(DataError::option("views", "must be at least 1"));
        }
        Ok(Views(settings))
    }

    /// So many views with the same settings, though each draws for itself; fails for none.
    pub fn same(how: Augmentation, count: usize) -> Result<Self, DataError> {
        Self::new(vec![how; count])
    }

    /// How many views there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The settings of each view, in order.
    pub fn settings(&self) -> &[Augmentation] {
        &self.0
    }
}

impl From<Augmentation> for Views {
    /// One view.
    fn from(how: Augmentation) -> Self {
        Views(vec![how])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_are_refused() {
        let usual = Augmentation::default();
        assert!(Views::new(vec![]).is_err() && Views::same(usual, 0).is_err());
        assert_eq!(Views::same(usual, 1).unwrap(), Views::from(usual));
    }
}
