//! A run at one moment, in one file: weights, momentum, what the method keeps, and where it goes on.
//!
//! Loading what saving wrote gives back the same bits. Loading anything else gives an error that says what is wrong with
//! the file; it never panics, whatever the bytes.

mod format;

use std::path::{Path, PathBuf};

use anchorhood_discover::Neighbourhoods;
use anchorhood_engine::{Network, Role, Tensors};
use anchorhood_files::AtomicFile;
use anchorhood_methods::{StateDict, Values, memory_of, neighbourhoods_of};

use serde::{Deserialize, Serialize};

use crate::{RunConfig, Standing, TrainingSet};

/// A named tensor in PyTorch's layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// As torchvision calls it.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f32>,
}

/// A network beside the one that embeds: a projector, a predictor, a momentum encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// What its tensors' names begin with.
    pub namespace: String,
    /// Weights and running statistics.
    pub weights: Vec<Tensor>,
    /// The optimiser's momentum, a tensor for each weight.
    pub momentum: Vec<Tensor>,
}

/// What the network is given of a picture: a square of RGB, `(value / 255 − mean) / std` of each channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputForm {
    /// Pixels a side.
    pub size: usize,
    /// Mean of each channel over the training pictures.
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
}

impl InputForm {
    /// Whether a picture can have it: some pixels, means and positive deviations that are numbers.
    fn is_possible(&self) -> bool {
        let numbers = self.mean.iter().chain(&self.std).all(|v| v.is_finite());
        (1..=4096).contains(&self.size) && numbers && self.std.iter().all(|v| *v > 0.0)
    }
}

/// A run at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The run's configuration.
    pub config: RunConfig,
    /// Where the run goes on, and its sums so far.
    pub standing: Standing,
    /// The version of the program that wrote it.
    pub program: String,
    /// What the network is given of a picture; checkpoints written before this was kept have none.
    pub input: Option<InputForm>,
    /// Weights and running statistics.
    pub weights: Vec<Tensor>,
    /// The optimiser's momentum, a tensor for each weight.
    pub momentum: Vec<Tensor>,
    /// The method's other networks.
    pub heads: Vec<Head>,
    /// What the method keeps beside its networks.
    pub state: StateDict,
}

/// Why a checkpoint cannot be written, read or used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused to write it.
    #[error(
        "{}: cannot write the checkpoint: {source}. The one before is kept; make room there and go on with --resume",
        .path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refused to read it.
    #[error("{}: cannot read the checkpoint: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are no checkpoint, or not a whole one.
    #[error(
        "{}: not a whole checkpoint: {reason}. Use another one of the run (checkpoints/round-0.safetensors …)",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was met.
        reason: String,
    },
    /// A checkpoint of something else.
    #[error("{}: {reason}", .path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What it holds and what was wanted.
        reason: String,
    },
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
}

