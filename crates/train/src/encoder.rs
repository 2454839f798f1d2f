//! A network that embeds, wherever its weights come from: a checkpoint of a run, a file of another
//! program, or a seed.

use std::path::{Path, PathBuf};

use anchorhood_data::Dataset;
use anchorhood_engine::{Device, Graph, Network, NetworkOptions, NodeId};
use anchorhood_models::{Form, Weights};

use crate::{Checkpoint, RunConfig, TrainError, check_room, check_weights};

/// ImageNet's mean and standard deviation of each channel, which torchvision's models expect.
pub const IMAGENET: ([f32; 3], [f32; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// Where an encoder's weights come from.
#[derive(Clone, Debug)]
pub enum EncoderSource {
    /// A run.
    Checkpoint(Box<Checkpoint>),
    /// Another program's file, of a form that it says itself.
    Weights(Weights, Form),
    /// The seed: nobody trained it.
    Untrained,
}

/// Whose mean and standard deviation pictures are normalised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalisation {
    /// The data set at hand; of a checkpoint, the one it was trained on.
    Data,
    /// ImageNet, as torchvision's models expect.
    ImageNet,
}

/// A network that embeds, on no device yet.
#[derive(Clone, Debug)]
pub struct Encoder {
    /// Where its weights come from.
    pub source: EncoderSource,
    /// Its file, where it has one; errors name it.
    pub path: PathBuf,
    /// Its network and batch, and how it is judged.
    pub config: RunConfig,
    /// How its pictures are normalised.
    pub normalisation: Normalisation,
}

impl Encoder {
    /// The network of a run at one moment; `path` names the file in errors.
    pub fn of_checkpoint(checkpoint: Checkpoint, path: &Path) -> Encoder {
        Encoder {
            config: checkpoint.config.clone(),
            source: EncoderSource::Checkpoint(Box::new(checkpoint)),
            path: path.into(),
            normalisation: Normalisation::Data,
        }
    }

    /// A network as its seed draws it.
    pub fn untrained(config: RunConfig) -> Encoder {
        Encoder {
            source: EncoderSource::Untrained,
            path: PathBuf::from("untrained"),
            config,
            normalisation: Normalisation::Data,
        }
    }

    /// Whether nobody trained it.
    pub fn is_untrained(&self) -> bool {
        matches!(self.source, EncoderSource::Untrained)
    }

    /// The graph for pictures of a size, with features of unit length.
    pub fn graph(&self, size: usize) -> Result<Graph, TrainError> {
        let n = &self.config.network;
        let whole = |form| n.graph_of(form, size);
        Ok(match &self.source {
            EncoderSource::Checkpoint(checkpoint) => checkpoint.graph(size)?,
            EncoderSource::Weights(_, form) => whole(*form)?,
            EncoderSource::Untrained => whole(n.form(size))?,
        })
    }

    /// The network with its weights, and what there is to say of it; one that nobody trained is
    /// drawn from `seed`.
    pub fn network(
        &self,
        device: &Device,
        graph: &Graph,
        keep: Vec<NodeId>,
        seed: u64,
    ) -> Result<(Network, Option<String>), TrainError> {
        let options = NetworkOptions { keep, ..NetworkOptions::new(self.config.training.batch) };
        if let EncoderSource::Checkpoint(c) = &self.source {
            check_weights(graph, &c.weights, &self.path)?;
        }
        check_room(device, graph, &options, 0)?;
        let mut network = device.network(graph, &options)?;
        network.initialise(seed)?;
        let mut note = None;
        match &self.source {
            EncoderSource::Checkpoint(c) => c.restore(&mut network, false, &self.path)?,
            EncoderSource::Weights(weights, _) => {
                let loaded = weights.load_into(&mut network);
                let misfit = |source| TrainError::Weights { path: self.path.clone(), source };
                note = loaded.map_err(misfit)?.fc_left;
            }
            EncoderSource::Untrained => {}
        }
        Ok((network, note))
    }

    /// The layer that embeds: the result, or, where the last layer's weights were not in the file,
    /// at the size that is wanted, and say nothing, what it would have been given.
    pub fn embedding_layer(&self, graph: &Graph) -> Result<NodeId, TrainError> {
        let wanted = graph.parameters().iter().find(|p| p.name == "fc.weight");
        let wanted = wanted.map(|p| &p.shape[..]);
        match &self.source {
            EncoderSource::Weights(weights, _) if weights.shape("fc.weight") != wanted => {
                Ok(graph.node(graph.find("fc")?).inputs[0])
            }
            _ => Ok(graph.output_node()),
        }
    }

    /// Mean and standard deviation by which its pictures are normalised.
    pub fn mean_and_std(&self, data: &Dataset) -> ([f32; 3], [f32; 3]) {
        match (self.normalisation, &self.source) {
            (Normalisation::ImageNet, _) => IMAGENET,
            (Normalisation::Data, EncoderSource::Checkpoint(c)) => (c.input.mean, c.input.std),
            (Normalisation::Data, EncoderSource::Weights(..) | EncoderSource::Untrained) => {
                (data.mean, data.std)
            }
        }
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        let n = &self.config.network;
        let network = format!("{} width {}", n.architecture, n.width);
        match &self.source {
            EncoderSource::Checkpoint(c) => {
                let position = c.standing.position;
                let standing = if position.round > c.config.training.rounds {
                    "trained to the end".into()
                } else {
                    format!("up to {position}")
                };
                format!("{}: {}, {standing}", self.path.display(), c.network())
            }
            EncoderSource::Weights(..) => format!("{}: {network}", self.path.display()),
            EncoderSource::Untrained => format!("{network}, untrained, seed {}", self.config.seed),
        }
    }
}
