//! From a configuration to the method that trains: its graph, its settings, and, for the one that
//! learns from labels, labels; and from a checkpoint's judged layer to the graph that every use of
//! it runs.

use crate::methods::{
    Anchorhood, AnchorhoodSettings, And, BiGan, Byol, COLOUR, CONTEXT, Counting, DeepCluster,
    JIGSAW, Jigsaw, MemorySettings, Method, Nat, NnClr, SPLIT_BRAIN, Setup, SiameseSettings,
    SimClr, SimSiam, SplitBrain, Supervised, instance,
};
use anchorhood_data::{Dataset, Labels};
use anchorhood_engine::{Device, Error, Graph, NodeId, Op};

use crate::room::check_room_of;
use crate::together::check_shares;
use crate::training_set::check_pictures;
use crate::{
    FeatureSource, MethodChoice, MethodConfig, MethodKind, RunConfig, TrainError, TrainingSet,
};

/// The configured method at the beginning of a run; says what cannot be trained.
pub fn build_method(
    device: &Device,
    config: &RunConfig,
    data: &Dataset,
) -> Result<Box<dyn Method>, TrainError> {
    let labels = data.train.labels.as_ref();
    let labels = labels.filter(|_| config.method.name == MethodChoice::Supervised);
    build(device, config, &TrainingSet::of(data), labels)
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
    let (setup, m) = (config.setup(device, &graph, set), &config.method);
    let projector = m.projector();
    Ok(match m.name {
        MethodChoice::And => Box::new(And::new(setup, config.memory())?),
        MethodChoice::Instance => Box::new(instance(setup, config.memory())?),
        MethodChoice::Anchorhood => Box::new(Anchorhood::new(setup, config.anchorhood())?),
        MethodChoice::SimClr => Box::new(SimClr::new(setup, m.siamese())?),
        MethodChoice::SimSiam => Box::new(SimSiam::new(setup, m.siamese())?),
        MethodChoice::Byol => Box::new(Byol::new(setup, m.siamese())?),
        MethodChoice::NnClr => Box::new(NnClr::new(setup, m.siamese())?),
        MethodChoice::DeepCluster => Box::new(DeepCluster::new(setup, m.clusters)?),
        MethodChoice::SplitBrain => Box::new(SplitBrain::new(setup, SPLIT_BRAIN)?),
        MethodChoice::Nat => Box::new(Nat::new(setup)?),
        MethodChoice::Counting => Box::new(Counting::new(setup)?),
        MethodChoice::Colour => Box::new(SplitBrain::new(setup, COLOUR)?),
        MethodChoice::Jigsaw => Box::new(Jigsaw::new(setup, JIGSAW, projector.width)?),
        MethodChoice::Context => Box::new(Jigsaw::new(setup, CONTEXT, projector.width)?),
        MethodChoice::BiGan => Box::new(BiGan::new(setup, projector.features, projector.width)?),
        MethodChoice::Supervised => {
            let none = || TrainError::NoLabels { data: set.name.clone() };
            let labels = labels.ok_or_else(none)?;
            let labels: Vec<u32> = (0..set.pictures.len()).map(|i| labels.get(i)).collect();
            Box::new(Supervised::new(setup, &labels)?)
        }
    })
}

