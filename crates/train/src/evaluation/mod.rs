//! How good are the features?
//!
//! Labels are read here and nowhere in training: [`weighted_knn`] classifies test pictures by their
//! nearest training pictures, a [`LinearSet`] trains linear classifiers on any layer's values,
//! [`consistency`] asks how often a discovered neighbourhood is of one class, and
//! [`raw_pixels_within`] gives the floor that any feature should beat. Every protocol takes a
//! network as it is: trained, imported, or fresh from its seed. [`Attention`] shows where a network
//! looks.

mod attention;
mod consistency;
mod copies;
mod features;
mod head;
mod knn;
mod label_free;
mod labelled_pictures;
mod linear;
pub mod overlay;
mod rows;
mod spread;
mod tsne;

pub use attention::{Attention, HeatMap, LayerGradient, Memory};
pub use consistency::{Consistency, consistency};
pub use copies::Copies;
pub use features::{extract, raw_pixels_within};
pub use knn::{Accuracy, KnnOptions, weighted_knn};
pub use label_free::LabelFree;
pub use labelled_pictures::LabelledPictures;
pub use linear::{LinearOptions, LinearResult, LinearSet};
pub use rows::{MOST_VALUES, Rows, average, extract_layer, pooled};
pub use spread::Spread;
pub use tsne::{Layout, layout};
