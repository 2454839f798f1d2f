//! The only place in a run that knows labels. An examiner looks at features and gives back figures,
//! which are told and kept, and decide nothing.

use anchorhood_data::{Dataset, Labels, Pictures, Split};
use anchorhood_discover::{MemoryBank, Neighbourhoods, Whitening};
use anchorhood_engine::{Buffer, Device, Network, Op};
use anchorhood_evaluate::{LabelledPictures, Rows, consistency, extract, raw_pixels_within};

use crate::together::{own_pictures, sums};
use crate::{Accuracy, ConsistencyFigure, EvaluationConfig, FeatureSource, RunConfig, TrainError};

/// Pixels of all pictures of a split that vote, at most: 4 GiB. Of more pictures each has fewer.
const MOST_PIXELS: usize = 1 << 30;

/// Judges features between epochs.
pub trait Examiner {
    /// Labelled pictures it judges on; 0 if it cannot judge.
    fn test_pictures(&self) -> usize;

    /// How good raw pixels are: the floor under every other figure.
    fn raw_pixels(&mut self) -> Result<Option<Accuracy>, TrainError>;

    /// How good the network's features are. A bank of `None` asks for features of the training
    /// pictures computed now, as for a network that was never trained, whose memory holds noise.
    /// Features are seen through `whitening`, if any.
    fn network(
        &mut self,
        network: &mut Network,
        bank: Option<&MemoryBank>,
        whitening: Option<&Whitening>,
    ) -> Result<Option<Accuracy>, TrainError>;

    /// How often neighbours carry the anchor's label, over all processes' pictures.
    fn consistency(&self, found: &Neighbourhoods) -> Result<Option<ConsistencyFigure>, TrainError>;
}

/// For pictures without labels: judges nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unlabelled;

impl Examiner for Unlabelled {
    fn test_pictures(&self) -> usize {
        0
    }

    fn raw_pixels(&mut self) -> Result<Option<Accuracy>, TrainError> {
        Ok(None)
    }

    fn network(
        &mut self,
        _: &mut Network,
        _: Option<&MemoryBank>,
        _: Option<&Whitening>,
    ) -> Result<Option<Accuracy>, TrainError> {
        Ok(None)
    }

    fn consistency(&self, _: &Neighbourhoods) -> Result<Option<ConsistencyFigure>, TrainError> {
        Ok(None)
    }
}

/// Weighted kNN on the labels of a data set.
pub struct Labelled {
    device: Device,
    options: EvaluationConfig,
    train: Pictures,
    train_labels: Labels,
    test: Pictures,
    test_labels: Labels,
    /// The mean of the pictures.
    mean: [f32; 3],
    /// Mean and deviation that a network's pictures are normalised by.
    seen: [[f32; 3]; 2],
}

impl Labelled {
    /// An examiner, if the data set has labelled pictures to train and to test on.
    pub fn of(data: &Dataset, options: &EvaluationConfig, device: &Device) -> Option<Self> {
        let test: &Split = data.test.as_ref().filter(|t| !t.pictures.is_empty())?;
        Some(Labelled {
            device: device.clone(),
            options: options.clone(),
            train: data.train.pictures.clone(),
            train_labels: data.train.labels.clone()?,
            test: test.pictures.clone(),
            test_labels: test.labels.clone()?,
            mean: data.mean,
            seen: [data.mean, data.std],
        })
    }

    /// An examiner for a run, whose networks see pictures as its configuration has it.
    pub(crate) fn for_run(data: &Dataset, config: &RunConfig, device: &Device) -> Option<Self> {
        let labelled = Labelled::of(data, &config.evaluation, device)?;
        Some(match config.data.normalisation() {
            Some((mean, std)) => labelled.normalised_by(mean, std),
            None => labelled,
        })
    }

    /// The same for networks that learnt from pictures of another mean and deviation, and are to
    /// see these as they saw those.
    pub fn normalised_by(mut self, mean: [f32; 3], std: [f32; 3]) -> Self {
        self.seen = [mean, std];
        self
    }