/// Bytes of the configured method's networks, and of what it has of each picture; known before
/// anything is built.
pub(crate) fn memory_bytes(config: &RunConfig, setup: &Setup) -> Result<(usize, usize), Error> {
    let m = &config.method;
    let encoder = || setup.options(setup.batch).memory_bytes(setup.graph);
    // A row of the memory, and the number and the likeness of each neighbour.
    let remembered = |dim: usize| 4 * dim + 8 * config.discovery.neighbours;
    // All features, and the same whitened, or the points they are to go to.
    let all_features = 8 * config.network.features;
    Ok(match m.name {
        MethodChoice::And | MethodChoice::Instance => {
            (encoder()?, remembered(config.network.features))
        }
        MethodChoice::Anchorhood => {
            (config.anchorhood().memory_bytes(setup)?, remembered(m.projector_features))
        }
        MethodChoice::SimClr => (SimClr::memory_bytes(setup, &m.siamese())?, 0),
        MethodChoice::SimSiam => (SimSiam::memory_bytes(setup, &m.siamese())?, 0),
        MethodChoice::Byol => (Byol::memory_bytes(setup, &m.siamese())?, 0),
        MethodChoice::NnClr => {
            (NnClr::memory_bytes(setup, &m.siamese())?, 4 * m.projector_features)
        }
        MethodChoice::DeepCluster => (DeepCluster::memory_bytes(setup, m.clusters)?, all_features),
        MethodChoice::Nat => (encoder()?, all_features),
        MethodChoice::Counting => (Counting::memory_bytes(setup)?, 0),
        MethodChoice::SplitBrain => (SplitBrain::memory_bytes(setup, SPLIT_BRAIN)?, 0),
        MethodChoice::Colour => (SplitBrain::memory_bytes(setup, COLOUR)?, 0),
        MethodChoice::Jigsaw => (Jigsaw::memory_bytes(setup, JIGSAW, m.projector_width)?, 0),
        MethodChoice::Context => (Jigsaw::memory_bytes(setup, CONTEXT, m.projector_width)?, 0),
        MethodChoice::BiGan => {
            let (latents, hidden) = (m.projector_features, m.projector_width);
            (BiGan::memory_bytes(setup, latents, hidden)?, 0)
        }
        MethodChoice::Supervised => (encoder()?, 4),
    })
}

/// The graph of the network that learns to embed pictures of so many pixels a side: up to the layer
/// that is judged.
pub fn embedding_graph(config: &RunConfig, size: usize) -> Result<Graph, TrainError> {
    let graph = config.network.graph(size)?;
    let judged = judged_layer(config.method.name, &graph)?;
    Ok(graph.up_to(judged))
}

/// The layer whose output a method's features are: the whole network's; a classifier's values,
/// which may be as large as they like; or, under heads, what the last layer would have been given.
fn judged_layer(method: MethodChoice, graph: &Graph) -> Result<NodeId, TrainError> {
    let fc = graph.find("fc")?;
    Ok(match method.kind() {
        // Noise lies on a sphere, as remembered features do.
        MethodKind::Targets if method == MethodChoice::Nat => graph.output_node(),
        MethodKind::Memory => graph.output_node(),
        MethodKind::Targets | MethodKind::Supervised => fc,
        MethodKind::Views | MethodKind::Guessing => graph.node(fc).inputs[0],
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

impl MethodConfig {
    fn siamese(&self) -> SiameseSettings {
        SiameseSettings {
            passes: self.passes(),
            views_differ: self.views_differ,
            temperature: self.temperature as f32,
            projector: self.projector(),
            predictor: self.predictor(),
            momentum: self.momentum,
        }
    }
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

    fn anchorhood(&self) -> AnchorhoodSettings {
        let m = &self.method;
        AnchorhoodSettings {
            siamese: m.siamese(),
            predictor: m.predictor,
            memory: self.memory(),
            memory_weight: m.memory_weight as f32,
            momentum_rows: m.momentum_rows,
            whiten: m.whiten,
        }
    }

    fn memory(&self) -> MemorySettings {
        let d = &self.discovery;
        MemorySettings {
            temperature: d.temperature as f32,
            rate: d.memory_rate as f32,
            neighbours: d.neighbours,
            curriculum: d.curriculum,
            begin: d.begin,
            recompute: d.discover_from == FeatureSource::Recomputed,
            each: d.each,
            fill: d.fill,
            loss_rows: d.loss_rows.sampled(),
            by: d.by,
        }
    }

    /// What supervision makes of a configuration: a value of the result for each class, and
    /// features that are computed when they are judged, there being no memory.
    pub fn supervised(&self, classes: usize) -> RunConfig {
        let mut config = self.clone();
        config.method.name = MethodChoice::Supervised;
        config.network.features = classes;
        config.evaluation.features = FeatureSource::Recomputed;
        config
    }
}
