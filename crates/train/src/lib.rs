//! Rounds and epochs, schedule, checkpoints, resume, events.
//!
//! [`train`] takes a run of any [`Method`](crate::methods::Method) through all its rounds, and
//! alone owns the loop: the learning rate's scheduler, events, checkpoints, resuming, judging. What
//! happens is told as [`Event`]s. Everything random derives from the seed and the position in the
//! run, so that a run stopped anywhere and resumed ends in the same bits.
//!
//! Labels never reach training: a [`Trainer`] is made from a [`TrainingSet`], which has none. They
//! live in a [`Labelled`] examiner, which sees features and gives back figures to print. Only
//! [`build_method`] hands them on, to the supervised method alone.

#![forbid(unsafe_code)]

mod batch_source;
mod build;
mod checkpoint;
pub mod config;
pub mod discovery;
mod encoder;
mod error;
pub mod evaluation;
mod events;
mod examiner;
mod floors;
#[doc(hidden)]
pub mod fuzzing;
mod judge;
mod judge_layers;
pub mod methods;
mod metrics;
mod minutes;
mod position;
mod pretrained;
mod progress;
mod remembered;
mod resume;
mod room;
mod run;
mod run_dir;
mod saves;
mod schedule;
mod seen_pictures;
mod together;
mod trainer;
mod training_set;
mod verdict;
mod whitened;

pub use crate::evaluation::Accuracy;
pub use batch_source::image_batches;
pub use build::{build_method, embedding_graph, judged_graph};
pub use checkpoint::{
    Checkpoint, CheckpointError, Head, InputForm, Slot, Tensor, check_weights, fingerprint,
    write_weights,
};
pub use config::{
    AugmentationConfig, ColoursChoice, ConfigError, CropsChoice, CurriculumChoice, DataConfig,
    DeviceChoice, Difference, DiscoverChoice, DiscoveryConfig, EvaluationConfig, FeatureSource,
    Flag, GpuSet, Kind, LabelsChoice, LossRows, MachineConfig, MethodConfig, NetworkConfig,
    OptimiserChoice, PrecisionChoice, Preset, Range, RunConfig, SETTINGS, ScheduleChoice, Setting,
    StemChoice, TrainingConfig, ValidateOn, ViewStatisticsChoice,
};
pub use encoder::{Encoder, EncoderSource, IMAGENET, Normalisation};
pub use error::TrainError;
pub use events::{
    Discovered, EpochEnded, Evaluated, Event, LabelFreeEvaluated, PretextMeasured, PretextShare,
    Progress, RunEnded, RunStarted, StoppedEarly, Subject, TimeFitted,
};
pub use examiner::Labelled;
pub use judge::{Judgement, judge};
pub use judge_layers::{
    LayerFigures, LayerOptions, LayerProgress, LayerProtocol, judge_layers, labelled_for,
};
pub use methods::MethodSpec;
pub use minutes::{Costs, Measured, TimeBudget, found_by_first, measure};
pub use position::{Position, Standing};
pub use pretrained::Pretrained;
pub use room::{check_room, check_room_to_train};
pub use run::{Beginning, Outcome, train, train_by, train_with};
pub use run_dir::{
    RunDir, check_run_name, checkpoint_path, embedding_path, model_path, refitted_path,
    run_name_from,
};
pub use together::{check_together, fellow_readers};
pub use trainer::Trainer;
pub use training_set::{TrainingSet, check_data};
pub use verdict::Chosen;
pub use whitened::whitening_tensors;

/// The program's version, as written into checkpoints and events.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