    fn pictures(&self) -> LabelledPictures<'_> {
        let [mean, std] = self.seen;
        LabelledPictures {
            train: &self.train,
            train_labels: &self.train_labels,
            test: &self.test,
            test_labels: &self.test_labels,
            mean,
            std,
        }
    }

    /// How good vectors of unit length are that were made elsewhere, of the pictures to train on
    /// and to test on.
    pub fn vectors(&self, train: Rows, test: Rows) -> Result<Accuracy, TrainError> {
        let bank = self.device.hand_over(train.values)?;
        self.knn(&bank, test)
    }

    /// This process's part of the rows that vote.
    fn bank(&self, own: Rows) -> Result<Buffer, TrainError> {
        let device = &self.device;
        Ok(device.hand_over_part(own.values, self.train.len())?)
    }

    fn knn(&self, bank: &Buffer, test: Rows) -> Result<Accuracy, TrainError> {
        let options = self.options.knn();
        let result = self.pictures().vote(&self.device, &options, bank, test)?;
        Ok(Accuracy {
            top1: result.top1,
            top5: result.top5,
            n: result.n,
            k: result.k,
            temperature: self.options.temperature,
        })
    }

    /// Rows of this process's part of pictures.
    fn extract(
        &self,
        network: &mut Network,
        of: &Pictures,
        whitening: Option<&Whitening>,
    ) -> Result<Rows, TrainError> {
        let [mean, std] = self.seen;
        let dim = network.features();
        let own = own_pictures(&self.device, of);
        let features = extract(network, &own, mean, std, &|_| {})?;
        let mut rows = Rows {
            dim,
            channels: dim,
            values: match whitening {
                Some(whitening) => whitening.apply(&features),
                None => features,
            },
        };
        // Neighbours are compared by cosines.
        let graph = network.graph();
        if !matches!(graph.node(graph.output_node()).op, Op::L2Normalise) {
            rows.to_unit_length();
        }
        Ok(rows)
    }
}

impl Examiner for Labelled {
    fn test_pictures(&self) -> usize {
        self.test.len()
    }

    fn raw_pixels(&mut self) -> Result<Option<Accuracy>, TrainError> {
        let most = MOST_PIXELS / self.train.len().max(self.test.len()).max(1);
        let [train, test] = [&self.train, &self.test].map(|of| {
            let own = own_pictures(&self.device, of);
            raw_pixels_within(&own, self.mean, most)
        });
        let bank = self.bank(train)?;
        self.knn(&bank, test).map(Some)
    }

    fn network(
        &mut self,
        network: &mut Network,
        bank: Option<&MemoryBank>,
        whitening: Option<&Whitening>,
    ) -> Result<Option<Accuracy>, TrainError> {
        let test = self.extract(network, &self.test, whitening)?;
        let bank = bank.filter(|_| self.options.features == FeatureSource::Memory);
        let accuracy = match bank {
            Some(bank) => self.knn(bank.buffer(), test),
            None => {
                let train = self.extract(network, &self.train, whitening)?;
                self.knn(&self.bank(train)?, test)
            }
        };
        accuracy.map(Some)
    }

    fn consistency(&self, found: &Neighbourhoods) -> Result<Option<ConsistencyFigure>, TrainError> {
        let c = consistency(found, &self.train_labels);
        let here = [c.consistent_anchors, c.anchors, c.consistent_pairs, c.pairs];
        let of_all = sums(self.device.communicator(), here.map(|n| n as f64))?;
        let [consistent_anchors, anchors, consistent_pairs, pairs] = of_all.map(|n| n as usize);
        Ok(Some(ConsistencyFigure { consistent_anchors, anchors, consistent_pairs, pairs }))
    }
}

#[cfg(test)]
mod tests {
    use super::MOST_PIXELS;
    use anchorhood_engine::Shape;
    use anchorhood_evaluate::pooled;

    /// CIFAR-10 votes with all of its pixels, and ImageNet with as many as fit in memory.
    #[test]
    fn pixels_fit_in_memory() {
        let of = |side, n| pooled(Shape::new(side, side, 3), MOST_PIXELS / n).len();
        assert_eq!(of(32, 50_000), 3072);
        assert_eq!(of(224, 1_281_167), 16 * 16 * 3);
    }
}
