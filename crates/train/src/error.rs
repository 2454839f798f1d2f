//! Why a run cannot begin or go on. Each message names the thing and the reason; what to try is for
//! a program to say, from the data that an error carries.

use std::path::{Path, PathBuf};

use anchorhood_data::DataError;

use crate::config::{ConfigError, Difference, MethodChoice};
use crate::{CheckpointError, Position};

/// An error of training.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A setting that cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The pictures cannot be had.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Too few pictures to tell apart.
    #[error("{data}: {pictures} picture{} to train on; telling pictures apart takes at least 2", if *.pictures == 1 { "" } else { "s" })]
    TooFewPictures {
        /// The data set.
        data: String,
        /// How many there are.
        pictures: usize,
    },
    /// More neighbours than there are other pictures.
    #[error(
        "discovery.neighbours: {k} neighbours are asked of each picture, but there are only {} others among {pictures} pictures",
        .pictures - 1
    )]
    TooManyNeighbours {
        /// What was asked for.
        k: usize,
        /// How many pictures there are.
        pictures: usize,
    },
    /// More neighbours in all than are counted.
    #[error(
        "discovery.neighbours: {k} neighbours of each of {pictures} pictures are 2³² or more in all, which cannot be counted"
    )]
    NeighboursBeyondCount {
        /// What was asked for.
        k: usize,
        /// How many pictures there are.
        pictures: usize,
        /// What could be asked for.
        most: usize,
    },
    /// A batch that cannot be shared out.
    #[error(
        "training.batch: a batch of {batch} pictures cannot be shared out evenly among {ranks} processes"
    )]
    UnevenBatch {
        /// Pictures in a batch.
        batch: usize,
        /// How many processes there are.
        ranks: usize,
    },
    /// A method for one process.
    #[error("{method} trains as one process, and there are {ranks}: {why}")]
    NotTogether {
        /// Which.
        method: MethodChoice,
        /// How many processes there are.
        ranks: usize,
        /// Why, a clause.
        why: &'static str,
    },
    /// Processes that were not given the same.
    #[error(
        "{what}: {first} on rank 0, {other} on rank {rank}; processes that train together must have the same"
    )]
    Disagree {
        /// What.
        what: String,
        /// What rank 0 has.
        first: String,
        /// The first that has something else.
        rank: usize,
        /// What it has.
        other: String,
    },
    /// Processes that found different checkpoints.
    #[error(
        "rank 0 would go on from {first} and rank {rank} from {other}: the run's folder must be one that all processes see"
    )]
    OtherPosition {
        /// The first that would go on from elsewhere.
        rank: usize,
        /// From where.
        other: Position,
        /// Where rank 0 would.
        first: Position,
    },
    /// Nothing to judge by.
    #[error(
        "{data}: no labelled pictures to judge features on; put pictures into a sub-folder per class"
    )]
    NoLabels {
        /// The data set.
        data: String,
    },
    /// Pictures that are not square.
    #[error("{data}: pictures of {height}×{width}; networks here take square ones")]
    NotSquare {
        /// The data set.
        data: String,
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// A new run where one is already.
    #[error("{}: a run of this name exists already", .path.display())]
    RunExists {
        /// Its folder.
        path: PathBuf,
        /// Its name.
        name: String,
    },
    /// A name that no run can have.
    #[error("`{name}` cannot name a run, whose name is that of a plain folder")]
    RunName {
        /// What was asked for.
        name: String,
    },
    /// No run where one was named.
    #[error("{}: no run here (no config.toml); give a run's name or its folder", .path.display())]
    NoSuchRun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process trains this run.
    #[error("{}: another process is training this run", .path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A run resumed with other settings.
    #[error(
        "{}: cannot be resumed with other settings: {}; leave them out, or start a new run",
        .path.display(),
        .differences.iter().map(Difference::to_string).collect::<Vec<_>>().join(", ")
    )]
    OtherSettings {
        /// The run.
        path: PathBuf,
        /// What differs: the run's and what was asked for.
        differences: Vec<Difference>,
    },
    /// A run of a method of somebody's own, without it.
    #[error(
        "method.own: the run is by a method of a program's own, `{own}`, {}; go on with it from the program that has it \
         (train_method), or start a new run",
        .brought.as_ref().map_or("which is not here".into(), |other| format!("and `{other}` was brought"))
    )]
    OwnMethod {
        /// The run's.
        own: String,
        /// What was brought instead, if anything was.
        brought: Option<String>,
    },
    /// A run resumed on other pictures.
    #[error(
        "{}: {others} of {pictures} pictures are not those that the run was begun on in these places: {}{}; \
         put them back, or start a new run",
        .path.display(),
        .first.join(", "),
        if .others > &.first.len() { " …" } else { "" }
    )]
    OtherPictures {
        /// The run.
        path: PathBuf,
        /// How many differ.
        others: usize,
        /// Of so many.
        pictures: usize,
        /// The first of them.
        first: Vec<String>,
    },
    /// Pictures without anything on them.
    #[error(
        "{data}: every pixel of its {pictures} pictures has the same colour (red {}, green {}, blue {}), so there is nothing \
         to learn from them; look at the files",
        .colour[0], .colour[1], .colour[2]
    )]
    OneColour {
        /// The data set.
        data: String,
        /// How many.
        pictures: usize,
        /// The colour.
        colour: [u8; 3],
    },
    /// Less time than one epoch in each round takes.
    #[error(
        "{} is too little: one epoch in each of {} rounds, with what belongs to it, takes {} on this device",
        time(*.seconds), .rounds + 1, time(*.needed)
    )]
    TooLittleTime {
        /// Rounds after round 0.
        rounds: usize,
        /// The time there was.
        seconds: f64,
        /// The time that would do.
        needed: f64,
    },
    /// The loss, or a weight, is no number any more.
    #[error(
        "{what} became {value} at {position}, so training stopped; {}",
        .checkpoint.as_ref().map_or("nothing was saved before".into(), |c| format!("the last good checkpoint is kept ({})", c.display()))
    )]
    Diverged {
        /// The loss, or which weight.
        what: String,
        /// What it became.
        value: f64,
        /// Where.
        position: Position,
        /// The learning rate there.
        rate: f64,
        /// The temperature, where the method has one.
        temperature: Option<f64>,
        /// The last good checkpoint, if there is one yet.
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
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The device failed in the midst of a run.
    #[error("{source}; the run is saved as of {position}")]
    DeviceFailed {
        /// What the device said.
        source: anchorhood_engine::Error,
        /// Where the last checkpoint is.
        position: Position,
    },
    /// The device refused.
    #[error(transparent)]
    Engine(#[from] anchorhood_engine::Error),
    /// A setting that the model which a run begins from has decided otherwise.
    #[error("{setting}: {asked} is asked for, and {model}, which the run begins from, has {own}")]
    OtherThanModel {
        /// The model.
        model: String,
        /// The setting's name in config.toml.
        setting: &'static str,
        /// What the model has.
        own: String,
        /// What was asked for.
        asked: String,
    },
    /// The model that a run begins from is not at hand, and it has no checkpoint to go on from.
    #[error("the run begins from {model}, which was not brought")]
    NoModel {
        /// The model.
        model: String,
    },
    /// The model has no tensor of this kind, though it says it is of such a network.
    #[error("{model}: it has no {tensor} {shape:?}, so no such run can begin from it")]
    LacksTensor {
        /// The model.
        model: String,
        /// The tensor.
        tensor: String,
        /// The dimensions it should have.
        shape: Vec<usize>,
    },
    /// Another program's weights are not this network's.
    #[error("{}: {source}", .path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: anchorhood_models::WeightsError,
    },
}

