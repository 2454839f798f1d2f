//! A model that a run begins from: fine-tuning. What was learnt (all but the last layer, `fc`)
//! comes from the model, with the network, the size of its pictures and the mean and deviation that
//! they are normalised by; `fc` and every head are drawn from the seed.
//!
//! For the first epochs only what is fresh learns (`training.freeze_epochs`): its first gradients
//! are noise to the rest.

use std::path::Path;

use crate::methods::{Method, parameter_groups};
use anchorhood_engine::{
    Device, Error, Graph, Network, NetworkOptions, Parameter, ParameterGroup, Tensors,
};

use crate::config::Value;
use crate::{
    InputForm, NetworkConfig, RunConfig, Setting, Tensor, TrainError, check_room, write_weights,
};

/// What the learning rate is multiplied by for what comes from the model: steps as large as a drawn
/// network needs would undo it.
const RATE: f64 = 0.03;
/// Epochs for the heads alone.
const FREEZE_EPOCHS: usize = 1;

/// A trained network as it is.
#[derive(Clone, Debug)]
pub struct Pretrained {
    /// Where it can be had again: a file, or a name.
    pub name: String,
    /// Which network.
    pub network: NetworkConfig,
    /// What it is given of a picture that it learns from.
    pub input: InputForm,
    /// Pixels a side of the pictures that it is given when it does not learn.
    pub embed_size: usize,
    /// The graph that embeds, its result of unit length.
    pub graph: Graph,
    /// Its weights and running statistics, in the graph's order.
    pub weights: Vec<Tensor>,
    /// 32 digits of all of it.
    pub fingerprint: String,
}

impl Pretrained {
    /// The configuration of a run that begins from it, where it was that of a run from scratch.
    pub fn begin(&self, mut config: RunConfig) -> RunConfig {
        for (name, value) in self.decides() {
            let setting = Setting::named(name).expect("it decides about settings there are");
            setting.set(&mut config, &value).expect("a model has values that settings can have");
        }
        let larger = self.embed_size != self.input.size;
        config.data.embed_size = larger.then_some(self.embed_size);
        config.training.from_rate = RATE;
        config.training.freeze_epochs = FREEZE_EPOCHS;
        config
    }

    /// Refuses a configuration that wants something else of what the model decides.
    pub fn check(&self, config: &RunConfig) -> Result<(), TrainError> {
        for (name, value) in self.decides() {
            let asked = config.get(name)?;
            if asked != value {
                return Err(TrainError::OtherThanModel {
                    model: self.name.clone(),
                    setting: name,
                    own: value,
                    asked,
                });
            }
        }
        Ok(())
    }

