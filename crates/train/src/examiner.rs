//! The only place in a run that knows labels. An examiner looks at features and gives back figures,
//! which are told and kept, and decide nothing.

use crate::discovery::{MemoryBank, Neighbourhoods};
use crate::evaluation::{
    Accuracy, Consistency, LabelledPictures, Rows, consistency, extract, raw_pixels_within,
};
use anchorhood_data::{Dataset, Pictures};
use anchorhood_engine::vectors::Whitening;
use anchorhood_engine::{Buffer, Device, Network, Op};

use crate::together::{own_pictures, sums};
use crate::{EvaluationConfig, FeatureSource, RunConfig, TrainError};

/// Pixels of all pictures of a split that vote, at most: 4 GiB. Of more pictures each has fewer.
const MOST_PIXELS: usize = 1 << 30;

/// Weighted kNN on the labels of a data set.
pub struct Labelled<'a> {
    device: &'a Device,
    options: &'a EvaluationConfig,
    /// With the mean and deviation that a network's pictures are normalised by.
    pictures: LabelledPictures<'a>,
    /// The mean of the pictures.
    mean: [f32; 3],
}

impl<'a> Labelled<'a> {
    /// An examiner, if the data set has labelled pictures to train and to test on.
    pub fn of(
        data: &'a Dataset,
        options: &'a EvaluationConfig,
        device: &'a Device,
    ) -> Option<Self> {
        Some(Labelled { device, options, pictures: LabelledPictures::of(data)?, mean: data.mean })
    }

    /// An examiner for a run, whose networks see pictures as its configuration has it.
    pub(crate) fn for_run(
        data: &'a Dataset,
        config: &'a RunConfig,
        device: &'a Device,
    ) -> Option<Self> {
        let labelled = Labelled::of(data, &config.evaluation, device)?;
        Some(match config.data.normalisation() {
            Some(seen) => labelled.normalised_by(seen),
            None => labelled,
        })
    }

    /// The same for networks that learnt from pictures of another mean and deviation, and are to
    /// see these as they saw those.
    pub(crate) fn normalised_by(self, seen: ([f32; 3], [f32; 3])) -> Self {
        Labelled { pictures: self.pictures.normalised_by(seen), ..self }
    }

    /// How good vectors of unit length are that were made elsewhere, of the pictures to train on
    /// and to test on.
    pub fn vectors(&self, train: Rows, test: Rows) -> Result<Accuracy, TrainError> {
        let bank = self.device.hand_over(train.values)?;
        self.knn(&bank, test)
    }

    /// This process's part of the rows that vote.
    fn bank(&self, own: Rows) -> Result<Buffer, TrainError> {
        Ok(self.device.hand_over_part(own.values, self.pictures.train.len())?)
    }

    fn knn(&self, bank: &Buffer, test: Rows) -> Result<Accuracy, TrainError> {
        let options = self.options.knn();
        Ok(self.pictures.vote(self.device, &options, bank, test)?)
    }

    /// Rows of this process's part of pictures.
    fn extract(
        &self,
        network: &mut Network,
        of: &Pictures,
        whitening: Option<&Whitening>,
    ) -> Result<Rows, TrainError> {
        let (mean, std) = (self.pictures.mean, self.pictures.std);
        let dim = network.features();
        let own = own_pictures(self.device, of);
        let features = extract(network, &own, mean, std, &|_| {})?;
        let features = match whitening {
            Some(whitening) => whitening.apply(&features),
            None => features,
        };
        let mut rows = Rows::new(features, dim);
        // Neighbours are compared by cosines.
        let graph = network.graph();
        if !matches!(graph.node(graph.output_node()).op, Op::L2Normalise) {
            rows.to_unit_length();
        }
        Ok(rows)
    }

    /// Labelled pictures it judges on.
    pub(crate) fn test_pictures(&self) -> usize {
        self.pictures.test.len()
    }

    /// How good raw pixels are: the floor under every other figure.
    pub fn raw_pixels(&self) -> Result<Accuracy, TrainError> {
        let both = [self.pictures.train, self.pictures.test];
        let most = MOST_PIXELS / both[0].len().max(both[1].len()).max(1);
        let [train, test] = both.map(|of| {
            let own = own_pictures(self.device, of);
            raw_pixels_within(&own, self.mean, most)
        });
        let bank = self.bank(train)?;
        self.knn(&bank, test)
    }

    /// How good the network's features are. A bank of `None` asks for features of the training
    /// pictures computed now, as for a network that was never trained, whose memory holds noise.
    /// Features are seen through `whitening`, if any.
    pub(crate) fn network(
        &self,
        network: &mut Network,
        bank: Option<&MemoryBank>,
        whitening: Option<&Whitening>,
    ) -> Result<Accuracy, TrainError> {
        let test = self.extract(network, self.pictures.test, whitening)?;
        let bank = bank.filter(|_| self.options.features == FeatureSource::Memory);
        match bank {
            Some(bank) => self.knn(bank.buffer(), test),
            None => {
                let train = self.extract(network, self.pictures.train, whitening)?;
                self.knn(&self.bank(train)?, test)
            }
        }
    }

    /// How often neighbours carry the anchor's label, over all processes' pictures.
    pub(crate) fn consistency(&self, found: &Neighbourhoods) -> Result<Consistency, TrainError> {
        let c = consistency(found, self.pictures.train_labels);
        let here = [c.consistent_anchors, c.anchors, c.consistent_pairs, c.pairs];
        let of_all = sums(self.device.communicator(), here.map(|n| n as f64))?;
        let [consistent_anchors, anchors, consistent_pairs, pairs] = of_all.map(|n| n as usize);
        Ok(Consistency { consistent_anchors, anchors, consistent_pairs, pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::MOST_PIXELS;
    use crate::evaluation::pooled;
    use anchorhood_engine::Shape;

    /// CIFAR-10 votes with all of its pixels, and ImageNet with as many as fit in memory.
    #[test]
    fn pixels_fit_in_memory() {
        let of = |side, n| pooled(Shape::new(side, side, 3), MOST_PIXELS / n).len();
        assert_eq!(of(32, 50_000), 3072);
        assert_eq!(of(224, 1_281_167), 16 * 16 * 3);
    }
}
