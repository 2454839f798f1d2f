//! A trained network, ready for use, and what it is given of a picture. It comes from a checkpoint,
//! from another program's weights of a ResNet, from a file that holds a model alone, or from the
//! program itself; or it is an ONNX file, which another program's library runs.

mod base;
mod description;
mod model_file;
mod refit;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::onnx::{Encoder, is_onnx};
use anchorhood_data::{Pictures, Squaring, host_memory};
use anchorhood_engine::{Device, Graph, Network, NetworkOptions, NodeId, Parameter};
use anchorhood_models::{Weights, WeightsError};
use anchorhood_storage::{OpenContainer, open_regular};
use anchorhood_train::evaluation::Rows;
use anchorhood_train::{
    Checkpoint, ColoursChoice, IMAGENET, InputForm, NetworkConfig, StemChoice, Tensor, check_room,
    check_weights, embedding_path, fingerprint, judged_graph, write_weights,
};

use crate::{Embedder, SearchError};

const NO_MODEL: &str = "is no model: neither a checkpoint or a model file of this program, nor \
                        weights of a ResNet (.safetensors, .pth), nor an ONNX file (.onnx)";
const ONLY_VECTORS: &str = "an ONNX model makes vectors of pictures, and its layers and weights are \
                            out of reach here; give a run, a checkpoint, or the weights of a ResNet";

/// Pictures at a time where nobody says how many.
pub(crate) const BATCH: usize = 128;

/// Whether a model is known to be what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Its numbers are those that a checksum was made of.
    Verified,
    /// Its file is another program's, in which damage would go unnoticed.
    CannotBeChecked,
}

/// A model.
#[derive(Clone, Debug)]
pub struct Model {
    path: PathBuf,
    input: InputForm,
    /// Pixels a side of the pictures it learnt with.
    learnt_size: usize,
    fingerprint: String,
    checked: Checked,
    runner: Runner,
}

/// Who makes the vectors.
#[derive(Clone, Debug)]
enum Runner {
    /// The engine, on any device.
    Engine(Box<EngineModel>),
    /// ONNX Runtime, on the CPU.
    Onnx(Arc<Encoder>),
}

/// A network of ours.
#[derive(Clone, Debug)]
struct EngineModel {
    network: NetworkConfig,
    graph: Graph,
    weights: Vec<Tensor>,
}

/// Whether a file is one by its name, or by what follows the length of its header, however much of
/// it is left.
fn begins_as_safetensors(path: &Path) -> bool {
    let mut first = [0; 9];
    let read = open_regular(path).and_then(|mut file| file.read_exact(&mut first));
    let named = path.extension().is_some_and(|e| e == "safetensors");
    named || (read.is_ok() && first[8] == b'{')
}

impl Model {
    /// Whether a file holds a model alone, as [`Model::save`] writes it.
    pub fn is_alone(path: &Path) -> bool {
        model_file::open(path).is_some()
    }

    /// Reads a checkpoint, or of a run's folder its model; or weights of torchvision's or timm's
    /// ResNets (`.safetensors`, `.pth`), which are recognised by their tensors; or a file that
    /// [`Model::save`] wrote; or an ONNX file (`.onnx`) that makes vectors of pictures.
    pub fn load(path: impl AsRef<Path>) -> Result<Model, SearchError> {
        let path = path.as_ref();
        match path.is_dir() {
            true => Model::read(&embedding_path(path)),
            false if is_onnx(path) => Model::of_onnx(path),
            false => Model::read(path),
        }
    }

