//! What a configuration leaves to the data and the method.

use anchorhood_data::Dataset;
use anchorhood_engine::vectors::Whitening;

use super::{FeatureSource, RunConfig};
use crate::TrainError;
use crate::build::embedding_graph;
use crate::methods::MethodKind;

impl RunConfig {
    /// This configuration for a data set: supervision has as many features as there are classes,
    /// methods with heads have those of the layer below, and what remembers no features has them
    /// recomputed to be judged.
    pub fn fitted(&self, data: &Dataset) -> Result<RunConfig, TrainError> {
        let mut config = match (self.method.name.kind, &data.train.labels) {
            (MethodKind::Supervised, Some(labels)) => self.supervised(labels.classes().len()),
            (MethodKind::Supervised, None) => {
                return Err(TrainError::NoLabels { data: data.name.clone() });
            }
            _ => self.clone(),
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

    /// The same, with the size of the pictures that the finished model is given.
    pub fn resolved(&self, data: &Dataset) -> Result<RunConfig, TrainError> {
        let mut config = self.fitted(data)?;
        let size = config.data.embed_size;
        config.data.embed_size = size.or_else(|| config.embed_size_for(data));
        Ok(config)
    }

    /// Pixels a side of what a model for use is given, where nobody says it: views show parts of
    /// pictures enlarged, so that a whole picture must be larger to show things as large as they
    /// were learnt. Nothing where features are not whitened, where a network for that has other
    /// layers, and where a model that the run begins from knows better.
    fn embed_size_for(&self, data: &Dataset) -> Option<usize> {
        let whitened = self.method.whiten > 0.0
            && self.method.name.compares_views()
            && self.network.features <= Whitening::MOST;
        if !whitened || self.training.from.is_some() {
            return None;
        }
        let size = data.train.pictures.height();
        let larger = size + size / 4;
        let parameters = |size| embedding_graph(self, size).map(|g| g.parameters().to_vec());
        let alike = match (parameters(size), parameters(larger)) {
            (Ok(a), Ok(b)) => self.network.form(size) == self.network.form(larger) && a == b,
            _ => false,
        };
        alike.then_some(larger)
    }
}

#[cfg(test)]
mod tests {
    use anchorhood_data::Pictures;
    use anchorhood_models::RESNET50;

    use super::*;
    use crate::Preset;
    use crate::methods::ANCHORHOOD;

    fn pictures(size: usize) -> Dataset {
        let bytes = (0..2 * size * size * 3).map(|i| (i % 251) as u8);
        Dataset::new("some", Pictures::new(size, size, bytes.collect()).unwrap())
    }

    fn embed_size(preset: Preset, size: usize, change: impl Fn(&mut RunConfig)) -> Option<usize> {
        let mut config = preset.config_for("some", &ANCHORHOOD);
        change(&mut config);
        let data = pictures(size);
        config.resolved(&data).unwrap().data.embed_size
    }

    #[test]
    fn models_for_use_are_given_larger_pictures() {
        for preset in [Preset::Quick, Preset::Strong] {
            assert_eq!(embed_size(preset, 32, |_| {}), Some(40));
            assert_eq!(embed_size(preset, 64, |_| {}), Some(80));
        }
    }

    #[test]
    fn others_are_given_what_they_learnt_from() {
        assert_eq!(embed_size(Preset::Paper, 32, |_| {}), None);
        let strong = |size, change: fn(&mut RunConfig)| embed_size(Preset::Strong, size, change);
        // From 48 pixels on the first layer is another one.
        assert_eq!(strong(40, |_| {}), None);
        assert_eq!(strong(32, |c| c.method.whiten = 0.0), None);
        assert_eq!(strong(32, |c| c.training.from = Some("base".into())), None);
        // ResNet50's 2,048 values are whitened, those of one twice as wide are not.
        let deep: fn(&mut RunConfig) = |c| c.network.architecture = &RESNET50;
        assert_eq!(strong(32, deep), Some(40));
        let wide: fn(&mut RunConfig) =
            |c| (c.network.architecture, c.network.width) = (&RESNET50, 128);
        assert_eq!(strong(32, wide), None);
    }
}
