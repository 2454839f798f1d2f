//! Which pictures are alike?
//!
//! A [`Model`] is a trained network ready for use: it knows which pixels it wants, and makes [`Vectors`] of pictures. An
//! [`Embedder`] runs it on a device; a [`FolderJob`] takes a folder of any size through it, and goes on where it was
//! interrupted. A [`PictureIndex`] keeps the vectors of a folder in one file, and answers: which pictures are
//! [`nearest`](PictureIndex::nearest) to this one, which are [the same](find_duplicates), which [clusters](kmeans_clusters) or
//! [groups](graph_clusters) do they form, and, given [`GivenLabels`] for a few, what are the others ([`classify`]) and which should
//! be labelled next ([`label_next`]). [`Sheet`] shows any of it as one picture.
//!
//! Similarity is the cosine of two pictures' vectors: 1 for the same picture, near 0 for pictures that have nothing in common.
//!
//! ```no_run
//! use anchorhood_engine::Device;
//! use anchorhood_search::{Model, PictureIndex};
//!
//! let device = Device::cpu(2);
//! let model = Model::load("runs/mine")?;
//! let index = PictureIndex::build("pictures.index", &model, &device, "pictures")?;
//! let vector = model.embedder(&device, 1, None)?.embed_file("query.jpg")?;
//! for hit in index.nearest(&vector, 20)? {
//!     println!("{:.4}  {}", hit.similarity, index.name(hit.index));
//! }
//! # Ok::<(), anchorhood_search::SearchError>(())
//! ```

#![forbid(unsafe_code)]

mod appearance;
mod cached_index;
mod classify;
mod clusters;
mod duplicates;
mod each;
mod embedder;
mod error;
mod exact;
mod folder_job;
mod folders;
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod index;
mod ivf;
mod journal;
mod known_models;
mod labels;
mod logistic;
mod luma;
mod model;
mod outliers;
mod prefetch;
mod pretrained;
mod select;
mod set_aside;
mod sheet;
mod stream;
mod together;
mod vectors;
mod wrong_labels;

pub use anchorhood_discover::Lists;
pub use appearance::Appearance;
pub use cached_index::cached_index;
pub use classify::{Guess, VoteOptions, classify, label_next, leave_one_out};
pub use clusters::{Cluster, GraphOptions, graph_clusters, kmeans_clusters};
pub use duplicates::{
    Compared, CopyKind, Duplicate, DuplicateGroup, DuplicateOptions, DuplicateStage, Duplicates,
    Look, Pair, Reason, find_duplicates, groups, similar_pairs,
};
pub use embedder::Embedder;
pub use error::SearchError;
pub use exact::{Hit, nearest};
pub use folder_job::{FolderEvent, FolderJob, FolderOutcome, FolderVectors};
pub use folders::IndexedFolder;
pub use graph::components;
pub use index::{Changes, IndexParts, PictureIndex, StoredVectors, Thumbnails};
pub use ivf::{Recall, measure_recall, nearest_in_lists};
pub use journal::{Entry, Journal, JournalHeader, Recovered};
pub use known_models::{KNOWN_MODELS, KnownModel, fetched_model, fetched_models, models_folder};
pub use labels::GivenLabels;
pub use logistic::{LogisticOptions, classify_logistic};
pub use model::Model;
pub use outliers::outlier_scores;
pub use select::{Chosen, select};
pub use set_aside::{PutBack, UNDO_FILE, set_aside, undo};
pub use sheet::{Sheet, Shown, Tile};
pub use stream::{EmbedOptions, EmbedProgress, Embedded, embed_files, embed_paths};
pub use vectors::Vectors;
pub use wrong_labels::{WrongLabel, wrong_labels};
