//! A checkpoint judged after the fact, on the data it was trained on or on other pictures.

use std::path::Path;

use crate::discovery::MemoryBank;
use anchorhood_data::Dataset;
use anchorhood_engine::{Device, Graph, Network, NetworkOptions};

use crate::{
    Accuracy, Checkpoint, CheckpointError, FeatureSource, Labelled, RunConfig, TrainError,
    TrainingSet, check_room, check_weights, embedding_graph,
};

/// A checkpoint's figure, and the floors under it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The pixels themselves.
    pub raw_pixels: Accuracy,
    /// The network as it was drawn from the run's seed, with features computed from it.
    pub untrained: Accuracy,
    /// The checkpoint.
    pub trained: Accuracy,
}

/// Judges `checkpoint` (loaded from `path`) on `data` with the evaluation settings of `config`.
/// Networks see pictures as those they learnt from were: normalised by the mean and deviation that
/// the checkpoint tells.
pub fn judge(
    device: &Device,
    checkpoint: &Checkpoint,
    path: &Path,
    config: &RunConfig,
    data: &Dataset,
) -> Result<Judgement, TrainError> {
    let examiner = Labelled::of(data, &config.evaluation, device)
        .ok_or_else(|| TrainError::NoLabels { data: data.name.clone() })?;
    let (mean, std) = (checkpoint.input.mean, checkpoint.input.std);
    let examiner = examiner.normalised_by((mean, std));
    let set = TrainingSet::of(data);
    let memory = config.evaluation.features == FeatureSource::Memory;
    let n = set.pictures.len();
    if memory && n != checkpoint.pictures() {
        return Err(CheckpointError::OtherMemory {
            path: path.into(),
            remembered: checkpoint.pictures(),
            data: data.name.clone(),
            pictures: n,
        }
        .into());
    }
    let batch = config.training.batch.min(n).max(1);
    let graph = checkpoint.graph(set.pictures.height())?;
    check_weights(&graph, &checkpoint.weights, path)?;
    let network = |graph: &Graph| -> Result<Network, TrainError> {
        let options = NetworkOptions::new(batch);
        check_room(device, graph, &options, 0)?;
        Ok(device.network(graph, &options)?)
    };
    let raw_pixels = examiner.raw_pixels()?;
    let untrained = {
        // As its run judged it: what learns, at the layer that is judged.
        let mut network = network(&embedding_graph(&checkpoint.config, set.pictures.height())?)?;
        network.initialise(config.seed)?;
        network.normalised_by(&mean, &std)?;
        examiner.network(&mut network, None, None)?
    };
    let mut network = network(&graph)?;
    checkpoint.restore(&mut network, false, path)?;
    let bank = match checkpoint.memory().filter(|_| memory) {
        Some((rows, dim)) => Some(MemoryBank::from_values(device, rows, dim)?),
        None => None,
    };
    let trained = examiner.network(&mut network, bank.as_ref(), None)?;
    Ok(Judgement { raw_pixels, untrained, trained })
}