    /// Settings that are the model's, and what they are.
    fn decides(&self) -> [(&'static str, String); 9] {
        let numbers = |values: [f32; 3]| values.map(|v| v.to_string()).join(",");
        [
            ("training.from", self.name.clone()),
            ("training.from_fingerprint", self.fingerprint.clone()),
            ("network.architecture", self.network.architecture.to_string()),
            ("network.width", self.network.width.to_string()),
            ("network.stem", self.network.stem.to_string()),
            ("network.colours", self.network.colours.text()),
            ("data.size", self.input.size.to_string()),
            ("data.mean", numbers(self.input.mean)),
            ("data.std", numbers(self.input.std)),
        ]
    }

    /// Gives a method at its beginning what the model has learnt: to its encoder, and to one that
    /// follows it.
    pub(crate) fn load_into(&self, method: &mut dyn Method) -> Result<(), TrainError> {
        for (_, network) in method.networks() {
            let parameters = network.graph().parameters().to_vec();
            if parameters.first().map(|p| &p.name) != self.weights.first().map(|t| &t.name) {
                continue; // a head
            }
            for (i, p) in parameters.iter().enumerate().filter(|(_, p)| !is_fresh(p)) {
                network.write(Tensors::Values, i, self.values_of(p)?)?;
            }
        }
        Ok(())
    }

    fn values_of(&self, parameter: &Parameter) -> Result<&[f32], TrainError> {
        let same = |t: &&Tensor| t.name == parameter.name && t.shape == parameter.shape;
        let found = self.weights.iter().find(same);
        found.map(|t| &t.values[..]).ok_or_else(|| TrainError::LacksTensor {
            model: self.name.clone(),
            tensor: parameter.name.clone(),
            shape: parameter.shape.clone(),
        })
    }

    /// The model itself on a device, to be judged before anything is trained.
    pub(crate) fn network(&self, device: &Device, batch: usize) -> Result<Network, TrainError> {
        let options = NetworkOptions::new(batch);
        check_room(device, &self.graph, &options, 0)?;
        let mut network = device.network(&self.graph, &options)?;
        write_weights(&mut network, &self.weights, Path::new(&self.name))?;
        Ok(network)
    }
}

/// Whether a parameter of an encoder is drawn from the seed whatever the run begins from: the last
/// layer's values are a method's own, be it features or classes.
fn is_fresh(parameter: &Parameter) -> bool {
    parameter.name.starts_with("fc.")
}

/// Freezes what an encoder has from its model for the first epochs of so many batches, and lets it
/// learn at its own rate then. Weights that stay keep their bits, while running statistics follow
/// the pictures.
pub(crate) fn set_groups(
    network: &mut Network,
    config: &RunConfig,
    batches: usize,
) -> Result<(), Error> {
    let groups = parameter_groups(&config.training.optimiser());
    let rate_factor = config.training.from_rate as f32;
    let frozen = 0..(config.training.freeze_epochs * batches) as u64;
    network.regroup(&|p| {
        if is_fresh(p) {
            groups(p)
        } else {
            ParameterGroup { frozen: frozen.clone().into(), rate_factor, ..groups(p) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IMAGENET, Preset, embedding_graph, judged_graph, methods};

    fn model(width: usize) -> Pretrained {
        let mut config = Preset::Quick.config_for("photos", &methods::SIMCLR);
        config.network.width = width;
        let graph = embedding_graph(&config, 32).unwrap();
        let layer = graph.node(graph.output_node()).name.clone();
        let (mean, std) = IMAGENET;
        Pretrained {
            name: "a model".into(),
            network: config.network.clone(),
            input: InputForm { version: InputForm::VERSION, size: 32, mean, std },
            embed_size: 40,
            weights: vec![],
            graph: judged_graph(&graph, &layer).unwrap(),
            fingerprint: "0".repeat(32),
        }
    }

    #[test]
    fn what_the_model_decides_is_kept_and_nothing_else_is_asked_for() {
        let scratch = Preset::Quick.config_for("photos", &methods::BYOL);
        let config = model(8).begin(scratch.clone());
        assert_eq!((config.network.width, config.data.size), (8, Some(32)));
        assert_eq!(config.data.embed_size, Some(40));
        assert_eq!(config.data.normalisation(), Some(IMAGENET));
        assert_eq!(config.training.freeze_epochs, 1);
        assert_eq!(config.training.from_rate, RATE);
        assert_eq!(config.training.learning_rate, scratch.training.learning_rate);
        config.check().unwrap();
        model(8).check(&config).unwrap();
        let read = RunConfig::from_toml(&config.to_toml(), "a test").unwrap();
        assert_eq!(read, config);
        for (setting, other) in [
            ("network.width", "16"),
            ("network.architecture", "resnet34"),
            ("network.stem", "auto"),
            ("data.size", "64"),
            ("data.std", "0.2,0.2,0.2"),
            ("training.from_fingerprint", "another"),
        ] {
            let mut asked = config.clone();
            asked.set(setting, other).unwrap();
            let error = model(8).check(&asked).unwrap_err();
            let said = error.to_string();
            assert!(error.is_usage() && said.contains("a model"), "{said}");
        }
    }

    /// Numbers of a model are written as short as they can be, and read back as they were.
    #[test]
    fn a_deviation_is_read_back_to_the_bit() {
        let mut model = model(8);
        model.input.std = [0.1 + 0.2, f32::MIN_POSITIVE, 1.0 / 3.0];
        let config = model.begin(Preset::Quick.config("photos"));
        let read = RunConfig::from_toml(&config.to_toml(), "a test").unwrap();
        assert_eq!(read.data.normalisation().unwrap().1, model.input.std);
        model.check(&read).unwrap();
    }
}
