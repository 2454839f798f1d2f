//! What a configuration leaves to the data.

use anchorhood_data::Dataset;

use super::{MethodChoice, RunConfig};
use crate::TrainError;

impl RunConfig {
    /// This configuration for a data set: supervision takes its number of classes from it.
    pub fn fitted(&self, data: &Dataset) -> Result<RunConfig, TrainError> {
        match self.method.name {
            MethodChoice::And => Ok(self.clone()),
            MethodChoice::Supervised => match &data.train.labels {
                Some(labels) => Ok(self.supervised(labels.classes().len())),
                None => Err(TrainError::NoLabels {
                    data: data.name.clone(),
                }),
            },
        }
    }
}
