//! Labelled pictures, by which features are judged.

use anchorhood_data::{Dataset, Labels, Pictures};
use anchorhood_engine::{Buffer, Device, Result};

use crate::evaluation::{Accuracy, KnnOptions, Rows, weighted_knn};

/// Labelled pictures to train and to test on, and how a network is to see them.
#[derive(Clone, Copy, Debug)]
pub struct LabelledPictures<'a> {
    /// Pictures to train on.
    pub train: &'a Pictures,
    /// Their labels.
    pub train_labels: &'a Labels,
    /// Pictures to test on.
    pub test: &'a Pictures,
    /// Their labels.
    pub test_labels: &'a Labels,
    /// What is subtracted from each channel.
    pub mean: [f32; 3],
    /// What it is then divided by.
    pub std: [f32; 3],
}

impl<'a> LabelledPictures<'a> {
    /// Those of a data set, normalised by its own mean and deviation; none where either split has
    /// no labels.
    pub fn of(data: &'a Dataset) -> Option<Self> {
        let test = data.test.as_ref().filter(|t| !t.pictures.is_empty())?;
        Some(LabelledPictures {
            train: &data.train.pictures,
            train_labels: data.train.labels.as_ref()?,
            test: &test.pictures,
            test_labels: test.labels.as_ref()?,
            mean: data.mean,
            std: data.std,
        })
    }

    /// The same for networks that learnt from pictures of another mean and deviation.
    pub fn normalised_by(self, (mean, std): ([f32; 3], [f32; 3])) -> Self {
        LabelledPictures { mean, std, ..self }
    }

    /// Weighted kNN: `train`, a row of the test rows' length for each training picture, votes on
    /// them. Rows of unit length are compared by cosines.
    pub fn vote(
        &self,
        device: &Device,
        options: &KnnOptions,
        train: &Buffer,
        test: Rows,
    ) -> Result<Accuracy> {
        let dim = test.dim;
        let test = device.hand_over(test.values)?;
        let (train_labels, test_labels) = (self.train_labels, self.test_labels);
        weighted_knn(device, options, train, dim, train_labels, &test, test_labels)
    }
}
