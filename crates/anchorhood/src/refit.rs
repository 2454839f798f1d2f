//! What was learnt, for pictures of another size, and whitened by some: of a run when it ends, and
//! for `export`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anchorhood_data::{Dataset, picture_named};
use anchorhood_engine::Device;
use anchorhood_engine::vectors::Whitening;
use anchorhood_index::{Model, embed_paths};
use anchorhood_storage::{Disk, FileSystem};
use anchorhood_train::{
    Costs, Evaluated, Event, RunConfig, RunDir, Subject, model_path, refitted_path,
};

use crate::evaluate::vote;
use crate::{Error, OnEvent};

/// Pictures at a time.
const BATCH: usize = 64;
/// What an evaluation that is foreseen may take longer.
const A_BIT_MORE: f64 = 1.2;
/// Seconds until a GPU has tried out what is quickest for pictures of another size: four to five on
/// an H200.
const A_GPU: f64 = 5.0;

/// The model that a run which has just ended is used by, where it is given pictures of another size
/// than it learnt with, judged where there are labels. The run is whole without it, so what goes
/// wrong is a warning.
pub fn refit(run: &Path, data: &Dataset, device: &Device, on_event: OnEvent) {
    if let Err(error) = refitted(run, data, device, on_event) {
        let why = error.with_advice();
        on_event(&Event::warning(format!(
            "the model is that for the pictures it learnt from alone: {why}"
        )));
    }
}

/// Takes it away from a run that goes on learning.
pub(crate) fn forget_refitted(run: &Path) -> Result<(), Error> {
    let path = refitted_path(run);
    match path.is_file() {
        true => Disk.remove(&path).map_err(|e| Error::failed(format!("{}: {e}", path.display()))),
        false => Ok(()),
    }
}

/// How long that takes by what an evaluation of the run takes: as long, of larger pictures, with a
/// network that must be built.
pub(crate) fn seconds(config: &RunConfig, data: &Dataset, device: &Device, costs: &Costs) -> f64 {
    let Some(size) = wanted(config, data) else {
        return 0.0;
    };
    let larger = (size as f64 / data.train.pictures.height() as f64).powi(2);
    let opening = if device.is_host() { 0.0 } else { A_GPU };
    opening + costs.building + A_BIT_MORE * larger * costs.evaluation
}

/// The size that is not the one a run learns with.
fn wanted(config: &RunConfig, data: &Dataset) -> Option<usize> {
    let learnt = data.train.pictures.height();
    config.data.embed_size.filter(|size| *size != learnt)
}

fn refitted(run: &Path, data: &Dataset, device: &Device, on_event: OnEvent) -> Result<(), Error> {
    let config = RunDir::config_of(run)?;
    let Some(size) = wanted(&config, data) else {
        return Ok(());
    };
    on_event(&Event::note(format!("the model, given pictures of {size}×{size} …")));
    let model = Model::load(model_path(run))?.at_size(size)?;
    let power = config.method.whiten;
    let model = match power > 0.0 && config.method.name.compares_views() {
        true => {
            let train = &data.train;
            let sample: Vec<usize> = Whitening::sample(train.pictures.len()).collect();
            let features = match train.pictures.folder() {
                // From the files, which may have more to show than was kept to learn from.
                Some(folder) if train.names.len() == train.pictures.len() => {
                    let path = |i: &usize| picture_named(folder, &train.names[*i]);
                    let files = sample.iter().map(path).collect();
                    features_of_files(&model, files, device, config.machine.thread_count())?
                }
                Some(_) | None => {
                    let mut embedder = model.embedder(device, BATCH, Some(Model::WHITENED))?;
                    embedder.embed_all(&train.pictures.subset(&sample))?.values
                }
            };
            model.whitened(&features, power)?
        }
        false => model,
    };
    model.save(&refitted_path(run))?;
    let clock = Instant::now();
    if let Some((accuracy, _)) = vote(device, &model, &config.evaluation, data)? {
        let judged = Evaluated {
            subject: Subject::Model { size },
            accuracy,
            seconds: clock.elapsed().as_secs_f64(),
        };
        RunDir::open(run)?.add(&Event::Evaluated(judged))?;
    }
    Ok(())
}

/// What the layer that is whitened makes of files, a row each; those that cannot be read are left
/// out.
pub fn features_of_files(
    model: &Model,
    files: Vec<PathBuf>,
    device: &Device,
    threads: usize,
) -> Result<Vec<f32>, Error> {
    let mut embedder = model.embedder(device, BATCH, Some(Model::WHITENED))?;
    let rows = embed_paths(&mut embedder, files, threads, &mut |_| {}, &false.into())?;
    Ok(rows.into_iter().flatten().flatten().collect())
}
