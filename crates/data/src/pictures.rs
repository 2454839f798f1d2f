//! Pictures in memory, and what is known of them.
//!
//! `Pictures` never carries labels: training takes `Pictures`, only evaluation takes `Labels`.

use std::sync::Arc;

use crate::DataError;

/// Pictures of one size, RGB u8, NHWC, in memory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pictures {
    height: usize,
    width: usize,
    len: usize,
    pixels: Arc<Vec<u8>>,
}

impl Pictures {
    /// Pictures from their bytes, one after the other, each `height`×`width`×3.
    pub fn new(height: usize, width: usize, pixels: Vec<u8>) -> Result<Self, DataError> {
        let one = height.saturating_mul(width).saturating_mul(3);
        if one == 0 || !pixels.len().is_multiple_of(one) {
            return Err(DataError::WrongPixelCount {
                bytes: pixels.len(),
                height,
                width,
            });
        }
        Ok(Pictures {
            height,
            width,
            len: pixels.len() / one,
            pixels: Arc::new(pixels),
        })
    }

    /// How many pictures.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Rows of each picture.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns of each picture.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes of one picture.
    pub fn picture_len(&self) -> usize {
        self.height * self.width * 3
    }

    /// The bytes of picture `i`, HWC. Panics if there is no such picture.
    pub fn picture(&self, i: usize) -> &[u8] {
        assert!(i < self.len, "picture {i} of {}", self.len);
        let one = self.picture_len();
        &self.pixels[i * one..(i + 1) * one]
    }

    /// All bytes, picture after picture.
    pub fn raw(&self) -> &[u8] {
        &self.pixels[..self.len * self.picture_len()]
    }

    /// The first `n` pictures (all, if there are fewer), sharing memory with these.
    pub fn take(&self, n: usize) -> Self {
        Pictures {
            len: self.len.min(n),
            ..self.clone()
        }
    }

    /// A copy of the pictures at `indices`, in that order.
    pub fn subset(&self, indices: &[usize]) -> Self {
        let mut pixels = Vec::with_capacity(indices.len() * self.picture_len());
        for &i in indices {
            pixels.extend_from_slice(self.picture(i));
        }
        Pictures {
            len: indices.len(),
            pixels: Arc::new(pixels),
            ..*self
        }
    }
}

/// Class numbers of pictures, for evaluation only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    values: Vec<u32>,
    classes: Vec<String>,
}

impl Labels {
    /// A class number per picture, and the name of each class. Every number must have a name.
    pub fn new(values: Vec<u32>, classes: Vec<String>) -> Self {
        debug_assert!(values.iter().all(|&v| (v as usize) < classes.len()));
        Labels { values, classes }
    }

    /// The class number of picture `i`.
    pub fn get(&self, i: usize) -> u32 {
        self.values[i]
    }

    /// How many pictures have a label: all of their split.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Names of the classes, by number.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// All class numbers.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// The labels of the pictures at `indices`, in that order.
    pub fn subset(&self, indices: &[usize]) -> Self {
        Labels {
            values: indices.iter().map(|&i| self.values[i]).collect(),
            classes: self.classes.clone(),
        }
    }
}

/// One part of a data set, with its labels when it has them.
#[derive(Clone, Debug)]
pub struct Split {
    /// The pictures.
    pub pictures: Pictures,
    /// Their classes, for evaluation only.
    pub labels: Option<Labels>,
    /// Their files, relative to the folder; empty where pictures have no files.
    pub names: Vec<String>,
}

impl Split {
    /// The first `n` pictures, with their labels and names; all, where there is no `n`.
    pub fn take(self, n: Option<usize>) -> Self {
        let Some(n) = n.filter(|&n| n < self.pictures.len()) else {
            return self;
        };
        Split {
            pictures: self.pictures.take(n),
            labels: self
                .labels
                .map(|l| Labels::new(l.values[..n].to_vec(), l.classes)),
            names: self.names.into_iter().take(n).collect(),
        }
    }

    /// The pictures at `indices`, with their labels and names.
    pub fn subset(&self, indices: &[usize]) -> Self {
        Split {
            pictures: self.pictures.subset(indices),
            labels: self.labels.as_ref().map(|l| l.subset(indices)),
            names: match self.names.is_empty() {
                true => Vec::new(),
                false => indices.iter().map(|&i| self.names[i].clone()).collect(),
            },
        }
    }
}

/// Pictures to train on, pictures to test on, and what a network needs to know of both.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// What to call it.
    pub name: String,
    /// The pictures to train on.
    pub train: Split,
    /// The pictures to evaluate on, where there are any.
    pub test: Option<Split>,
    /// Mean of each channel of the training pictures, of values in [0, 1].
    pub mean: [f32; 3],
    /// Standard deviation of each channel, likewise.
    pub std: [f32; 3],
    /// Files that could not be read, each with the reason.
    pub skipped: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pictures() {
        assert!(Pictures::new(2, 2, vec![0; 24]).is_ok_and(|p| p.len() == 2));
        for (h, w, n) in [(2, 2, 23), (0, 2, 0), (usize::MAX, 2, 12)] {
            assert!(matches!(
                Pictures::new(h, w, vec![0; n]),
                Err(DataError::WrongPixelCount { .. })
            ));
        }
    }

    #[test]
    fn take_shares_and_subset_copies() {
        let p = Pictures::new(1, 1, (0..12).collect()).unwrap();
        assert_eq!(p.take(2).raw(), &[0, 1, 2, 3, 4, 5]);
        assert_eq!(p.take(9).len(), 4);
        assert_eq!(p.subset(&[3, 0]).raw(), &[9, 10, 11, 0, 1, 2]);
        assert_eq!(p.take(2).picture(1), &[3, 4, 5]);
    }

    #[test]
    fn a_split_keeps_pictures_labels_and_names_together() {
        let split = Split {
            pictures: Pictures::new(1, 1, (0..9).collect()).unwrap(),
            labels: Some(Labels::new(vec![0, 1, 0], vec!["a".into(), "b".into()])),
            names: vec!["x".into(), "y".into(), "z".into()],
        };
        let first = split.clone().take(Some(2));
        assert_eq!(first.pictures.len(), 2);
        assert_eq!(first.labels.unwrap().values(), &[0, 1]);
        assert_eq!(first.names, ["x", "y"]);
        assert_eq!(split.clone().take(None).names.len(), 3);
        let part = split.subset(&[1]);
        assert_eq!(part.pictures.raw(), &[3, 4, 5]);
        assert_eq!(part.labels.unwrap().values(), &[1]);
        assert_eq!(part.names, ["y"]);
    }
}
