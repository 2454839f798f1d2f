//! What a checkpoint knows every training picture by: the memory of a method that has one; else
//! what its network makes of the pictures now, at the layer that is judged.

use std::path::Path;

use crate::evaluation::extract;
use anchorhood_engine::{Device, NetworkOptions};

use crate::{Checkpoint, CheckpointError, TrainingSet};

impl Checkpoint {
    /// A row for each of the pictures it was trained on, of unit length once it was seen, and the
    /// length of a row; `path` names the file in errors.
    pub fn rows_of(
        &self,
        device: &Device,
        set: &TrainingSet,
        path: &Path,
    ) -> Result<(Vec<f32>, usize), CheckpointError> {
        self.check_pictures(set, path)?;
        if let Some((rows, dim)) = self.memory() {
            return Ok((rows.to_vec(), dim));
        }
        let graph = self.graph(set.pictures.height())?;
        let options = NetworkOptions::new(self.config.batch_of(set));
        let mut network = device.network(&graph, &options)?;
        self.restore(&mut network, false, path)?;
        let (mean, std) = (self.input.mean, self.input.std);
        let rows = device.within(|| extract(&mut network, &set.pictures, mean, std, &|_| {}))?;
        Ok((rows, network.features()))
    }
}
