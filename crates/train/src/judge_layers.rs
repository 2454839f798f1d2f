//! An encoder's layers judged, with one or several seeds: a linear probe on each, or a vote of
//! nearest neighbours.

use std::time::Instant;

use crate::evaluation::{
    LabelledPictures, LinearOptions, LinearResult, LinearSet, MOST_VALUES, Rows, extract_layer,
};
use anchorhood_data::Dataset;
use anchorhood_engine::{Device, Graph, NodeId};

use crate::{Encoder, TrainError};

/// How layers are judged.
#[derive(Clone, Debug, PartialEq)]
pub enum LayerProtocol {
    /// Weighted kNN by cosines, with the encoder's settings of evaluation.
    Knn,
    /// A linear probe; its seed is given with each repetition.
    Linear(LinearOptions),
}

/// Which layers are judged, and how often.
#[derive(Clone, Debug)]
pub struct LayerOptions {
    /// How.
    pub protocol: LayerProtocol,
    /// Repetitions, from the encoder's own seed on. A vote over one trained network has nothing to
    /// draw, and is held once.
    pub seeds: u64,
}

/// What came of one layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerFigures {
    /// Its name.
    pub layer: String,
    /// Values of a picture.
    pub values: usize,
    /// Test pictures.
    pub pictures: usize,
    /// Top-1 accuracy with each seed.
    pub top1: Vec<f64>,
    /// Top-5 accuracy with each seed; none where there are no more than five classes.
    pub top5: Vec<f64>,
    /// How long it took.
    pub seconds: f64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LayerProgress<'a> {
    /// Pictures go through the network.
    Extracting {
        /// The layer.
        layer: &'a str,
        /// Pictures done.
        done: usize,
        /// Of so many.
        total: usize,
    },
    /// A linear probe is trained.
    Probing {
        /// The layer.
        layer: &'a str,
        /// With which seed.
        seed: u64,
        /// Epochs done.
        epoch: usize,
        /// Of so many.
        epochs: usize,
        /// The last one's mean loss.
        loss: f64,
    },
}

/// The labelled pictures of a data set as an encoder sees them, or that there are none.
pub fn labelled_for<'a>(
    encoder: &Encoder,
    data: &'a Dataset,
) -> Result<LabelledPictures<'a>, TrainError> {
    let labelled = LabelledPictures::of(data)
        .ok_or_else(|| TrainError::NoLabels { data: data.name.clone() })?;
    Ok(labelled.normalised_by(encoder.mean_and_std(data)))
}

/// Judges layers of an encoder on a data set, whose graph is for pictures of that size. Also gives
/// what there is to say of the network.
pub fn judge_layers(
    device: &Device,
    encoder: &Encoder,
    graph: &Graph,
    layers: &[(String, NodeId)],
    options: &LayerOptions,
    data: &Dataset,
    progress: &(dyn Fn(LayerProgress) + Sync),
) -> Result<(Vec<LayerFigures>, Option<String>), TrainError> {
    let mut judge = Judge {
        device,
        encoder,
        graph,
        options,
        pictures: labelled_for(encoder, data)?,
        progress,
        note: None,
    };
    let each = layers.iter().map(|(name, node)| judge.layer(name, *node));
    let figures: Result<Vec<LayerFigures>, TrainError> = each.collect();
    Ok((figures?, judge.note))
}

struct Judge<'a> {
    device: &'a Device,
    encoder: &'a Encoder,
    graph: &'a Graph,
    options: &'a LayerOptions,
    pictures: LabelledPictures<'a>,
    progress: &'a (dyn Fn(LayerProgress) + Sync),
    note: Option<String>,
}

impl Judge<'_> {
    fn layer(&mut self, name: &str, node: NodeId) -> Result<LayerFigures, TrainError> {
        let started = Instant::now();
        let mut figures = LayerFigures {
            layer: name.into(),
            pictures: self.pictures.test.len(),
            ..LayerFigures::default()
        };
        // Another seed draws another network where nobody trained it, and another probe.
        let drawn = self.encoder.is_untrained();
        let seeds = match self.options.protocol {
            LayerProtocol::Knn if !drawn => 1,
            LayerProtocol::Knn | LayerProtocol::Linear(_) => self.options.seeds,
        };
        let (first, mut ready) = (self.encoder.config.seed, None);
        for seed in first..first.saturating_add(seeds) {
            let (top1, top5) = match &self.options.protocol {
                LayerProtocol::Knn => {
                    let options = self.encoder.config.evaluation.knn();
                    let [mut train, mut test] = self.rows(name, node, seed)?;
                    figures.values = train.dim;
                    train.to_unit_length();
                    test.to_unit_length();
                    let train = self.device.hand_over(train.values)?;
                    let result = self.pictures.vote(self.device, &options, &train, test)?;
                    (result.top1, result.top5)
                }
                LayerProtocol::Linear(options) => {
                    let set = match ready.take().filter(|_| !drawn) {
                        Some(set) => set,
                        None => {
                            let [train, test] = self.rows(name, node, seed)?;
                            figures.values = train.dim;
                            let labels = [self.pictures.train_labels, self.pictures.test_labels];
                            LinearSet::new(self.device, train, labels[0], test, labels[1])?
                        }
                    };
                    let result = self.probe(name, ready.insert(set), options, seed)?;
                    (result.top1, result.top5)
                }
            };
            figures.top1.push(top1);
            figures.top5.extend(top5);
        }
        figures.seconds = started.elapsed().as_secs_f64();
        Ok(figures)
    }

    fn probe(
        &self,
        layer: &str,
        set: &LinearSet,
        options: &LinearOptions,
        seed: u64,
    ) -> Result<LinearResult, TrainError> {
        let options = LinearOptions { seed, ..options.clone() };
        let epochs = options.epochs;
        Ok(set.classify(&options, &|epoch, loss| {
            (self.progress)(LayerProgress::Probing { layer, seed, epoch, epochs, loss });
        })?)
    }

    /// What a layer makes of the pictures to train on and to test on.
    fn rows(&mut self, layer: &str, node: NodeId, seed: u64) -> Result<[Rows; 2], TrainError> {
        let made = self.encoder.network(self.device, self.graph, vec![node], seed)?;
        let (mut network, said) = made;
        self.note = self.note.take().or(said);
        let LabelledPictures { train, test, mean, std, .. } = self.pictures;
        let total = train.len() + test.len();
        let mut rows = |of, before| {
            let tell = |done| {
                let done = before + done;
                (self.progress)(LayerProgress::Extracting { layer, done, total });
            };
            let extract = || extract_layer(&mut network, node, of, mean, std, MOST_VALUES, &tell);
            self.device.within(extract)
        };
        Ok([rows(train, 0)?, rows(test, train.len())?])
    }
}