/// Seconds, or minutes where there are many.
fn time(seconds: f64) -> String {
    match seconds < 120.0 {
        true => format!("{seconds:.1} s"),
        false => format!("{:.1} minutes", seconds / 60.0),
    }
}

impl TrainError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        TrainError::Io { path: path.into(), source }
    }

    /// Whether the user asked for something that cannot be, rather than something having failed.
    pub fn is_usage(&self) -> bool {
        match self {
            TrainError::Config(_)
            | TrainError::TooFewPictures { .. }
            | TrainError::TooManyNeighbours { .. }
            | TrainError::NeighboursBeyondCount { .. }
            | TrainError::NoLabels { .. }
            | TrainError::UnevenBatch { .. }
            | TrainError::NotTogether { .. }
            | TrainError::Disagree { .. }
            | TrainError::OtherPosition { .. }
            | TrainError::NotSquare { .. }
            | TrainError::RunExists { .. }
            | TrainError::RunName { .. }
            | TrainError::NoSuchRun { .. }
            | TrainError::OtherSettings { .. }
            | TrainError::OwnMethod { .. }
            | TrainError::OtherPictures { .. }
            | TrainError::OneColour { .. }
            | TrainError::TooLittleTime { .. }
            | TrainError::OtherThanModel { .. }
            | TrainError::NoModel { .. }
            | TrainError::LacksTensor { .. }
            | TrainError::Weights { .. } => true,
            TrainError::Data(e) => e.is_usage(),
            _ => false,
        }
    }
}
