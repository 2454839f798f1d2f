//! Rounds and epochs, schedule, checkpoints, resume, events.
//!
//! [`train`] takes a run through all its rounds: round 0 tells every picture from every other, each later round first
//! discovers neighbourhoods in the memory bank and then draws anchors and their neighbours together. What happens is told
//! as [`Event`]s. Everything random derives from the seed and the position in the run, so that a run stopped anywhere and
//! resumed ends in the same bits.
//!
//! Labels never reach training: a [`Trainer`] is made from a [`TrainingSet`], which has none. They live in a
//! [`Labelled`] examiner, which sees features and gives back figures to print.

mod atomic_file;
mod checkpoint;
pub mod config;
mod error;
mod events;
mod examiner;
mod feeding;
mod judge;
mod leftovers;
mod position;
mod progress;
mod run;
mod run_dir;
mod saves;
mod schedule;
mod supervised;
mod trainer;

pub use atomic_file::write as write_whole;
pub use checkpoint::{Checkpoint, CheckpointError, InputForm, SavedNeighbourhoods, Tensor};
pub use config::{
    AugmentationConfig, ConfigError, CurriculumChoice, DataConfig, DeviceChoice, Difference,
    DiscoveryConfig, EvaluationConfig, FeatureSource, MachineConfig, NetworkConfig,
    PrecisionChoice, Preset, RunConfig, TrainingConfig,
};
pub use error::TrainError;
pub use events::{
    Accuracy, ConsistencyFigure, Discovered, EpochEnded, Evaluated, Event, Progress, RunEnded,
    RunStarted, Subject,
};
pub use examiner::{Examiner, Labelled, Unlabelled};
pub use feeding::Lead;
pub use judge::{Judgement, judge};
pub use position::{Position, Standing};
pub use run::{Outcome, train};
pub use run_dir::{RunDir, checkpoint_path};
pub use supervised::{LabelledSet, supervised_config, train_supervised};
pub use trainer::{Trainer, TrainingSet, check_data};

/// The program's version, as written into checkpoints and events.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
