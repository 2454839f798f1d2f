//! All of a model but its numbers: what a model's file says beside its tensors, and what makes a
//! model of both.
//!
//! Weights that are exported for PyTorch and timm have it as JSON in their metadata, under
//! [`Model::DESCRIPTION`], so that loading them here gives the model that was exported, to the bit.

use std::collections::BTreeSet;
use std::path::Path;

use anchorhood_models::Weights;
use anchorhood_train::{
    InputForm, NetworkConfig, Preset, RunConfig, Tensor, check_weights, judged_graph,
};
use serde::{Deserialize, Serialize};

use super::Model;
use super::refit::has_layers_for;
use crate::SearchError;
use crate::checked_lines::to_json;

/// All of a model but its numbers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Description {
    pub network: NetworkConfig,
    /// The tensors' names in the network's own order.
    pub order: Vec<String>,
    pub judged_layer: String,
    pub preprocessing: InputForm,
    pub learnt_size: usize,
    pub fingerprint: String,
}

impl Model {
    /// The name of what [`Model::description`] gives in a file's metadata.
    pub const DESCRIPTION: &str = "anchorhood";

    /// All of the model but its numbers, as JSON.
    pub fn description(&self) -> Result<String, SearchError> {
        let model = self.engine()?;
        let description = Description {
            network: model.network.clone(),
            order: model.weights.iter().map(|t| t.name.clone()).collect(),
            judged_layer: model.judged_layer().into(),
            preprocessing: self.input,
            learnt_size: self.learnt_size,
            fingerprint: self.fingerprint.clone(),
        };
        Ok(to_json(&description))
    }
}

/// The model in weights that were exported; none in another program's.
pub(super) fn of_exported(path: &Path, weights: &Weights) -> Option<Result<Model, SearchError>> {
    let damaged = SearchError::damaged_model(path);
    let Some(text) = weights.note(Model::DESCRIPTION) else {
        // Exported without it: which stem and which layer cannot be known.
        let ours = ["fingerprint", "input_size", "colour_order"];
        let ours = ours.iter().all(|name| weights.note(name).is_some());
        let why = "exported by an earlier version, which did not say all that is needed to load it \
                   here; export it again from its run";
        return ours.then(|| Err(SearchError::refused(path, why)));
    };
    let made = || {
        let description: Description = serde_json::from_str(text)
            .map_err(|e| damaged(format!("what it says of itself: {e}")))?;
        description.check_order().map_err(&damaged)?;
        let tensor = |name: &String| {
            let found = weights.shape(name).zip(weights.values(name));
            let (shape, values) = found.ok_or_else(|| damaged(format!("it has no {name}")))?;
            Ok(Tensor { name: name.clone(), shape: shape.to_vec(), values: values.to_vec() })
        };
        let tensors = description.order.iter().map(tensor);
        let tensors = tensors.collect::<Result<Vec<Tensor>, SearchError>>()?;
        description.model(path, tensors)
    };
    Some(made())
}

impl Description {
    /// Whether each tensor is named once: to be asked before any is copied.
    pub(super) fn check_order(&self) -> Result<(), String> {
        let names: BTreeSet<&String> = self.order.iter().collect();
        if names.len() == self.order.len() { Ok(()) } else { Err("it names a tensor twice".into()) }
    }

    /// The model with these numbers, which must be those that were described.
    pub(super) fn model(self, path: &Path, weights: Vec<Tensor>) -> Result<Model, SearchError> {
        let damaged = SearchError::damaged_model(path);
        let (network, input) = (self.network, self.preprocessing);
        // Refuses widths and lengths that no run can have.
        let config = RunConfig { network: network.clone(), ..Preset::Quick.config("shapes") };
        config.check().map_err(|e| damaged(e.to_string()))?;
        if !input.is_possible() {
            return Err(damaged(format!("its input cannot be: {input:?}")));
        }
        if !has_layers_for(&network, input, self.learnt_size) {
            let size = self.learnt_size;
            return Err(damaged(format!("it cannot have learnt with pictures of {size} pixels")));
        }
        let graph = judged_graph(&network.graph(input.size)?, &self.judged_layer)?;
        check_weights(&graph, &weights, path)?;
        let model = Model {
            learnt_size: self.learnt_size,
            ..Model::of(path, network, input, graph, weights)
        };
        match self.fingerprint == model.fingerprint {
            true => Ok(model),
            false => Err(damaged("its fingerprint is that of another model".into())),
        }
    }
}
