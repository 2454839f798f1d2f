//! Anchorhood as a library: everything the command-line program uses, under one name.
//!
//! Image features are learnt without labels by Anchor Neighbourhood Discovery. The modules are the arrows of the flow:
//!
//! | module | the question it answers |
//! |---|---|
//! | [`data`] | where do pictures come from, and what does the network see of them? |
//! | [`models`] | which graph is which network? |
//! | [`engine`] | how does a graph of layers run, forwards and backwards, on this device? |
//! | [`discover`] | memory bank, neighbourhoods, entropy, curriculum, the loss and its gradient |
//! | [`train`] | rounds and epochs, schedule, checkpoints, resume, events |
//! | [`evaluate`] | how good are the features? |
//! | [`report`] | how does a person see it? |
//! | [`search`] | which pictures are alike? |
//! | [`serve`] | how does one walk through pictures in a browser? |
//! | [`export`] | which other programs can go on with it? |
//! | [`reproduce`] | what did the paper find, and what do we? |
//! | [`random`] | the draws that all of them share |
//!
//! A small run, from pictures to a judged model:
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use anchorhood::engine::Cpu;
//! use anchorhood::train::{Event, Outcome, Preset, RunDir, train};
//!
//! let mut config = Preset::Quick.config("shapes");
//! config.data.shapes_train = 64;
//! config.data.shapes_test = 16;
//! config.network.width = 2;
//! config.training.batch = 16;
//! config.training.rounds = 1;
//! config.training.epochs = 1;
//!
//! let data = anchorhood::data::open(&config.data.set, &config.data.load_options(config.seed))?;
//! let runs = tempfile::tempdir()?;
//! let mut run = RunDir::create(runs.path(), "first", &config)?;
//! let mut losses = vec![];
//! let mut observer = |event: &Event| {
//!     if let Event::EpochEnded(epoch) = event {
//!         losses.push(epoch.loss);
//!     }
//! };
//! let stop = AtomicBool::new(false);
//! let outcome = train(&Cpu::new(2), &mut run, &data, &mut observer, &stop)?;
//!
//! assert_eq!(losses.len(), 2); // round 0 and round 1, an epoch each
//! assert!(matches!(outcome, Outcome::Finished(end) if end.last.is_some()));
//! assert!(run.checkpoint("last").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use anchorhood_data as data;
pub use anchorhood_discover as discover;
pub use anchorhood_engine as engine;
pub use anchorhood_evaluate as evaluate;
pub use anchorhood_export as export;
pub use anchorhood_models as models;
pub use anchorhood_random as random;
pub use anchorhood_report as report;
pub use anchorhood_reproduce as reproduce;
pub use anchorhood_search as search;
pub use anchorhood_serve as serve;
pub use anchorhood_train as train;
