//! A model as other programs get it: its tensors by name, what is done to a picture first, and what
//! is good to know.

use anchorhood_search::Model;
use anchorhood_train::{NetworkConfig, Tensor, VERSION};

use crate::{ExportError, NamedTensor, Preprocessing, onnx_model, torchvision_weights};

/// What is exported of a model.
#[derive(Debug)]
pub struct Exported<'a> {
    model: &'a Model,
    /// Which network.
    pub network: &'a NetworkConfig,
    /// Weights and running statistics, in the graph's order.
    pub tensors: Vec<NamedTensor<'a>>,
    /// What is done to a picture first.
    pub preprocessing: Preprocessing,
    /// Values of the result.
    pub features: usize,
    /// Whether the result comes from the last layer, which libraries call fc, or from the one below
    /// it.
    pub has_fc: bool,
    notes: Vec<(&'static str, String)>,
}

impl<'a> Exported<'a> {
    /// Of a network of ours; what another program's library runs cannot be taken apart.
    pub fn of(model: &'a Model) -> Result<Self, ExportError> {
        let (network, input) = (model.network()?, model.input());
        let named =
            |t: &'a Tensor| NamedTensor { name: &t.name, shape: &t.shape, values: &t.values };
        let (graph, weights) = (model.graph()?, model.weights()?);
        let features = graph.shape(graph.output_node()).len();
        let layer = graph.node(graph.node(graph.output_node()).inputs[0]);
        Ok(Exported {
            model,
            network,
            features,
            has_fc: weights.iter().any(|t| t.name == "fc.weight"),
            tensors: weights.iter().map(named).collect(),
            preprocessing: Preprocessing { size: input.size, mean: input.mean, std: input.std },
            notes: vec![
                ("network", network.architecture.name().into()),
                ("width", network.width.to_string()),
                ("features", features.to_string()),
                ("fingerprint", model.fingerprint().into()),
                (
                    "output",
                    format!(
                        "{0}, then divided by its length; torchvision and timm stop at {0}",
                        layer.name
                    ),
                ),
            ],
        })
    }

    /// The bytes of an ONNX file.
    pub fn onnx(&self) -> Result<Vec<u8>, ExportError> {
        let graph = self.model.graph()?;
        onnx_model(graph, &self.tensors, &self.preprocessing, VERSION, &self.notes)
    }

    /// The bytes of a safetensors file with torchvision's names.
    pub fn weights(&self) -> Result<Vec<u8>, ExportError> {
        // For loading it here.
        let all = (Model::DESCRIPTION, self.model.description()?);
        let notes = [&self.notes[..], &[all]].concat();
        torchvision_weights(&self.tensors, &self.preprocessing, &notes)
    }
}
