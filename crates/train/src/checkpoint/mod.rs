//! A run at one moment, in one file: weights, optimiser state, what the method keeps, and where it
//! goes on.
//!
//! Loading what saving wrote gives back the same bits. Loading anything else gives an error that
//! says what is wrong with the file; it never panics, whatever the bytes. `docs/reference/formats.md` has
//! them.

mod fingerprint;
mod format;
mod network_state;
mod save;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::discovery::Neighbourhoods;
use crate::methods::{StateDict, Values, memory_of, neighbourhoods_of};
use anchorhood_engine::{Communicator, Graph, Network};
use anchorhood_models::Form;
use anchorhood_storage::{Disk, FileProblem, FileSystem, OpenContainer};

use serde::{Deserialize, Serialize};

use crate::build::judged_graph;
use crate::{RunConfig, Standing, TrainingSet};

pub use fingerprint::fingerprint;
use network_state::write_all;
pub use network_state::{Slot, Tensor, check_weights, tensors_of, write_weights};

/// A network beside the one that embeds: a projector, a predictor, a momentum encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// What its tensors' names begin with.
    pub namespace: String,
    /// Weights and running statistics.
    pub weights: Vec<Tensor>,
    /// The optimiser's state.
    pub slots: Vec<Slot>,
}

/// The preprocessing, what the network is given of a picture: a square of RGB, `(value / 255 −
/// mean) / std` of each channel. Part of a model's [`fingerprint`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputForm {
    /// Which way of decoding, resizing and cutting: 1 is the shorter side scaled to `size`, the
    /// centre cut out. Whatever changes a pixel raises it.
    pub version: u32,
    /// Pixels a side.
    pub size: usize,
    /// Mean of each channel over the training pictures.
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
}

impl InputForm {
    /// The version of this program's preprocessing.
    pub const VERSION: u32 = 1;
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
    /// The method's name.
    pub method: String,
    /// The layer whose output is the feature that is judged and searched by.
    pub judged_layer: String,
    /// What the network is given of a picture.
    pub input: InputForm,
    /// Which rows of the memory are here: the number of the first among all pictures, and how many
    /// there are of all. A file has all; of several processes each has its own.
    pub rows: [u64; 2],
    /// Weights and running statistics of the network that embeds.
    pub weights: Vec<Tensor>,
    /// The optimiser's state for them.
    pub slots: Vec<Slot>,
    /// The method's other networks.
    pub heads: Vec<Head>,
    /// What the method keeps beside its networks.
    pub state: StateDict,
}

/// Why a checkpoint cannot be written, read or used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // of fields: a variant's message says what they are
pub enum CheckpointError {
    /// The system refused to write it.
    #[error(
        "{}: cannot write the checkpoint: {source}. The one before is kept",
        .path.display()
    )]
    Write { path: PathBuf, source: std::io::Error },
    /// The system refused to read it.
    #[error("{}: cannot read the checkpoint: {source}", .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The bytes are no checkpoint, or not a whole one.
    #[error(
        "{}: not a whole checkpoint: {reason}. Use another one of the run \
         (checkpoints/round-0.safetensors …)",
        .path.display()
    )]
    Damaged { path: PathBuf, reason: String },
    /// Its memory is of other pictures than it is to be judged on.
    #[error(
        "{}: the checkpoint remembers {remembered} pictures, and {data} has {pictures} to train on",
        .path.display()
    )]
    OtherMemory { path: PathBuf, remembered: usize, data: String, pictures: usize },
    /// A checkpoint of something else.
    #[error("{}: {reason}", .path.display())]
    Mismatch { path: PathBuf, reason: String },
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
}

impl CheckpointError {
    /// Whether the file is not what was once written, so that another of the run may serve in its
    /// place.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, CheckpointError::Damaged { .. })
    }
}

