//! From a configuration to the method that trains: its graph, its settings, and, for the one that
//! learns from labels, labels; and from a checkpoint's judged layer to the graph that every use of
//! it runs.

use crate::methods::{Embeds, Method, MethodKind, MethodSpec, SUPERVISED, Setup};
use anchorhood_data::{Dataset, Labels};
use anchorhood_engine::{Device, Error, Graph, NodeId, Op};

use crate::room::check_room_of;
use crate::together::check_shares;
use crate::training_set::check_pictures;
use crate::{FeatureSource, RunConfig, TrainError, TrainingSet};

/// The configured method at the beginning of a run; says what cannot be trained.
pub fn build_method(
    device: &Device,
    config: &RunConfig,
    data: &Dataset,
) -> Result<Box<dyn Method>, TrainError> {
    build(device, config, &TrainingSet::of(data), data.train.labels.as_ref())
}

/// The same; labels are for supervision alone.
pub(crate) fn build(
    device: &Device,
    config: &RunConfig,
    set: &TrainingSet,
    labels: Option<&Labels>,
) -> Result<Box<dyn Method>, TrainError> {
    check_pictures(config, set)?;
    check_shares(device, config, set)?;
    let graph = embedding_graph(config, set.pictures.height())?;
    check_room_of(device, config, set, &graph)?;
    let labels: Vec<u32> = match (config.method.name.kind, labels) {
        (MethodKind::Supervised, Some(labels)) => {
            (0..set.pictures.len()).map(|i| labels.get(i)).collect()
        }
        (MethodKind::Supervised, None) => {
            return Err(TrainError::NoLabels { data: set.name.clone() });
        }
        _ => vec![],
    };
    Ok((config.method.name.build)(config.setup(device, &graph, set), config, &labels)?)
}

/// The graph of the network that learns to embed pictures of so many pixels a side: up to the layer
/// that is judged.
pub fn embedding_graph(config: &RunConfig, size: usize) -> Result<Graph, TrainError> {
    let graph = config.network.graph(size)?;
    let judged = judged_layer(config.method.name, &graph)?;
    Ok(graph.up_to(judged))
}

/// The layer whose output a method's features are.
fn judged_layer(method: &MethodSpec, graph: &Graph) -> Result<NodeId, TrainError> {
    let fc = graph.find("fc")?;
    Ok(match method.embeds {
        Embeds::Output => graph.output_node(),
        Embeds::Fc => fc,
        Embeds::BeforeFc => graph.node(fc).inputs[0],
    })
}

/// A network's graph up to the layer that is judged, with features of unit length: what every use
/// of a model runs.
pub fn judged_graph(whole: &Graph, layer: &str) -> Result<Graph, Error> {
    let mut graph = whole.up_to(whole.find(layer)?);
    let last = graph.output_node();
    if graph.node(last).op != Op::L2Normalise {
        let unit = graph.l2_normalise("normalise", last)?;
        graph.output(unit);
    }
    Ok(graph)
}

impl RunConfig {
    /// Pictures in a batch: the configured number, or all there are if fewer.
    pub fn batch_of(&self, set: &TrainingSet) -> usize {
        self.training.batch.min(set.pictures.len())
    }

    /// Mean and deviation that pictures are normalised by.
    pub fn seen_by(&self, set: &TrainingSet) -> ([f32; 3], [f32; 3]) {
        self.data.normalisation().unwrap_or((set.mean, set.std))
    }

    /// What a method is made of, for a data set.
    pub fn setup<'a>(&self, device: &'a Device, graph: &'a Graph, set: &TrainingSet) -> Setup<'a> {
        let (mean, std) = self.seen_by(set);
        Setup {
            device,
            graph,
            mean,
            std,
            pictures: set.pictures.len(),
            batch: device.communicator().part(self.batch_of(set)).len(),
            sync_norm: self.training.sync_norm,
            optimiser: self.training.optimiser(),
            seed: self.seed,
        }
    }

    /// What supervision makes of a configuration: a value of the result for each class, and
    /// features that are computed when they are judged, there being no memory.
    pub fn supervised(&self, classes: usize) -> RunConfig {
        let mut config = self.clone();
        config.method.name = &SUPERVISED;
        config.network.features = classes;
        config.evaluation.features = FeatureSource::Recomputed;
        config
    }
}