    /// What ONNX Runtime holds while it works is at most half of the memory that is free.
    fn of_onnx(path: &Path) -> Result<Model, SearchError> {
        let encoder = Encoder::load(path, host_memory().free / 2)?;
        let wanted = encoder.preprocessing();
        Ok(Model {
            path: path.into(),
            input: InputForm {
                version: InputForm::VERSION,
                size: wanted.squaring.size,
                mean: wanted.mean,
                std: wanted.std,
            },
            learnt_size: wanted.squaring.size,
            fingerprint: encoder.fingerprint().into(),
            checked: Checked::CannotBeChecked,
            runner: Runner::Onnx(Arc::new(encoder)),
        })
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
                        source: WeightsError::NotSafetensors { .. }, ..
                    } => match begins_as_safetensors(path) {
                        true => error.into(),
                        false => SearchError::refused(path, NO_MODEL),
                    },
                    other => other,
                });
            }
            read => read?,
        };
        let (network, input) = (checkpoint.config.network.clone(), checkpoint.input);
        let graph = checkpoint.graph(input.size)?;
        check_weights(&graph, &checkpoint.weights, path)?;
        Ok(Model::of(path, network, input, graph, checkpoint.weights))
    }

    /// From its parts, which fit each other and were checked.
    pub(crate) fn of(
        path: &Path,
        network: NetworkConfig,
        input: InputForm,
        graph: Graph,
        weights: Vec<Tensor>,
    ) -> Model {
        Model {
            path: path.into(),
            fingerprint: fingerprint(&network, &input, &weights),
            learnt_size: input.size,
            input,
            checked: Checked::Verified,
            runner: Runner::Engine(Box::new(EngineModel { network, graph, weights })),
        }
    }

    /// Weights: what `anchorhood export` wrote says all of the model itself. Another program's are
    /// seen as torchvision's models see pictures; judged is what its last layer would have been
    /// given.
    fn of_weights(path: &Path) -> Result<Model, SearchError> {
        let failed = |source| SearchError::Weights { path: path.into(), source };
        let weights = Weights::read(path).map_err(failed)?;
        if let Some(model) = description::of_exported(path, &weights) {
            return model;
        }
        let found = weights.recognise().map_err(failed)?;
        let (mean, std) = IMAGENET;
        let input =
            InputForm { version: InputForm::VERSION, size: found.form.usual_size(), mean, std };
        let whole = found.architecture.graph_of(found.form, input.size, found.width, 1)?;
        let graph = judged_graph(&whole, "avgpool")?;
        let tensors = tensors_for(&graph, &weights).map_err(failed)?;
        let network = NetworkConfig {
            architecture: found.architecture,
            stem: StemChoice::Auto,
            colours: ColoursChoice::Rgb,
            width: found.width,
            features: graph.shape(graph.output_node()).len(),
        };
        Ok(Model {
            checked: Checked::CannotBeChecked,
            ..Model::of(path, network, input, graph, tensors)
        })
    }

    /// Whether damage to its file would have been noticed.
    pub fn checked(&self) -> Checked {
        self.checked
    }

    /// The file it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn engine(&self) -> Result<&EngineModel, SearchError> {
        match &self.runner {
            Runner::Engine(model) => Ok(model),
            Runner::Onnx(_) => Err(SearchError::refused(&self.path, ONLY_VECTORS)),
        }
    }

    /// Which network; of an ONNX file nobody knows.
    pub fn network(&self) -> Result<&NetworkConfig, SearchError> {
        Ok(&self.engine()?.network)
    }

    /// What was found out about an ONNX file, and filled in; nothing of networks of ours.
    pub fn found_out(&self) -> Option<String> {
        match &self.runner {
            Runner::Engine(_) => None,
            Runner::Onnx(encoder) => Some(encoder.to_string()),
        }
    }

    /// What it is given of a picture.
    pub fn input(&self) -> &InputForm {
        &self.input
    }

    /// How a picture becomes the square that it is given.
    pub fn squaring(&self) -> Squaring {
        match &self.runner {
            Runner::Engine(_) => self.input.size.into(),
            Runner::Onnx(encoder) => encoder.preprocessing().squaring,
        }
    }

    /// Pixels a side of the pictures it learnt with, which may be smaller than those it is given.
    pub fn learnt_size(&self) -> usize {
        self.learnt_size
    }

    /// Its graph, for pictures of its size; an ONNX file's is out of reach.
    pub fn graph(&self) -> Result<&Graph, SearchError> {
        Ok(&self.engine()?.graph)
    }

    /// Its weights and running statistics, in the graph's order; an ONNX file's are out of reach.
    pub fn weights(&self) -> Result<&[Tensor], SearchError> {
        Ok(&self.engine()?.weights)
    }

    /// 32 hexadecimal digits of everything that decides what it makes of a picture. Two checkpoints
    /// of one fingerprint give the same vectors.
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
        let batch = batch.max(1);
        if let (Runner::Onnx(encoder), None) = (&self.runner, layer) {
            return Ok(Embedder::of_onnx(encoder.clone(), device, self.input, batch));
        }
        let graph = self.graph()?;
        let tap = layer.map(|name| graph.find(name)).transpose()?;
        let network = self.network_on(device, batch, tap.into_iter().collect())?;
        Ok(Embedder::new(network, self.input, tap))
    }

    /// Its network on a device, for up to `batch` pictures at a time, with the outputs of some
    /// layers kept.
    pub fn network_on(
        &self,
        device: &Device,
        batch: usize,
        keep: Vec<NodeId>,
    ) -> Result<Network, SearchError> {
        let options = NetworkOptions { keep, ..NetworkOptions::new(batch) };
        let model = self.engine()?;
        check_room(device, &model.graph, &options, 0)?;
        let mut network = device.network(&model.graph, &options)?;
        write_weights(&mut network, &model.weights, &self.path)?;
        Ok(network)
    }

    /// The vectors of many pictures, computed on a device.
    pub fn embed(&self, device: &Device, pictures: &Pictures) -> Result<Rows, SearchError> {
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
