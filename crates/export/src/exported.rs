//! A model as other programs get it: its tensors by name, what is done to a picture first, and what
//! is good to know.

use std::path::Path;

use anchorhood_index::Model;
use anchorhood_storage::AtomicFile;
use anchorhood_train::{InputForm, NetworkConfig, Tensor, VERSION};

use crate::onnx::onnx_model;
use crate::weights::{timm_config, torchvision_weights};
use crate::{ExportError, check_places};

/// What is exported of a model.
#[derive(Debug)]
pub struct Exported<'a> {
    model: &'a Model,
    /// Which network.
    pub network: &'a NetworkConfig,
    /// Weights and running statistics, in the graph's order.
    tensors: &'a [Tensor],
    /// What is done to a picture first.
    pub preprocessing: InputForm,
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
        let network = model.network()?;
        let (graph, weights) = (model.graph()?, model.weights()?);
        let features = graph.shape(graph.output_node()).len();
        let layer = graph.node(graph.node(graph.output_node()).inputs[0]);
        Ok(Exported {
            model,
            network,
            features,
            has_fc: weights.iter().any(|t| t.name == "fc.weight"),
            tensors: weights,
            preprocessing: *model.input(),
            notes: vec![
                ("network", network.architecture.name.into()),
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
        onnx_model(graph, self.tensors, &self.preprocessing, VERSION, &self.notes)
    }

    /// Writes the ONNX file, whole or not at all, to a place that [may](check_places) be written
    /// to.
    pub fn save_onnx(&self, path: &Path) -> Result<(), ExportError> {
        check_places(&[path.into()], self.model.path())?;
        AtomicFile::write(path, &self.onnx()?).map_err(ExportError::io(path))
    }

    /// The bytes of a safetensors file with torchvision's names.
    pub fn weights(&self) -> Result<Vec<u8>, ExportError> {
        // For loading it here.
        let all = (Model::DESCRIPTION, self.model.description()?);
        let notes = [&self.notes[..], &[all]].concat();
        torchvision_weights(self.tensors, &self.preprocessing, &notes)
    }

    /// The `config.json` beside a `model.safetensors` of these weights that
    /// `timm.create_model("local-dir:FOLDER")` reads. Networks that timm has by the same names, at
    /// their published width, can be loaded; `conv1` of the form for small pictures has to be put
    /// in first.
    pub fn timm_config(&self) -> Result<String, ExportError> {
        timm_config(self.network.architecture.name, self.tensors, &self.preprocessing)
    }
}
