//! Why a run cannot begin or go on. Each message names the thing and the reason; what to try is for
//! a program to say, from the data that an error carries.

use std::path::{Path, PathBuf};

use anchorhood_data::DataError;

use crate::config::{ConfigError, Difference};
use crate::methods::{METHODS, MethodSpec};
use crate::{CheckpointError, Position};

/// An error of training.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // of fields: a variant's message says what they are
pub enum TrainError {
    /// A setting that cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The pictures cannot be had.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Too few pictures to tell apart.
    #[error(
        "{data}: {pictures} picture{} to train on; telling pictures apart takes at least 2",
        if *.pictures == 1 { "" } else { "s" }
    )]
    TooFewPictures { data: String, pictures: usize },
    /// More neighbours than there are other pictures.
    #[error(
        "discovery.neighbours: {k} neighbours are asked of each picture, but there are only {} \
         others among {pictures} pictures",
        .pictures - 1
    )]
    TooManyNeighbours { k: usize, pictures: usize },
    /// More neighbours in all than are counted; `most` could be asked for.
    #[error(
        "discovery.neighbours: {k} neighbours of each of {pictures} pictures are 2³² or more in \
         all, which cannot be counted"
    )]
    NeighboursBeyondCount { k: usize, pictures: usize, most: usize },
    /// A batch that cannot be shared out.
    #[error(
        "training.batch: a batch of {batch} pictures cannot be shared out evenly among {ranks} \
         processes"
    )]
    UnevenBatch { batch: usize, ranks: usize },
    /// A method for one process.
    #[error("{method} trains as one process, and there are {ranks}: {why}")]
    NotTogether { method: &'static MethodSpec, ranks: usize, why: &'static str },
    /// Processes that were not given the same; `rank` is the first that has something else than
    /// rank 0.
    #[error(
        "{what}: {first} on rank 0, {other} on rank {rank}; processes that train together must \
         have the same"
    )]
    Disagree { what: String, first: String, rank: usize, other: String },
    /// Processes that found different checkpoints.
    #[error(
        "rank 0 would go on from {first} and rank {rank} from {other}: the run's folder must be \
         one that all processes see"
    )]
    OtherPosition { rank: usize, other: Position, first: Position },
    /// Nothing to judge by.
    #[error(
        "{data}: no labelled pictures to judge features on; put pictures into a sub-folder per \
         class"
    )]
    NoLabels { data: String },
    /// Pictures that are not square.
    #[error("{data}: pictures of {height}×{width}; networks here take square ones")]
    NotSquare { data: String, height: usize, width: usize },
    /// A new run where one is already.
    #[error("{}: a run of this name exists already", .path.display())]
    RunExists { path: PathBuf, name: String },
    /// A name that no run can have.
    #[error("`{name}` cannot name a run, whose name is that of a plain folder")]
    RunName { name: String },
    /// No run where one was named.
    #[error("{}: no run here (no config.toml); give a run's name or its folder", .path.display())]
    NoSuchRun { path: PathBuf },
    /// Another process trains this run.
    #[error("{}: another process is training this run", .path.display())]
    Busy { path: PathBuf },
    /// A run resumed with other settings.
    #[error(
        "{}: cannot be resumed with other settings: {}; leave them out, or start a new run",
        .path.display(),
        .differences.iter().map(Difference::to_string).collect::<Vec<_>>().join(", ")
    )]
    OtherSettings { path: PathBuf, differences: Vec<Difference> },
    /// A method that a file names.
    #[error(
        "method.name: this program has no method called `{method}`, only {}; go on with the run \
         from a program that adds it (METHODS.add), or give one of these",
        METHODS.names()
    )]
    UnknownMethod { method: &'static MethodSpec },
    /// A run resumed on other pictures.
    #[error(
        "{}: {others} of {pictures} pictures are not those that the run was begun on in these \
         places: {}{}; \
         put them back, or start a new run",
        .path.display(),
        .first.join(", "),
        if .others > &.first.len() { " …" } else { "" }
    )]
    OtherPictures { path: PathBuf, others: usize, pictures: usize, first: Vec<String> },
    /// Pictures without anything on them.
    #[error(
        "{data}: every pixel of its {pictures} pictures has the same colour (red {}, green {}, \
         blue {}), so there is nothing \
         to learn from them; look at the files",
        .colour[0], .colour[1], .colour[2]
    )]
    OneColour { data: String, pictures: usize, colour: [u8; 3] },
    /// Less time than one epoch in each round takes; as many seconds as `needed` would do.
    #[error(
        "{} is too little: one epoch in each of {} rounds, with what belongs to it, takes {} on \
         this device",
        time(*.seconds), .rounds + 1, time(*.needed)
    )]
    TooLittleTime { rounds: usize, seconds: f64, needed: f64 },
    /// The loss, or a weight, is no number any more, at this learning rate and, where the method
    /// has one, temperature; the checkpoint is the last good one.
    #[error(
        "{what} became {value} at {position}, so training stopped; {}",
        .checkpoint.as_ref().map_or(
            "nothing was saved before".into(),
            |c| format!("the last good checkpoint is kept ({})", c.display())
        )
    )]
    Diverged {
        what: String,
        value: f64,
        position: Position,
        rate: f64,
        temperature: Option<f64>,
        checkpoint: Option<PathBuf>,
    },
    /// A checkpoint cannot be written, read or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A loader thread died.
    #[error("the threads that prepare batches ended unexpectedly")]
    LoaderEnded,
    /// The system refused.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The device failed in the midst of a run, whose last checkpoint is at `position`.
    #[error("{source}; the run is saved as of {position}")]
    DeviceFailed { source: anchorhood_engine::Error, position: Position },
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
    /// A setting that the model which a run begins from has decided otherwise.
    #[error("{setting}: {asked} is asked for, and {model}, which the run begins from, has {own}")]
    OtherThanModel { model: String, setting: &'static str, own: String, asked: String },
    /// The model that a run begins from is not at hand, and it has no checkpoint to go on from.
    #[error("the run begins from {model}, which was not brought")]
    NoModel { model: String },
    /// The model has no tensor of this kind, though it says it is of such a network.
    #[error("{model}: it has no {tensor} {shape:?}, so no such run can begin from it")]
    LacksTensor { model: String, tensor: String, shape: Vec<usize> },
    /// Another program's weights are not this network's.
    #[error("{}: {source}", .path.display())]
    Weights { path: PathBuf, source: anchorhood_models::WeightsError },
}

/// Seconds, or minutes where there are many.
fn time(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{:.1} minutes", seconds / 60.0)
    }
}

impl TrainError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        TrainError::Io { path: path.into(), source }
    }

    /// Whether the user asked for something that cannot be, rather than something having failed.
    pub fn is_usage(&self) -> bool {
        match self {
            TrainError::Data(e) => e.is_usage(),
            TrainError::Busy { .. }
            | TrainError::Diverged { .. }
            | TrainError::Checkpoint(_)
            | TrainError::LoaderEnded
            | TrainError::Io { .. }
            | TrainError::DeviceFailed { .. }
            | TrainError::Engine(_) => false,
            _ => true,
        }
    }
}
