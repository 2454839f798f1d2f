//! What does a training step do?
//!
//! A [`Method`] is one file: its [`MethodSpec`], its networks, its one step, what happens before a
//! round and an epoch, what it keeps beside its networks. It knows nothing of data loaders,
//! checkpoints, schedules or devices: the step is written once, and the
//! [`Stream`](anchorhood_engine::Stream) it is given runs it at once or as a recorded CUDA graph.
//!
//! - [`And`]: Anchor Neighbourhood Discovery; [`INSTANCE`]: instance discrimination, the same
//!   without discovery.
//! - [`Anchorhood`]: the same memory and neighbourhoods with several views.
//! - [`SimClr`], [`SimSiam`] (with more than two views FastSiam), [`Byol`], [`NnClr`]: methods that
//!   compare views, by heads on top of the encoder ([`Chain`]).
//! - [`DeepCluster`], [`Nat`], [`Counting`], [`SplitBrain`] ([`SPLIT_BRAIN`], [`COLOUR`]),
//!   [`Jigsaw`] ([`JIGSAW`], [`CONTEXT`]), [`BiGan`]: the paper's rivals, each with its pretext
//!   task ([`PretextFigure`]).
//! - [`Supervised`]: cross-entropy on labels, the ceiling that features without labels are measured
//!   against.

use anchorhood_storage::Registry;

mod anchorhood;
mod and;
mod bigan;
mod byol;
mod chain;
mod classifier;
mod colour;
mod colour_classes;
mod context;
mod counting;
mod deepcluster;
mod instance;
mod jigsaw;
mod memory;
mod method;
mod mlp;
mod nat;
mod nnclr;
pub mod recipes;
mod setup;
mod simclr;
mod simsiam;
mod spec;
mod split_brain;
mod state;
mod supervised;
mod tally;

pub use anchorhood::{ANCHORHOOD, Anchorhood};
pub use and::{AND, And};
pub use bigan::{BIGAN, BiGan};
pub use byol::{BYOL, Byol};
pub use chain::{Chain, Head, ViewPasses, ViewStatistics};
pub use colour::COLOUR;
pub use context::CONTEXT;
pub use counting::{COUNTING, Counting};
pub use deepcluster::{DEEPCLUSTER, DeepCluster};
pub use instance::INSTANCE;
pub use jigsaw::{JIGSAW, Jigsaw, Puzzle};
pub use memory::{memory_of, neighbourhoods_of, remembered_pictures};
pub use method::{EpochStart, Method, PretextFigure, Round, ViewSettings};
pub use mlp::{MlpEnd, MlpSettings};
pub use nat::{NAT, Nat};
pub use nnclr::{NNCLR, NnClr};
pub use setup::{Setup, parameter_groups};
pub use simclr::{SIMCLR, SimClr};
pub use simsiam::{SIMSIAM, SimSiam};
pub use spec::{BuildMethod, Embeds, MethodKind, MethodSpec};
pub use split_brain::{SPLIT_BRAIN, SplitBrain};
pub use state::{BY_PICTURE, StateDict, StateTensor, Values};
pub use supervised::{SUPERVISED, Supervised};

/// All methods that are known by name, in the order in which they are listed. A program adds its
/// own by [`METHODS.add`](Registry::add).
pub static METHODS: Registry<MethodSpec> = Registry::new(&[
    &AND,
    &ANCHORHOOD,
    &INSTANCE,
    &SIMCLR,
    &SIMSIAM,
    &BYOL,
    &NNCLR,
    &DEEPCLUSTER,
    &SPLIT_BRAIN,
    &NAT,
    &COUNTING,
    &COLOUR,
    &JIGSAW,
    &CONTEXT,
    &BIGAN,
    &SUPERVISED,
]);
