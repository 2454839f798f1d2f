//! Which pictures are alike?
//!
//! A [`Model`] is a trained network ready for use: it knows which pixels it wants, and makes
//! vectors of pictures. An [`Embedder`] runs it on a device; a [`FolderJob`] takes a folder of
//! any size through it, and goes on where it was interrupted. A [`PictureIndex`] keeps the vectors
//! of a folder in one file, and answers which pictures are [`nearest`](PictureIndex::nearest) to
//! this one. What else the vectors say, [`crate::curate`] tells: which pictures are the same,
//! which groups do they form, and, given [`GivenLabels`] for a few, what are the others. [`Sheet`]
//! shows any of it as one picture, and [`set_aside`] moves what is too much away.
//!
//! Similarity is the cosine of two pictures' vectors: 1 for the same picture, near 0 for pictures
//! that have nothing in common.
//!
//! ```no_run
//! use anchorhood_engine::Device;
//! use anchorhood_index::{Model, PictureIndex};
//!
//! let device = Device::cpu(2);
//! let model = Model::load("runs/mine")?;
//! let index = PictureIndex::build("pictures.index", &model, &device, "pictures")?;
//! let vector = model.embedder(&device, 1, None)?.embed_file("query.jpg")?;
//! for hit in index.nearest(&vector, 20)? {
//!     println!("{:.4}  {}", hit.similarity, index.name(hit.index));
//! }
//! # Ok::<(), anchorhood_index::SearchError>(())
//! ```

#![deny(unsafe_code)]

mod cached_index;
mod checked_lines;
mod copies;
pub mod curate;
mod decisions;
mod embedder;
mod error;
mod folder_job;
mod folders;
#[doc(hidden)]
pub mod fuzzing;
mod index;
mod journal;
mod known_models;
mod labels;
mod model;
#[allow(unsafe_code, reason = "ONNX Runtime is a library in C++")]
pub mod onnx;
mod prefetch;
mod pretrained;
mod set_aside;
mod shard;
mod stream;
mod undo_record;

pub use anchorhood_engine::vectors::Lists;
pub use cached_index::cached_index;
pub use copies::CopySearch;
pub use decisions::{DecidedImage, Decisions, decide_not_duplicates};
pub use embedder::Embedder;
pub use error::SearchError;
pub use folder_job::{FolderEvent, FolderJob, FolderOutcome, FolderVectors};
pub use folders::IndexedFolder;
pub use index::{Changes, IndexParts, PictureIndex, StoredVectors, Thumbnails};
pub use journal::{Entry, Journal, JournalHeader, Recovered};
pub use known_models::{KNOWN_MODELS, KnownModel, fetched_model, fetched_models, models_folder};
pub use labels::{GivenLabels, numbered_classes};
pub use model::{Checked, Model};
pub use set_aside::{PutBack, SetAside, ToMove, UNDO_FILE, set_aside, undo, would_set_aside};
pub use shard::Shard;
pub use stream::{embed_paths, stamp_of};
pub use undo_record::RecordKey;
