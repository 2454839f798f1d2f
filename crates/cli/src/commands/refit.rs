//! What was learnt, for pictures of another size, and whitened by some: of a run when it ends, and for `export`.

use std::path::{Path, PathBuf};

use anchorhood::data::{Dataset, Split, picture_named};
use anchorhood::discover::Whitening;
use anchorhood::engine::Device;
use anchorhood::files::{Disk, FileSystem};
use anchorhood::search::{Model, embed_paths};
use anchorhood::train::{RunConfig, RunDir, model_path, refitted_path};

use crate::args::device;
use crate::args::model::io;
use crate::terminal::failure::Failure;

/// Pictures at a time.
const BATCH: usize = 64;
/// Pictures of 96×96 that two cores embed in a second with `base`, and somewhat less.
const A_SECOND: f64 = 300.0;

/// The model that a run which has just ended is used by, where it is given pictures of another size than it learnt with. The run is
/// whole without it, so what goes wrong is a warning.
pub fn after_training(run: &Path, train: &Split) {
    if let Err(Failure { message, .. }) = refit(run, train) {
        let why = message.unwrap_or_default();
        eprintln!("warning: the model is that for the pictures it learnt from alone: {why}");
    }
}

/// Takes it away from a run that goes on learning.
pub fn forget(run: &Path) -> Result<(), Failure> {
    let path = refitted_path(run);
    match path.is_file() {
        true => Disk.remove(&path).map_err(io(&path)),
        false => Ok(()),
    }
}

/// How long that takes at most where it is done on a CPU.
pub fn seconds(config: &RunConfig, data: &Dataset) -> f64 {
    let pictures = Whitening::sample(data.train.pictures.len()).count();
    match wanted(config) {
        Some(_) => pictures as f64 / A_SECOND,
        None => 0.0,
    }
}

/// The size that is not the one a run learns with.
fn wanted(config: &RunConfig) -> Option<usize> {
    let size = config.data.embed_size;
    size.filter(|_| size != config.data.size)
}

fn refit(run: &Path, train: &Split) -> Result<(), Failure> {
    let config = RunDir::config_of(run)?;
    let Some(size) = wanted(&config) else {
        return Ok(());
    };
    let model = Model::load(model_path(run))?.at_size(size)?;
    let power = config.method.whiten;
    let model = match power > 0.0 && config.method.name.compares_views() {
        true => {
            let sample: Vec<usize> = Whitening::sample(train.pictures.len()).collect();
            let machine = &config.machine;
            let (device, threads) = (device::open_again(machine)?, machine.thread_count());
            let features = match train.pictures.folder() {
                // From the files, which may have more to show than was kept to learn from.
                Some(folder) if train.names.len() == train.pictures.len() => {
                    let path = |i: &usize| picture_named(folder, &train.names[*i]);
                    let files = sample.iter().map(path).collect();
                    features_of_files(&model, files, &device, threads)?
                }
                Some(_) | None => {
                    let mut embedder = model.embedder(&device, BATCH, Some(Model::WHITENED))?;
                    let rows = embedder.embed_all(&train.pictures.subset(&sample))?;
                    rows.values().to_vec()
                }
            };
            model.whitened(&features, power)?
        }
        false => model,
    };
    Ok(model.save(&refitted_path(run))?)
}

/// What the layer that is whitened makes of files, a row each; those that cannot be read are left out.
pub fn features_of_files(
    model: &Model,
    files: Vec<PathBuf>,
    device: &Device,
    threads: usize,
) -> Result<Vec<f32>, Failure> {
    let mut embedder = model.embedder(device, BATCH, Some(Model::WHITENED))?;
    let rows = embed_paths(&mut embedder, files, threads, &mut |_| {}, &false.into())?;
    Ok(rows.into_iter().flatten().flatten().collect())
}
