//! From labelled pictures and a network's layer to a protocol: rows of both splits, extracted once,
//! that vote (kNN) or train a linear probe.

use anchorhood_data::{Dataset, Labels, Pictures};
use anchorhood_engine::{Buffer, Device, Network, NodeId, Result};

use crate::evaluation::{Accuracy, KnnOptions, LinearSet, Rows, extract_layer, weighted_knn};

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

/// What a layer makes of both splits.
pub struct LayerRows {
    train: Rows,
    test: Rows,
}

impl LayerRows {
    /// Rows of layer `node`, which is named in the network's keep; maps averaged to at most `most`
    /// values. `progress` is told how many of all pictures are done.
    pub fn extract(
        device: &Device,
        network: &mut Network,
        node: NodeId,
        pictures: &LabelledPictures,
        most: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self> {
        let LabelledPictures { mean, std, .. } = *pictures;
        let total = pictures.train.len() + pictures.test.len();
        let mut rows = |of, before: usize| {
            let tell = |done| progress(before + done, total);
            device.within(|| extract_layer(network, node, of, mean, std, most, &tell))
        };
        Ok(LayerRows {
            train: rows(pictures.train, 0)?,
            test: rows(pictures.test, pictures.train.len())?,
        })
    }

    /// Length of a row.
    pub fn dim(&self) -> usize {
        self.train.dim
    }

    /// Weighted kNN by cosines: the training rows vote on the test rows.
    pub fn knn(
        mut self,
        device: &Device,
        options: &KnnOptions,
        pictures: &LabelledPictures,
    ) -> Result<Accuracy> {
        self.train.to_unit_length();
        self.test.to_unit_length();
        let train = device.hand_over(self.train.values)?;
        pictures.vote(device, options, &train, self.test)
    }

    /// The rows made ready for linear classifiers.
    pub fn linear(self, device: &Device, pictures: &LabelledPictures) -> Result<LinearSet> {
        let (train, test) = (pictures.train_labels, pictures.test_labels);
        LinearSet::new(device, self.train, train, self.test, test)
    }
}