impl Checkpoint {
    /// Writes the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        AtomicFile::write(path, &format::encode(self)).map_err(|source| CheckpointError::Write {
            path: path.into(),
            source,
        })
    }

    /// Reads a file back.
    pub fn load(path: &Path) -> Result<Checkpoint, CheckpointError> {
        let bytes = std::fs::read(path).map_err(|source| CheckpointError::Read {
            path: path.into(),
            source,
        })?;
        format::decode(&bytes).map_err(|reason| CheckpointError::Damaged {
            path: path.into(),
            reason,
        })
    }

    /// What network it is of, in words.
    pub fn network(&self) -> String {
        let n = &self.config.network;
        format!(
            "{} width {}, {} features",
            n.architecture, n.width, n.features
        )
    }

    /// What in it is no finite number, and what it is instead.
    pub(crate) fn not_finite(&self) -> Option<(String, f32)> {
        let wrong = |values: &[f32]| values.iter().copied().find(|v| !v.is_finite());
        let weights = self.weights.iter().map(|t| (t.name.clone(), &t.values));
        let momentum = self.momentum.iter();
        let momentum = momentum.map(|t| (format!("the momentum of {}", t.name), &t.values));
        let heads = self.heads.iter().flat_map(|h| {
            let name = |t: &Tensor| format!("{}.{}", h.namespace, t.name);
            let tensors = h.weights.iter().chain(&h.momentum);
            tensors.map(move |t| (name(t), &t.values))
        });
        let state = self.state.tensors.iter().filter_map(|t| match &t.values {
            Values::F32(values) => Some((format!("the {}", t.name), values)),
            Values::U32(_) | Values::U8(_) => None,
        });
        let mut all = weights.chain(momentum).chain(heads).chain(state);
        all.find_map(|(name, values)| Some((name, wrong(values)?)))
    }

    /// Refuses pictures that are not those the run was begun on: memory and order belong to them by their number, so others
    /// in their places would go unnoticed. They are known by how many there are, and by their mean and deviation.
    pub fn check_pictures(&self, set: &TrainingSet, path: &Path) -> Result<(), CheckpointError> {
        let wrong = |reason| CheckpointError::Mismatch {
            path: path.into(),
            reason,
        };
        let (name, n) = (&set.name, set.pictures.len());
        let begun_on = match self.pictures() {
            0 => self.standing.pictures,
            pictures => Some(pictures),
        };
        if let Some(pictures) = begun_on.filter(|pictures| *pictures != n) {
            return Err(wrong(format!(
                "the checkpoint remembers {pictures} pictures, and {name} has {n}; give the data it was trained on"
            )));
        }
        let near = |a: [f32; 3], b: [f32; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6);
        let same = |i: &InputForm| near(i.mean, set.mean) && near(i.std, set.std);
        if !self.input.as_ref().is_none_or(same) {
            return Err(wrong(format!(
                "the pictures of {name} are as many as the checkpoint remembers, and not the same; give those it was trained on"
            )));
        }
        Ok(())
    }

    /// The memory bank: rows of pictures, and the length of each; none where the method remembers no pictures.
    pub fn memory(&self) -> Option<(&[f32], usize)> {
        memory_of(&self.state).filter(|(rows, _)| !rows.is_empty())
    }

    /// Pictures in the memory; 0 where there is none.
    pub fn pictures(&self) -> usize {
        self.memory()
            .map_or(0, |(rows, dim)| rows.len() / dim.max(1))
    }

    /// Neighbourhoods, from round 1 on.
    pub fn neighbourhoods(&self) -> Option<Neighbourhoods> {
        // What was loaded was checked, and what is saved was discovered.
        neighbourhoods_of(&self.state).ok().flatten()
    }

    /// The same for whoever needs the memory of these pictures: supervised runs have none.
    pub fn check_memory(&self, set: &TrainingSet, path: &Path) -> Result<(), CheckpointError> {
        if self.pictures() == 0 {
            return Err(CheckpointError::Mismatch {
                path: path.into(),
                reason: "it has no memory, so no picture in it has neighbours".into(),
            });
        }
        self.check_pictures(set, path)
    }

    /// Copies weights and, if asked, momentum into a network; `path` names the file in errors.
    pub fn restore(
        &self,
        network: &mut Network,
        momentum: bool,
        path: &Path,
    ) -> Result<(), CheckpointError> {
        let momentum = momentum.then_some(&self.momentum[..]);
        write_all(network, &self.weights, momentum, path)
    }

    /// The same for one of the method's other networks.
    pub fn restore_head(
        &self,
        namespace: &str,
        network: &mut Network,
        path: &Path,
    ) -> Result<(), CheckpointError> {
        let head = self.heads.iter().find(|h| h.namespace == namespace);
        let head = head.ok_or_else(|| CheckpointError::Mismatch {
            path: path.into(),
            reason: format!("it has no {namespace}"),
        })?;
        write_all(network, &head.weights, Some(&head.momentum), path)
    }
}

/// All of a network's weights and momentum, for a checkpoint.
pub fn tensors_of(
    network: &Network,
) -> Result<(Vec<Tensor>, Vec<Tensor>), anchorhood_engine::Error> {
    let (mut weights, mut momentum) = (vec![], vec![]);
    for (i, p) in network.graph().parameters().iter().enumerate() {
        let tensor = |values| Tensor {
            name: p.name.clone(),
            shape: p.shape.clone(),
            values,
        };
        weights.push(tensor(network.read(Tensors::Values, i)?));
        if p.role == Role::Weight {
            momentum.push(tensor(network.read(Tensors::Slot(0), i)?));
        }
    }
    Ok((weights, momentum))
}

/// Gives a network a checkpoint's weights and running statistics, whose names and shapes must be its own; `path` names the
/// file in errors.
pub fn write_weights(
    network: &mut Network,
    weights: &[Tensor],
    path: &Path,
) -> Result<(), CheckpointError> {
    write_all(network, weights, None, path)
}

fn write_all(
    network: &mut Network,
    weights: &[Tensor],
    momentum: Option<&[Tensor]>,
    path: &Path,
) -> Result<(), CheckpointError> {
    let parameters = network.graph().parameters().to_vec();
    for (i, p) in parameters.iter().enumerate() {
        let tensor = matching(weights.get(i), &p.name, &p.shape, path)?;
        network.write(Tensors::Values, i, &tensor.values)?;
    }
    let Some(momentum) = momentum else {
        return Ok(());
    };
    let trained = |i: &usize| parameters[*i].role == Role::Weight;
    for (slot, i) in (0..parameters.len()).filter(trained).enumerate() {
        let p = &parameters[i];
        let tensor = matching(momentum.get(slot), &p.name, &p.shape, path)?;
        network.write(Tensors::Slot(0), i, &tensor.values)?;
    }
    Ok(())
}

fn matching<'a>(
    tensor: Option<&'a Tensor>,
    name: &str,
    shape: &[usize],
    path: &Path,
) -> Result<&'a Tensor, CheckpointError> {
    let wrong = |reason| CheckpointError::Mismatch {
        path: path.into(),
        reason,
    };
    let tensor = tensor.ok_or_else(|| wrong(format!("it has no {name}")))?;
    if tensor.name != name || tensor.shape != shape {
        return Err(wrong(format!(
            "it holds {} {:?} where this network has {name} {shape:?}",
            tensor.name, tensor.shape
        )));
    }
    Ok(tensor)
}
