//! From a configuration to the method that trains: its graph, its settings, and, for the one that learns from labels, labels.

use anchorhood_data::Dataset;
use anchorhood_engine::{Device, Graph};
use anchorhood_methods::{And, AndSettings, Method, Setup, Supervised};

use crate::room::check_room_of;
use crate::training_set::check_pictures;
use crate::{FeatureSource, MethodChoice, RunConfig, TrainError, TrainingSet};

/// The configured method at the beginning of a run; says what cannot be trained.
pub fn build_method(
    device: &Device,
    config: &RunConfig,
    data: &Dataset,
) -> Result<Box<dyn Method>, TrainError> {
    match config.method.name {
        MethodChoice::And => build_unlabelled(device, config, &TrainingSet::of(data)),
        MethodChoice::Supervised => {
            let set = TrainingSet::of(data);
            check_pictures(config, &set)?;
            let graph = embedding_graph(config, set.pictures.height())?;
            let labels = data.train.labels.as_ref();
            let labels = labels.ok_or_else(|| TrainError::NoLabels {
                data: data.name.clone(),
            })?;
            check_room_of(device, config, &set, &graph)?;
            let labels: Vec<u32> = (0..set.pictures.len()).map(|i| labels.get(i)).collect();
            let setup = config.setup(device, &graph, &set);
            Ok(Box::new(Supervised::new(setup, &labels)?))
        }
    }
}

/// The same for methods that learn without labels.
pub fn build_unlabelled(
    device: &Device,
    config: &RunConfig,
    set: &TrainingSet,
) -> Result<Box<dyn Method>, TrainError> {
    check_pictures(config, set)?;
    let graph = embedding_graph(config, set.pictures.height())?;
    check_room_of(device, config, set, &graph)?;
    let setup = config.setup(device, &graph, set);
    match config.method.name {
        MethodChoice::And => Ok(Box::new(And::new(setup, config.and())?)),
        MethodChoice::Supervised => Err(TrainError::NoLabels {
            data: set.name.clone(),
        }),
    }
}

/// The graph of the network that embeds pictures of so many pixels a side.
pub fn embedding_graph(config: &RunConfig, size: usize) -> Result<Graph, TrainError> {
    let n = &config.network;
    let graph = n.architecture.graph(size, n.width, n.features)?;
    Ok(match config.method.name {
        MethodChoice::And => graph,
        // Unit length, the layer after it, is for features; a classifier's values may be as large as they like.
        MethodChoice::Supervised => graph.up_to(graph.find("fc")?),
    })
}

impl RunConfig {
    /// Pictures in a batch: the configured number, or all there are if fewer.
    pub fn batch_of(&self, set: &TrainingSet) -> usize {
        self.training.batch.min(set.pictures.len())
    }

    /// What a method is made of, for a data set.
    pub fn setup<'a>(&self, device: &'a Device, graph: &'a Graph, set: &TrainingSet) -> Setup<'a> {
        Setup {
            device,
            graph,
            pictures: set.pictures.len(),
            batch: self.batch_of(set),
            optimiser: self.training.optimiser(),
            seed: self.seed,
        }
    }

    fn and(&self) -> AndSettings {
        let d = &self.discovery;
        AndSettings {
            temperature: d.temperature as f32,
            memory_rate: d.memory_rate as f32,
            neighbours: d.neighbours,
            curriculum: d.curriculum.into(),
            recompute: d.discover_from == FeatureSource::Recomputed,
        }
    }

    /// What supervision makes of a configuration: one round of all the epochs, a value of the result for each class, and
    /// features that are computed when they are judged, there being no memory.
    pub fn supervised(&self, classes: usize) -> RunConfig {
        let mut config = self.clone();
        config.method.name = MethodChoice::Supervised;
        config.training.rounds = 0;
        config.network.features = classes;
        config.evaluation.features = FeatureSource::Recomputed;
        config
    }
}
