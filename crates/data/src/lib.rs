//! Where do pictures come from, and what does the network see of them?
//!
//! [`open`] turns what a user typed into a [`Dataset`], [`Dataset::new`] pictures of one's own; a
//! [`DataLoader`] says what batches are made of, and a [`Prefetcher`] prepares them, augmented, ahead
//! of training.
//!
//! ```
//! use anchorhood_data::{Augmentation, DataLoader, LoadOptions, open};
//!
//! let options = LoadOptions { shapes_train: 200, ..LoadOptions::default() };
//! let data = open("shapes", &options)?;
//! let loader = DataLoader {
//!     images: data.train.pictures.clone(),
//!     views: Augmentation::default().into(),
//!     mean: data.mean,
//!     std: data.std,
//!     seed: 0,
//!     batch: 64,
//!     part: 0..64,
//!     threads: 1,
//! };
//! let mut batches = loader.prefetch(0, 0)?;
//! let batch = batches.next().expect("there are always more");
//! assert_eq!(batch.pixels.len(), 64 * 32 * 32 * 3);
//! batches.recycle(batch);
//! # Ok::<(), anchorhood_data::DataError>(())
//! ```

#![deny(unsafe_code)] // but in `files/heif.rs`

pub mod augment;
mod check;
mod crops;
mod datasets;
mod encode;
mod epoch_order;
mod error;
mod fellows;
mod files;
mod folder;
#[doc(hidden)]
pub mod fuzzing;
mod in_memory;
mod loader;
mod mat;
mod memory;
mod open;
mod pack;
mod pictures;
mod recognise;
mod resize;
pub mod shapes;
mod squaring;
pub mod statistics;
mod store;
#[cfg(test)]
mod test_folder;
mod validation;

pub use augment::{AugmentParams, Augmentation, Views, augment, normalise};
pub use check::{CheckReport, Problem, SplitCount, check};
pub use crops::CropsFrom;
pub use datasets::{Archive, DATASETS, DatasetSpec, Read, dataset_names, find_dataset, unpack};
pub use encode::{encode_jpeg, encode_png};
pub use epoch_order::EpochOrder;
pub use error::DataError;
pub use fellows::{FellowReaders, Fellows};
pub use files::{
    FORMATS, FolderReport, ImageFormat, ImageMetadata, Listing, PassedOver, Picture, PictureFile,
    Skipped, about_picture, archived_picture, find_pictures, is_member, name_of, picture_bytes,
    picture_named, unseen,
};
pub use folder::{FolderLabels, LabelChoice};
pub use loader::{Batch, DataLoader, Prefetcher};
pub use memory::{HostMemory, host_memory};
pub use open::{LoadOptions, Progress, check_place, open, open_with_progress};
pub use pack::{Packed, pack, pack_on};
pub use pictures::{Dataset, Labels, Pictures, Split};
pub use recognise::{path_of, seen_from};
pub use squaring::{Interpolation, PREPROCESSING, Resize, Squaring};
pub use store::ChecksumOf;
