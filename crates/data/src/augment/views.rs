//! Settings for each view: a method that compares views of a picture may vary them differently.

use crate::{Augmentation, DataError};

/// How each view of a picture is varied: at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Views(Vec<Augmentation>);

impl Views {
    /// Settings for each view, in order; fails if there are none.
    pub fn new(settings: Vec<Augmentation>) -> Result<Self, DataError> {
        if settings.is_empty() {
            return Err(DataError::BadOption {
                option: "views",
                why: "must be at least 1".into(),
            });
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

    /// Says which value of which view is out of its range, if one is.
    pub fn check(&self) -> Result<(), DataError> {
        for (view, how) in self.0.iter().enumerate() {
            how.check().map_err(|error| self.placed(view, error))?;
        }
        Ok(())
    }

    /// The error with the view's number, where there are several.
    fn placed(&self, view: usize, error: DataError) -> DataError {
        match error {
            DataError::BadOption { option, why } if self.count() > 1 => DataError::BadOption {
                option,
                why: format!("{why} (view {view})"),
            },
            other => other,
        }
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
    fn none_are_refused_and_the_wrong_one_is_named() {
        let usual = Augmentation::default();
        assert!(Views::new(vec![]).is_err() && Views::same(usual, 0).is_err());
        assert_eq!(Views::same(usual, 1).unwrap(), Views::from(usual));
        Views::same(usual, 3).unwrap().check().unwrap();
        let bad = Augmentation { flip: 2.0, ..usual };
        let message = |views: Views| views.check().unwrap_err().to_string();
        let two = message(Views::new(vec![usual, bad]).unwrap());
        assert!(two.starts_with("flip") && two.contains("view 1"), "{two}");
        assert_eq!(message(bad.into()), bad.check().unwrap_err().to_string());
    }
}
