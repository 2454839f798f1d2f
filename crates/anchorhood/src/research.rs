//! What methods and data sets of one's own are made of: graphs and their layers, streams and the
//! losses on them, a method's parts, a data set's reader, and the protocols that features are
//! evaluated by.
//!
//! A method is a [`MethodSpec`](crate::MethodSpec) that [`METHODS`](crate::METHODS) is given, a
//! data set a [`DatasetSpec`] that [`DATASETS`](crate::DATASETS) is given; the command line has
//! both from then on. `examples/vicreg` does so; `examples/and.rs` writes the paper's method
//! without any of the training loop.

pub use crate::device::{gpus_of, machine_of};
pub use crate::evaluate::{paper_settings, vote};
pub use crate::find::model_file;
pub use crate::run_options::{Configure, Settings};
pub use anchorhood_data::{
    Archive, Augmentation, CheckReport, DataError, DataLoader, DatasetSpec, EpochOrder, Problem,
    Read, SplitCount, Squaring, normalise,
};
pub use anchorhood_engine::{
    Activation, Batch, Buffer, Communicator, ConvSpec, DeviceLoader, DevicePositives, Epoch, Graph,
    KernelSource, LoadBatches, Loss, Network, NetworkOptions, NodeId, Norm, Op, Optimiser,
    Parameter, Positives, Precision, Result, Role, Scan, Shape, SoftmaxLoss, Stream, TakeBatch,
    Window,
};
pub use anchorhood_models::{BACKBONES, Backbone, Form, RESNET18, Weights};
pub use anchorhood_storage::random::Draws;
pub use anchorhood_storage::random::Stream as DrawsFor;
pub use anchorhood_train::discovery::{DiscoverBy, MemoryBank, Neighbourhoods};
pub use anchorhood_train::evaluation::{LinearOptions, Rows, Spread};
pub use anchorhood_train::methods::{
    Chain, Embeds, Head, Method, MethodKind, MlpEnd, SIMCLR, Setup, ViewSettings,
};
pub use anchorhood_train::{
    Checkpoint, Encoder, EncoderSource, EvaluationConfig, FeatureSource, Labelled, LayerFigures,
    LayerOptions, LayerProgress, LayerProtocol, MethodConfig, NetworkConfig, Normalisation,
    Position, RunDir, RunEnded, TrainError, TrainingSet, ValidateOn, image_batches, judge,
    judge_layers, labelled_for,
};
