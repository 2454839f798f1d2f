//! A run that takes no time, and its pictures.

pub mod beside;
pub mod whole_run;

use anchorhood_data::Dataset;
use anchorhood_models::Architecture;
use anchorhood_train::{Preset, RunConfig};

/// One round of one epoch after round 0, over a few pictures.
pub fn tiny() -> RunConfig {
    let mut config = Preset::Quick.config("shapes");
    config.data.shapes_train = 16;
    config.data.shapes_test = 8;
    config.data.size = Some(8);
    config.network.architecture = Architecture::ResNet18; // as photographs have it, with stages of several blocks
    config.network.width = 2;
    config.network.features = 8;
    config.training.batch = 8;
    config.training.rounds = 1;
    config.training.epochs = 1;
    config
}

/// What a configuration trains on.
pub fn data(config: &RunConfig) -> Dataset {
    anchorhood_data::open(&config.data.set, &config.data.load_options(config.seed)).unwrap()
}