impl Checkpoint {
    /// Writes the file, whole or not at all. Nothing is copied for it.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        self.save_on(&Disk, path)
    }

    /// The same on any disk.
    pub fn save_on(&self, disk: &dyn FileSystem, path: &Path) -> Result<(), CheckpointError> {
        self.save_among(&Communicator::single(), disk, path)
    }

    /// Reads a file back, all of it compared with its checksums, and every number found finite.
    pub fn load(path: &Path) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::load_from(&Disk, path)
    }

    /// The same from any disk.
    pub fn load_from(disk: &dyn FileSystem, path: &Path) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::open(disk, path, None)
    }

    /// The same with what it has of some pictures alone: which of so many is asked. What is not
    /// read is not checked.
    pub(crate) fn load_rows(
        disk: &dyn FileSystem,
        path: &Path,
        wanted: &dyn Fn(usize) -> Range<usize>,
    ) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::open(disk, path, Some(wanted))
    }

    /// The neighbourhoods of a file, if it has any, and nothing else: what is not read is not
    /// checked, and costs no time.
    pub fn load_neighbourhoods(path: &Path) -> Result<Option<Neighbourhoods>, CheckpointError> {
        let file = open_file(&Disk, path)?;
        format::neighbourhoods(&file).map_err(damaged(path))
    }

    fn open(
        disk: &dyn FileSystem,
        path: &Path,
        wanted: Option<&dyn Fn(usize) -> Range<usize>>,
    ) -> Result<Checkpoint, CheckpointError> {
        let file = open_file(disk, path)?;
        let checkpoint = format::decode(&file, wanted).map_err(damaged(path))?;
        match checkpoint.not_finite() {
            // No run saves such a checkpoint.
            Some((what, value)) => {
                let reason = format!("{what} holds {value}, which is no number to go on with");
                Err(damaged(path)(reason))
            }
            None => Ok(checkpoint),
        }
    }

    /// The graph of its network for pictures of a size, up to the layer that is judged, with
    /// features of unit length.
    pub fn graph(&self, size: usize) -> Result<Graph, anchorhood_engine::Error> {
        self.graph_of(self.config.network.form(size), size)
    }

    /// The same in a form of one's choice.
    pub fn graph_of(&self, form: Form, size: usize) -> Result<Graph, anchorhood_engine::Error> {
        let whole = self.config.network.graph_of(form, size)?;
        judged_graph(&whole, &self.judged_layer)
    }

    /// What network it is of, in words.
    pub fn network(&self) -> String {
        let n = &self.config.network;
        format!("{} width {}, {} features", n.architecture, n.width, n.features)
    }

    /// What in it is no finite number, and what it is instead.
    pub(crate) fn not_finite(&self) -> Option<(String, f32)> {
        let own = [("", &self.weights, &self.slots)].into_iter();
        let heads = self.heads.iter().map(|h| (h.namespace.as_str(), &h.weights, &h.slots));
        let networks = own.chain(heads).flat_map(|(namespace, weights, slots)| {
            let dot = if namespace.is_empty() { "" } else { "." };
            let name = move |t: &Tensor| format!("{namespace}{dot}{}", t.name);
            let slots = slots.iter().flat_map(move |slot| {
                let name = move |t: &Tensor| format!("the {} of {}", slot.name, name(t));
                slot.tensors.iter().map(move |t| (name(t), &t.values))
            });
            weights.iter().map(move |t| (name(t), &t.values)).chain(slots)
        });
        let state = self.state.tensors.iter().filter_map(|t| match &t.values {
            Values::F32(values) => Some((format!("the {}", t.name.replace('.', " ")), values)),
            Values::U32(_) | Values::U8(_) => None,
        });
        let wrong = |values: &[f32]| values.iter().copied().find(|v| !v.is_finite());
        networks.chain(state).find_map(|(name, values)| Some((name, wrong(values)?)))
    }

    /// How many pictures the run was begun on, as far as it is known.
    pub fn begun_on(&self) -> Option<usize> {
        match self.pictures() {
            0 => self.standing.pictures,
            _ => Some(self.rows[1] as usize),
        }
    }

    /// Refuses pictures that are not those the run was begun on: memory and order belong to them by
    /// their number, so others in their places would go unnoticed. They are known by how many there
    /// are, and by their mean and deviation.
    pub fn check_pictures(&self, set: &TrainingSet, path: &Path) -> Result<(), CheckpointError> {
        let wrong = |reason| CheckpointError::Mismatch { path: path.into(), reason };
        let (name, n) = (&set.name, set.pictures.len());
        if let Some(pictures) = self.begun_on().filter(|pictures| *pictures != n) {
            return Err(wrong(format!(
                "the checkpoint remembers {pictures} pictures, and {name} has {n}; give the data \
                 it was trained on"
            )));
        }
        let near = |a: [f32; 3], b: [f32; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6);
        if self.config.data.normalisation().is_some() {
            return Ok(()); // not the pictures' own
        }
        if !(near(self.input.mean, set.mean) && near(self.input.std, set.std)) {
            return Err(wrong(format!(
                "the pictures of {name} are as many as the checkpoint remembers, and not the \
                 same; give those it was trained on"
            )));
        }
        Ok(())
    }

    /// Forgets what it has of all pictures but some, by their numbers.
    pub(crate) fn keep_pictures(&mut self, wanted: Range<usize>) {
        let first = self.rows[0] as usize;
        let place = |number: usize| number.saturating_sub(first);
        let places = place(wanted.start)..place(wanted.end);
        self.state.keep_pictures(&places);
        self.rows[0] = wanted.start as u64;
    }

    /// The memory bank: rows of pictures, and the length of each; none where the method remembers
    /// no pictures.
    pub fn memory(&self) -> Option<(&[f32], usize)> {
        memory_of(&self.state).filter(|(rows, _)| !rows.is_empty())
    }

    /// Pictures whose rows of the memory are here; 0 where there is none.
    pub fn pictures(&self) -> usize {
        self.memory().map_or(0, |(rows, dim)| rows.len() / dim.max(1))
    }

    /// Neighbourhoods, from round 1 on.
    pub fn neighbourhoods(&self) -> Option<Neighbourhoods> {
        // What was loaded was checked, and what is saved was discovered.
        let rows = self.rows.map(|n| n as usize);
        neighbourhoods_of(&self.state, rows).ok().flatten()
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

    /// Copies weights and, if asked, the optimiser's state into a network; `path` names the file in
    /// errors.
    pub fn restore(
        &self,
        network: &mut Network,
        optimiser: bool,
        path: &Path,
    ) -> Result<(), CheckpointError> {
        let slots = optimiser.then_some(&self.slots[..]);
        write_all(network, &self.weights, slots, path)
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
        write_all(network, &head.weights, Some(&head.slots), path)
    }
}

fn damaged(path: &Path) -> impl Fn(String) -> CheckpointError {
    move |reason| CheckpointError::Damaged { path: path.into(), reason }
}

fn open_file(disk: &dyn FileSystem, path: &Path) -> Result<OpenContainer, CheckpointError> {
    OpenContainer::open(path, disk).map_err(|error| match error.problem {
        FileProblem::Io(source) => CheckpointError::Read { path: error.path, source },
        // Whole, and of another version.
        other @ FileProblem::Version(_) => {
            CheckpointError::Mismatch { path: path.into(), reason: other.to_string() }
        }
        other => damaged(path)(other.to_string()),
    })
}
