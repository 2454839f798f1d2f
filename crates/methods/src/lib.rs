//! What does a training step do?
//!
//! A [`Method`] is one file: its networks, its one step, what happens before a round and an epoch, what it keeps beside its
//! networks. It knows nothing of data loaders, checkpoints, schedules or devices: the step is written once, and the
//! [`Stream`](anchorhood_engine::Stream) it is given runs it at once or as a recorded CUDA graph.
//!
//! - [`And`]: Anchor Neighbourhood Discovery, and, with no rounds, instance discrimination.
//! - [`Supervised`]: cross-entropy on labels, the ceiling that features without labels are measured against.

#![forbid(unsafe_code)]

mod and;
mod method;
mod setup;
mod state;
mod supervised;

pub use and::{And, AndSettings, memory_of, neighbourhoods_of};
pub use method::{Method, Round, ViewSettings};
pub use setup::{Setup, parameter_groups};
pub use state::{StateDict, StateError, StateTensor, Values};
pub use supervised::Supervised;
