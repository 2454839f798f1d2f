//! A trained network, ready for use: its graph, its weights, and what it is given of a picture. It comes from a checkpoint, or from
//! another program's weights of a ResNet, from a file that holds a model alone, or from the program itself.

mod base;
mod model_file;

use std::path::{Path, PathBuf};

use anchorhood_data::Pictures;
use anchorhood_engine::{Device, Graph, Network, NetworkOptions, NodeId, Parameter};
use anchorhood_files::OpenContainer;
use anchorhood_models::{Weights, WeightsError};
use anchorhood_train::{
    Checked, Checkpoint, IMAGENET, InputForm, NetworkConfig, StemChoice, Tensor, check_room,
    check_weights, fingerprint, judged_graph, model_path, write_weights,
};

use crate::{Embedder, SearchError, Vectors};

/// Pictures at a time where nobody says how many.
pub(crate) const BATCH: usize = 128;

/// A model.
#[derive(Clone, Debug)]
pub struct Model {
    path: PathBuf,
    network: NetworkConfig,
    input: InputForm,
    graph: Graph,
    weights: Vec<Tensor>,
    fingerprint: String,
    checked: Checked,
}

impl Model {
    /// Reads a checkpoint, or of a run's folder the one that is its model; or weights of torchvision's or timm's ResNets (`.safetensors`, `.pth`),
    /// which are recognised by their tensors; or a file that [`Model::save`] wrote. A checkpoint that does not say what its network is given (as the first ones did
    /// not) is completed from the data set it was trained on.
    pub fn load(path: impl AsRef<Path>) -> Result<Model, SearchError> {
        let path = path.as_ref();
        match path.is_dir() {
            true => Model::read(&model_path(path)),
            false => Model::read(path),
        }
    }

    fn read(path: &Path) -> Result<Model, SearchError> {
        if let Some(file) = model_file::open(path) {
            return model_file::decode(&file);
        }
        let checkpoint = match Checkpoint::load(path) {
            // A whole file of something else.
            Err(error) if path.is_file() && !OpenContainer::is_ours(path) => {
                return Model::of_weights(path).map_err(|other| match other {
                    // What it is not is said by whoever knows most about it.
                    SearchError::Weights {
                        source: WeightsError::NotSafetensors { .. },
                        ..
                    } => error.into(),
                    other => other,
                });
            }
            read => read?,
        };
        let input = match checkpoint.input {
            Some(input) => input,
            None => input_of_data(&checkpoint, path)?,
        };
        let network = checkpoint.config.network.clone();
        let graph = checkpoint.graph(input.size)?;
        check_weights(&graph, &checkpoint.weights, path)?;
        let (weights, checked) = (checkpoint.weights, checkpoint.checked);
        Ok(Model::of(path, network, input, graph, weights, checked))
    }

    /// From its parts, which fit each other.
    pub(crate) fn of(
        path: &Path,
        network: NetworkConfig,
        input: InputForm,
        graph: Graph,
        weights: Vec<Tensor>,
        checked: Checked,
    ) -> Model {
        Model {
            path: path.into(),
            fingerprint: fingerprint(&network, &input, &weights),
            network,
            input,
            graph,
            weights,
            checked,
        }
    }

    /// Another program's weights, seen as torchvision's models see pictures; judged is what its last layer would have been given.
    fn of_weights(path: &Path) -> Result<Model, SearchError> {
        let failed = |source| SearchError::Weights {
            path: path.into(),
            source,
        };
        let weights = Weights::read(path).map_err(failed)?;
        let found = weights.recognise().map_err(failed)?;
        let (mean, std) = IMAGENET;
        let input = InputForm {
            version: InputForm::VERSION,
            size: found.form.usual_size(),
            mean,
            std,
        };
        let whole = found
            .architecture
            .graph_of(found.form, input.size, found.width, 1)?;
        let graph = judged_graph(&whole, "avgpool")?;
        let tensors = tensors_for(&graph, &weights).map_err(failed)?;
        let network = NetworkConfig {
            architecture: found.architecture,
            stem: StemChoice::Auto,
            width: found.width,
            features: graph.shape(graph.output_node()).len(),
        };
        let checked = Checked::CannotBeChecked;
        Ok(Model::of(path, network, input, graph, tensors, checked))
    }

    /// Whether damage to its file would have been noticed: one of 0.1 cannot be checked.
    pub fn checked(&self) -> Checked {
        self.checked
    }

    /// The checkpoint it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which network.
    pub fn network(&self) -> &NetworkConfig {
        &self.network
    }

    /// What it is given of a picture.
    pub fn input(&self) -> &InputForm {
        &self.input
    }

    /// Its graph, for pictures of its size.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its weights and running statistics, in the graph's order.
    pub fn weights(&self) -> &[Tensor] {
        &self.weights
    }

    /// 32 hexadecimal digits of everything that decides what it makes of a picture. Two checkpoints of one fingerprint
    /// give the same vectors.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The model on a device, for up to `batch` pictures at a time; of `layer`, or of its last one.
    pub fn embedder(
        &self,
        device: &Device,
        batch: usize,
        layer: Option<&str>,
    ) -> Result<Embedder, SearchError> {
        let tap = layer.map(|name| self.graph.find(name)).transpose()?;
        let network = self.network_on(device, batch.max(1), tap.into_iter().collect())?;
        Ok(Embedder::new(network, self.input, tap))
    }

    /// Its network on a device, for up to `batch` pictures at a time, with the outputs of some layers kept.
    pub fn network_on(
        &self,
        device: &Device,
        batch: usize,
        keep: Vec<NodeId>,
    ) -> Result<Network, SearchError> {
        let options = NetworkOptions {
            keep,
            ..NetworkOptions::new(batch)
        };
        check_room(device, &self.graph, &options, 0)?;
        let mut network = device.network(&self.graph, &options)?;
        write_weights(&mut network, &self.weights, &self.path)?;
        Ok(network)
    }

    /// The vectors of many pictures, computed on a device.
    pub fn embed(&self, device: &Device, pictures: &Pictures) -> Result<Vectors, SearchError> {
        let batch = pictures.len().clamp(1, BATCH);
        self.embedder(device, batch, None)?.embed_all(pictures)
    }
}

/// The weights of a graph's parameters, in its order; the last layer, which nobody uses, is left.
fn tensors_for(graph: &Graph, weights: &Weights) -> Result<Vec<Tensor>, WeightsError> {
    let values = weights.fit(graph)?.values.into_iter().flatten();
    let tensors = graph.parameters().iter().zip(values);
    let tensor = |(p, values): (&Parameter, &[f32])| Tensor {
        name: p.name.clone(),
        shape: p.shape.clone(),
        values: values.to_vec(),
    };
    Ok(tensors.map(tensor).collect())
}

fn input_of_data(checkpoint: &Checkpoint, path: &Path) -> Result<InputForm, SearchError> {
    let config = &checkpoint.config;
    let opened = anchorhood_data::open(&config.data.set, &config.data.load_options(config.seed));
    let data = opened.map_err(|e| SearchError::NoInputForm {
        path: path.into(),
        reason: e.to_string(),
    })?;
    Ok(InputForm {
        version: InputForm::VERSION,
        size: data.train.pictures.height(),
        mean: data.mean,
        std: data.std,
    })
}
