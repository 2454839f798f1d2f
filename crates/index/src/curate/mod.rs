//! What do the vectors and pixels of many pictures say about them?
//!
//! Of vectors of unit length: which are [`nearest`] to one, which [clusters](kmeans_clusters) or
//! [groups](graph_clusters) do they form, which few stand for all ([`select`]), which are like no
//! other ([`outlier_scores`]), and, where a few have labels, what are the others ([`classify`]),
//! which should be labelled next ([`label_next`]) and which labels are likely wrong
//! ([`wrong_labels`]). With the pixels beside them: which pictures are [the same](find_duplicates),
//! and how does each [look](Appearance)?
//!
//! Similarity is the product of two vectors: their cosine, 1 for the same picture, near 0 for
//! pictures that have nothing in common.
//!
//! ```
//! use anchorhood_index::curate::{nearest, select};
//!
//! let vectors = [1.0, 0.0, 0.8, 0.6, 0.0, 1.0]; // three of two values each
//! assert_eq!(nearest(&vectors, 2, &[1.0, 0.0], 2)[1].index, 1);
//! let few = select(&vectors, 2, 2, &[], &mut |_| {});
//! assert_eq!(few.len(), 2);
//! ```

mod appearance;
mod classify;
mod clusters;
mod duplicates;
mod each;
mod exact;
mod graph;
mod ivf;
mod logistic;
mod luma;
mod outliers;
mod select;
mod unit;
mod wrong_labels;

pub use appearance::Appearance;
pub use classify::{Guess, classify, label_next, leave_one_out};
pub use clusters::{Cluster, GraphOptions, graph_clusters, kmeans_clusters};
pub use duplicates::{
    Compared, CopyKind, Duplicate, DuplicateGroup, DuplicateOptions, DuplicateStage, Duplicates,
    KeepRule, Look, Pair, Reason, UnknownKeepRule, find_duplicates, similar_pairs,
};
pub use each::each;
pub use exact::{Hit, nearest, nearest_where};
pub use ivf::{measure_recall, nearest_in_lists};
pub use logistic::classify_logistic;
pub use outliers::outlier_scores;
pub use select::{Chosen, select};
pub use unit::{extend_unit, first_not_unit};
pub use wrong_labels::{WrongLabel, wrong_labels};
