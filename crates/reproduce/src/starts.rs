//! What round 1 begins from (Table 5): the memory that round 0 left, or the features of a network
//! nobody trained.

use std::path::Path;

use anchorhood_data::Dataset;
use anchorhood_engine::Device;
use anchorhood_train::evaluation::extract;
use anchorhood_train::methods::Values;
use anchorhood_train::{Checkpoint, Position, RunConfig, Standing, Trainer, TrainingSet};

use crate::ReproduceError;

/// Where round 1 begins.
const ROUND_1: Position = Position { round: 1, epoch: 0, batch: 0 };

/// A run as it stands after round 0, taken from an Instance run: round 0 depends on nothing that
/// the two differ in.
pub fn after_instance(instance: &Path, config: &RunConfig) -> Result<Checkpoint, ReproduceError> {
    let last = anchorhood_train::checkpoint_path(instance, "last");
    let checkpoint = Checkpoint::load(&last)?;
    Ok(Checkpoint {
        config: config.clone(),
        standing: Standing {
            position: ROUND_1,
            metrics_bytes: 0, // its events are in the other run's folder
            ..checkpoint.standing
        },
        ..checkpoint
    })
}

/// A run that begins with round 1: a network as its seed draws it, and in the memory what it makes
/// of the pictures.
pub fn after_nothing(
    device: &Device,
    config: &RunConfig,
    data: &Dataset,
) -> Result<Checkpoint, ReproduceError> {
    let mut trainer = Trainer::new(device, config, TrainingSet::of(data))?;
    let memory = device.within(|| {
        let network = trainer.network();
        extract(network, &data.train.pictures, data.mean, data.std, &|_| {})
    })?;
    let standing = Standing { position: ROUND_1, ..Standing::default() };
    let mut checkpoint = trainer.checkpoint(standing)?;
    for tensor in &mut checkpoint.state.tensors {
        if let ("memory.bank", Values::F32(rows)) = (tensor.name.as_str(), &mut tensor.values) {
            rows.clone_from(&memory);
        }
    }
    Ok(checkpoint)
}
