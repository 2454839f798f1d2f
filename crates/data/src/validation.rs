//! Some of the training pictures in place of the test pictures: to choose settings by, so that the
//! test pictures' labels choose none.

use crate::files::choose::validation;
use crate::{DataError, Dataset};

impl Dataset {
    /// Holds so many training pictures out of training, drawn by the seed, and tests on them alone.
    /// Nothing is copied: both parts look into the same store. They must have labels, and at least
    /// two pictures must remain to train on.
    pub fn validated_on(self, pictures: usize, seed: u64) -> Result<Dataset, DataError> {
        let there = self.train.pictures.len();
        if pictures == 0 || pictures.saturating_add(2) > there {
            return Err(DataError::Validation { data: self.name, asked: pictures, there });
        }
        if self.train.labels.is_none() {
            return Err(DataError::ValidationWithoutLabels { data: self.name });
        }
        let (train, held_out) = validation(pictures, there, seed);
        Ok(Dataset {
            test: Some(self.train.subset(&held_out)),
            train: self.train.subset(&train),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Labels, Pictures, Split};

    fn data(n: u8, labelled: bool) -> Dataset {
        let pixels = (0..n).flat_map(|i| [i; 3]).collect();
        let train = Split::from(Pictures::new(1, 1, pixels).unwrap());
        let train = train.named((0..n).map(|i| i.to_string()).collect()).unwrap();
        let labels = Labels::from_names((0..n).map(|i| ["even", "odd"][usize::from(i % 2)]));
        Dataset::new("numbers", if labelled { train.labelled(labels).unwrap() } else { train })
    }

    fn numbers(split: &Split) -> Vec<u8> {
        let pictures = &split.pictures;
        (0..pictures.len()).map(|i| pictures.picture(i)[0]).collect()
    }

    #[test]
    fn every_picture_is_trained_on_or_validated_on() {
        let held = |seed| data(50, true).validated_on(10, seed).unwrap();
        let Dataset { train, test, .. } = held(0);
        let test = test.unwrap();
        assert_eq!((train.pictures.len(), test.pictures.len()), (40, 10));
        for split in [&train, &test] {
            let labels = split.labels.as_ref().unwrap();
            let own: Vec<u32> = numbers(split).iter().map(|n| u32::from(n % 2)).collect();
            assert_eq!(labels.values(), own);
            assert!(numbers(split).is_sorted());
            assert_eq!(split.names, numbers(split).iter().map(u8::to_string).collect::<Vec<_>>());
        }
        let mut all = [numbers(&train), numbers(&test)].concat();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
        assert_eq!(numbers(&held(0).train), numbers(&train));
        assert_ne!(numbers(&held(1).train), numbers(&train));
    }

    #[test]
    fn what_cannot_be_held_out_is_refused() {
        let said = |n, labelled| {
            let error = data(5, labelled).validated_on(n, 0).unwrap_err();
            assert!(error.is_usage());
            error.to_string()
        };
        for n in [0, 4, 5, usize::MAX] {
            let said = said(n, true);
            assert!(said.contains(&n.to_string()) && said.contains("numbers"), "{said}");
        }
        assert!(said(3, false).contains("no labels"));
        assert!(data(5, true).validated_on(3, 0).is_ok());
    }
}
