//! Anchorhood as a library: image features learnt without labels, by Anchor Neighbourhood
//! Discovery, and what one does with them. All that the command does is a call of this crate;
//! [`research`] has what methods and data sets of one's own are made of.
//!
//! | command | call |
//! |---|---|
//! | `train`, `--resume`, `--explain` | [`Trainer`]; what it leaves is a [`Run`] |
//! | `evaluate` | [`evaluate`] |
//! | `report`, `attention` | [`Run::write_report`], [`Run::attention`] |
//! | `index`, `embed` | [`FolderEmbedder::index`], [`FolderEmbedder::table`] |
//! | `neighbours`, `cluster`, `select`, `outliers`, `classify` | an [`Index`]'s own |
//! | `duplicates` | [`Index::duplicates`], or a [`DuplicateSearch`] |
//! | `duplicates --move-to`, `--undo` | [`FoundDuplicates::move_to`], [`undo_moves`] |
//! | `export` | [`export`] |
//! | `compare`, `reproduce` | [`compare`], [`reproduce`] |
//! | `serve` | [`PageOptions::open`] |
//! | `data fetch`, `model fetch` | [`fetch_dataset`], [`fetch_model`] |
//!
//! # Train on your own images
//!
//! A folder, a published set, bytes in memory, or a function that makes them ([`Images`]). Labels
//! are optional, and only judge. What is not said is decided as the command line decides it, and
//! the same settings give the same bits.
//!
//! ```
//! use anchorhood::prelude::*;
//!
//! // 64 RGB images of 16×16.
//! let bytes = (0..64 * 16 * 16 * 3).map(|i| (i % 251) as u8).collect();
//! let images = Images::from_pixels(16, 16, bytes)?;
//! # let folder = tempfile::tempdir()?;
//! # let runs = folder.path();
//! let run = Trainer::new(&images)
//!     .configure(|config| {
//!         config.training.epochs = 1; // every setting is a field
//! #       config.network.width = 2;
//! #       config.training.rounds = 1;
//!     })
//!     .run_dir(runs.join("first")) // a numbered folder in runs/ without it
//!     .on_event(|event| {
//!         if let Event::EpochEnded(e) = event { println!("loss {}", e.loss) }
//!     })
//!     .train()?;
//! let vectors = run.model()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Trainer::stop_when`] saves a run and ends it, [`Trainer::resume`] goes on with it;
//! [`Trainer::explain`] tells where each setting's value comes from.
//!
//! # Load a model, and embed
//!
//! ```
//! use anchorhood::{Device, Model, Pictures};
//!
//! # let place = tempfile::tempdir()?;
//! # let run = &place.path().join("model.safetensors");
//! # anchorhood_index::fuzzing::small_model().save(run)?;
//! let model = Model::load(run)?; // a run's folder, or a checkpoint
//! // Any size: the model's own is cut out.
//! let pictures = Pictures::new(48, 64, vec![0; 10 * 48 * 64 * 3])?;
//! let vectors = model.embed(&Device::cpu(2), &pictures)?;
//! assert_eq!(vectors.len(), 10);
//! let alike = vectors.nearest(vectors.row(0), 3); // the picture itself, then those most like it
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Search a folder
//!
//! ```
//! use anchorhood::FolderEmbedder;
//! use anchorhood::prelude::*;
//!
//! # let place = tempfile::tempdir()?;
//! # let run = &place.path().join("model.safetensors");
//! # anchorhood_index::fuzzing::small_model().save(run)?;
//! # let (folder, file) = (place.path().join("photos"), place.path().join("photos.index"));
//! # std::fs::create_dir(&folder)?;
//! # for (name, grey) in [("a", 0), ("b", 120), ("c", 255)] {
//! #     let picture = image::RgbImage::from_pixel(20, 30, image::Rgb([grey, 255 - grey, 100]));
//! #     picture.save(folder.join(name).with_extension("png"))?;
//! # }
//! # let query = folder.join("c.png");
//! let model = Model::load(run)?;
//! // Or `Index::build(&images, &model)`, in the user's cache; later `Index::open(&file)`.
//! let index = FolderEmbedder::new([&folder], &model).index(&file)?;
//! for hit in index.search_file(&query, 20)? {
//!     println!("{hit}");
//! }
//! # assert_eq!(index.search_file(&query, 1)?[0].path, query);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Whole programs are in `examples/`: `cargo run --release -p anchorhood --example train_own_data`,
//! then `load_and_embed` and `search`; `and` is the paper's method in one file, written on the
//! engine's operations. On an NVIDIA GPU, `Device::cuda` takes the place of `Device::cpu`
//! everywhere.

#![forbid(unsafe_code)]

mod advice;
mod classify;
mod compare;
mod device;
mod duplicates;
mod error;
mod evaluate;
mod explain;
mod export;
mod fetch;
mod find;
mod folder_embedder;
mod folder_report;
mod images;
mod index;
mod length;
mod outliers;
mod pages;
mod pretrained;
mod refit;
pub mod research;
mod run;
mod run_images;
mod run_options;
mod run_report;
mod tensorboard;
mod trainer;

pub use classify::{Classifier, LabelledIndex};
pub use compare::{CompareOptions, ReproduceOptions, compare, experiments, reproduce};
pub use device::open_device;
pub use duplicates::{DuplicateSearch, FoundDuplicates, undo_moves};
pub use error::{Error, ErrorKind};
pub use evaluate::{Evaluation, evaluate};
pub use explain::Explained;
pub use export::{ExportOptions, export};
pub use fetch::{FetchEvent, FetchOptions, fetch_dataset, fetch_model};
pub use find::{find_run, latest_run, load_model};
pub use folder_embedder::{FolderEmbedder, FolderOptions};
pub use images::Images;
pub use index::{Clustering, Index, SearchResult};
pub use outliers::{Outlier, OutlierKind};
pub use pages::PageOptions;
pub use run::Run;
pub use run_images::open_images_of;
pub use run_options::RunOptions;
pub use trainer::Trainer;

/// Who hears what happens.
pub type OnEvent<'a> = &'a mut (dyn FnMut(&Event) + Send);

pub use anchorhood_data::{DATASETS, Dataset, Labels, LoadOptions, Picture, Pictures, Split};
pub use anchorhood_engine::Device;
pub use anchorhood_index::curate::{
    Chosen, Cluster, DuplicateGroup, DuplicateOptions, Duplicates, GraphOptions, Guess, KeepRule,
    WrongLabel,
};
pub use anchorhood_index::{GivenLabels, Model, PictureIndex};
pub use anchorhood_report::Summary;
pub use anchorhood_reproduce::{Allowance, Results, Scale, Standings, Told};
pub use anchorhood_serve::ServeOptions;
pub use anchorhood_train::methods::{METHODS, MethodSpec};
pub use anchorhood_train::{
    Accuracy, DeviceChoice, Event, LabelsChoice, MachineConfig, PrecisionChoice, Preset, RunConfig,
    SETTINGS, Setting, VERSION,
};

/// What most programs need.
pub mod prelude {
    pub use crate::{
        Device, Error, ErrorKind, Event, Images, Index, Model, Preset, Run, RunConfig,
        SearchResult, Trainer,
    };
}
