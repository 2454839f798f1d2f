//! What a configuration leaves to the data and the method.

use anchorhood_data::Dataset;

use super::{FeatureSource, MethodKind, RunConfig};
use crate::TrainError;
use crate::build::embedding_graph;

impl RunConfig {
    /// This configuration for a data set: supervision has as many features as there are classes, methods with heads have those of
    /// the layer below, and what remembers no features has them recomputed to be judged.
    pub fn fitted(&self, data: &Dataset) -> Result<RunConfig, TrainError> {
        let mut config = match self.method.name.kind() {
            MethodKind::Memory | MethodKind::Views | MethodKind::Targets | MethodKind::Guessing => {
                self.clone()
            }
            MethodKind::Supervised => match &data.train.labels {
                Some(labels) => self.supervised(labels.classes().len()),
                None => {
                    return Err(TrainError::NoLabels {
                        data: data.name.clone(),
                    });
                }
            },
        };
        if data.report.labels.is_some() && config.data.size.is_none() {
            // As this machine chose it, whatever machine goes on.
            config.data.size = Some(data.train.pictures.height());
        }
        if config.method.name.has_heads() {
            let graph = embedding_graph(&config, data.train.pictures.height())?;
            config.network.features = graph.shape(graph.output_node()).len();
        }
        if !config.method.name.remembers() {
            config.evaluation.features = FeatureSource::Recomputed;
        }
        Ok(config)
    }

    /// Pixels a side of what a model for use is given, where nobody says it: views show parts of pictures enlarged, so that a whole picture must
    /// be larger to show things as large as they were learnt. Nothing where a network for that has other layers.
    pub fn embed_size_for(&self, data: &Dataset) -> Option<usize> {
        let size = data.train.pictures.height();
        let larger = size + size / 4;
        let for_use = self.method.whiten > 0.0 && self.method.name.compares_views();
        let own = self.training.from.is_some(); // the model knows what it is given
        let parameters = |size| embedding_graph(self, size).map(|g| g.parameters().to_vec());
        let alike = || match (parameters(size), parameters(larger)) {
            (Ok(a), Ok(b)) => self.network.form(size) == self.network.form(larger) && a == b,
            _ => false,
        };
        (for_use && !own && alike()).then_some(larger)
    }
}
