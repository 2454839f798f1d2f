//! Anchorhood as a library: everything the command-line program uses, under one name.
//!
//! Image features are learnt without labels by Anchor Neighbourhood Discovery. The modules are the
//! arrows of the flow:
//!
//! | module | the question it answers |
//! |---|---|
//! | [`data`] | where do pictures come from, and what does the network see of them? |
//! | [`models`] | which graph is which network? |
//! | [`engine`] | how does a graph of layers run, forwards and backwards, on this device? |
//! | [`discover`] | memory bank, neighbourhoods, entropy, curriculum, the loss and its gradient |
//! | [`methods`] | what does a training step do? |
//! | [`train`] | rounds and epochs, schedule, checkpoints, resume, events |
//! | [`evaluate`] | how good are the features? |
//! | [`report`] | how does a person see it? |
//! | [`curate`] | what do the vectors and pixels of many pictures say about them? |
//! | [`search`] | which pictures are alike? |
//! | [`serve`] | how does one walk through pictures in a browser? |
//! | [`export`] | which other programs can go on with it? |
//! | [`reproduce`] | what did the paper find, and what do we? |
//! | [`files`] | how does a file get onto a disk whole, and how is damage to it noticed? |
//! | [`random`] | the draws that all of them share |
//! | [`ranks`] | which process of how many is this one, and how do they work together? |
//!
//! # Train on your own pictures
//!
//! From bytes in memory, from a function that makes them
//! ([`Pictures::from_fn`](data::Pictures::from_fn)), or by [`data::open`] from a folder or a
//! published set. Labels are optional, and only judge.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use anchorhood::data::{Dataset, Pictures};
//! use anchorhood::engine::Device;
//! use anchorhood::train::{Event, Preset, RunDir, train};
//!
//! // 64 RGB pictures of 16×16.
//! let bytes = (0..64 * 16 * 16 * 3).map(|i| (i % 251) as u8).collect();
//! let data = Dataset::new("mine", Pictures::new(16, 16, bytes)?);
//! let mut config = Preset::Quick.config("mine"); // every setting is a field
//! config.training.epochs = 1;
//! # config.network.width = 2;
//! # config.training.rounds = 1;
//! let config = config.fitted(&data)?; // what follows from the pictures
//! # let folder = tempfile::tempdir()?;
//! # let runs = folder.path();
//!
//! let mut run = RunDir::create(runs, "first", &config)?;
//! let mut observer = |event: &Event| {
//!     if let Event::EpochEnded(e) = event { println!("loss {}", e.loss) }
//! };
//! // Set by a signal handler, say: the run is saved, and `train` goes on with it later.
//! let stop = AtomicBool::new(false);
//! train(&Device::cpu(2), &mut run, &data, &mut observer, &stop)?;
//! # assert!(run.checkpoint("last").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Load a model, and embed
//!
//! ```
//! use anchorhood::data::Pictures;
//! use anchorhood::engine::Device;
//! use anchorhood::search::Model;
//!
//! # let place = tempfile::tempdir()?;
//! # let run = &place.path().join("model.safetensors");
//! # anchorhood::search::fuzzing::small_model().save(run)?;
//! let model = Model::load(run)?; // a run's folder, or a checkpoint
//! // Any size: the model's own is cut out.
//! let pictures = Pictures::new(48, 64, vec![0; 10 * 48 * 64 * 3])?;
//! let vectors = model.embed(&Device::cpu(2), &pictures)?;
//! assert_eq!(vectors.len(), 10);
//! let alike = vectors.nearest(vectors.row(0), 3)?; // the picture itself, then those most like it
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Search a folder
//!
//! ```
//! use anchorhood::engine::Device;
//! use anchorhood::search::{Model, PictureIndex};
//!
//! # let place = tempfile::tempdir()?;
//! # let run = &place.path().join("model.safetensors");
//! # anchorhood::search::fuzzing::small_model().save(run)?;
//! # let (folder, file) = (place.path().join("pictures"), place.path().join("pictures.index"));
//! # std::fs::create_dir(&folder)?;
//! # for (name, grey) in [("a", 0), ("b", 120), ("c", 255)] {
//! #     let picture = image::RgbImage::from_pixel(20, 30, image::Rgb([grey, 255 - grey, 100]));
//! #     picture.save(folder.join(name).with_extension("png"))?;
//! # }
//! # let query = folder.join("c.png");
//! let (device, model) = (Device::cpu(2), Model::load(run)?);
//! // From then on: PictureIndex::load(&file).
//! let index = PictureIndex::build(&file, &model, &device, &folder)?;
//! let vector = model.embedder(&device, 1, None)?.embed_file(&query)?;
//! for hit in index.nearest(&vector, 20)? {
//!     println!("{:.4}  {}", hit.similarity, index.picture(hit.index).display());
//! }
//! # assert_eq!(index.nearest(&vector, 20)?.len(), 3);
//! # assert_eq!(PictureIndex::load(&file)?.picture(index.nearest(&vector, 1)?[0].index), query);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Whole programs are in `examples/`: `cargo run --release -p anchorhood --example train_own_data`,
//! then `load_and_embed` and `search`; `and` is the paper's method in one file, written on the
//! engine's operations. On an NVIDIA GPU, `Device::cuda` takes the place of `Device::cpu`
//! everywhere.

#![forbid(unsafe_code)]

pub use anchorhood_data as data;
pub use anchorhood_distributed as distributed;
pub use anchorhood_engine as engine;
pub use anchorhood_export as export;
pub use anchorhood_index::{curate, onnx};
pub use anchorhood_models as models;
pub use anchorhood_report as report;
pub use anchorhood_reproduce as reproduce;
pub use anchorhood_serve as serve;
pub use anchorhood_storage as storage;
pub use anchorhood_storage::random;
pub use anchorhood_train as train;
pub use anchorhood_train::{discovery, evaluation, methods};

/// Which pictures are alike? Models and indices, contact sheets, and all of [`curate`].
pub mod search {
    pub use anchorhood_index::curate::*;
    pub use anchorhood_index::*;
    pub use anchorhood_report::{Sheet, Shown, Tile};
}
